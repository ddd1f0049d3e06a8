//! A workload as a table of operations: the attributes that make one of plain `impl` blocks.
//!
//! `shaketable` exports them, and explains how they are used.

mod expand;
mod operation;
mod planted;
mod several;
mod table;

use proc_macro::TokenStream;
use syn::{ItemImpl, parse_macro_input};

/// Makes a workload of an `impl` block, with a model or with invariants: its methods with `#[write]` or
/// `#[read]` are the operations. See `shaketable::table`.
#[proc_macro_attribute]
pub fn workload(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as table::Attribute);
    let block = parse_macro_input!(item as ItemImpl);
    let expanded = match attribute.session.clone() {
        Some(session) => several::expand(&attribute, &session, block),
        None => table::Table::of(attribute, block).map(|table| expand::expand(&table)),
    };
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the planted bugs of a workload of an `impl` block: each of its methods with `#[bug]` is another body
/// of an operation. See `shaketable::table`.
#[proc_macro_attribute]
pub fn planted(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as ItemImpl);
    match planted::expand(attribute.into(), block) {
        Ok(expanded) => expanded.into(),
        Err(e) => e.into_compile_error().into(),
    }
}
