//! A block whose operations are done with the client's session, in several transactions: a `Workload`.

use crate::{
    expand,
    operation::{Draws, First, Operation, Taken},
    table::{Attribute, about, name, named_type},
};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, ImplItem, ItemImpl, Result, Type, spanned::Spanned};

/// The methods of `Workload` that a block may have. They move there as they are.
const METHODS: [&str; 36] = [
    "apply",
    "apply_planted",
    "audit",
    "audit_against",
    "bugs",
    "check",
    "clients",
    "cluster_bugs",
    "describe_key",
    "describe_value",
    "draw",
    "effects",
    "foresee",
    "is_conflict_free",
    "is_effect",
    "is_given_up",
    "is_refusal",
    "keys",
    "kinds",
    "length",
    "may_land_late",
    "may_overwrite",
    "model",
    "open",
    "open_beside",
    "operation_beside",
    "operations",
    "points",
    "rare_kinds",
    "resolve",
    "resolve_dropped",
    "setup",
    "staleness",
    "step",
    "subspaces",
    "time_limit",
];

/// Its constants.
const CONSTANTS: [&str; 1] = ["TASKS"];

/// What takes the place of the block.
pub fn expand(attribute: &Attribute, session: &Type, mut block: ItemImpl) -> Result<TokenStream> {
    let (kind, kind_name) = named_type(&block)?;
    let (about, name) = (about(&block)?, name(attribute, &kind_name));
    let (Some(model), Some(answer)) = (&attribute.model, &attribute.answer) else {
        let message = "operations of a session say more: `session = TYPE, answer = TYPE, model = TYPE`";
        return Err(Error::new(session.span(), message));
    };
    if let Some(said) = attribute.of_transactions() {
        let message = format!("`{said}` is for operations that are one transaction each");
        return Err(Error::new(session.span(), message));
    }
    let mut failed: Option<Error> = None;
    let mut fail = |e: Error| match &mut failed {
        Some(first) => first.combine(e),
        none => *none = Some(e),
    };
    let (mut draws, mut operations) = (Draws::default(), Vec::new());
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            draws.note(method).unwrap_or_else(&mut fail);
        }
    }
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        match Operation::of(method, &mut draws, First::Session) {
            Ok(Some(operation)) => operations.push(operation),
            Ok(None) => {}
            Err(e) => fail(e),
        }
    }
    if let Some(unused) = draws.unused() {
        fail(Error::new(unused.span(), format!("no operation takes `{unused}`")));
    }
    let has = |method: &str| block.items.iter().any(|item| is_named(item, method));
    for operation in &operations {
        refused(operation).into_iter().for_each(&mut fail);
        let said = [
            ("is_conflict_free", "blind", operation.options.blind),
            ("rare_kinds", "rare", operation.options.rare),
        ];
        for (method, option, _) in said.into_iter().filter(|(method, _, is_said)| *is_said && has(method)) {
            let message = format!("`{method}` takes the place of `{option}`");
            fail(Error::new(operation.method.span(), message));
        }
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    if operations.is_empty() {
        let message = "a workload has operations: mark methods with `#[write]` or `#[read]`";
        return Err(Error::new(kind.span(), message));
    }
    let mut both = block.items.iter().filter(|item| is_named(item, "operations") || is_named(item, "number"));
    if let (Some(_), Some(other)) = (both.next(), both.next()) {
        let message = "`number` is for the list that `operations` takes the place of";
        return Err(Error::new(other.span(), message));
    }
    let (moved, own): (Vec<_>, Vec<_>) = block.items.into_iter().partition(describes);
    block.items = own;
    let op = format_ident!("{}Op", kind_name);
    let declared = expand::declared(&kind_name, &op, &operations);
    let drawn = operations.iter().map(|operation| expand::strategy(operation, &op));
    let performed = operations.iter().map(|operation| {
        let (method, pattern) = (&operation.method, expand::pattern(operation, &op));
        let takes = operation.arguments().map(expand::given);
        quote!(#pattern => __with::Ended::ended(<#kind>::#method(self, session, #(#takes),*).await))
    });
    let constant = block.items.iter().any(|item| is_named(item, "OPERATIONS"));
    let has = |method: &str| moved.iter().any(|item| is_named(item, method));
    let given = defaults(&kind, &operations, &op, &moved, has("operations") || constant);
    let number = block.items.iter().any(|item| is_named(item, "number")).then(|| {
        quote! {
            use __with::Strategy as _;
            let drawn = drawn.prop_map(move |mut ops| {
                ops.iter_mut().enumerate().for_each(|(number, op)| <#kind>::number(op, client, number));
                ops
            });
            let drawn = drawn.boxed();
        }
    });
    let length = if constant {
        quote!(&<#kind>::OPERATIONS)
    } else {
        let operations = field("operations", &kind);
        quote!({ #operations operations })
    };
    let operations = (!has("operations")).then(|| {
        quote! {
            fn operations(&self, client: usize) -> __with::BoxedStrategy<::std::vec::Vec<#op>> {
                let drawn = __with::list(self.operation(client), #length);
                #number
                drawn
            }
        }
    });
    let apply = (!has("apply")).then(|| {
        quote! {
            async fn apply(&self, session: &mut #session, op: &#op) -> ::shaketable::Outcome<#answer> {
                self.perform(session, op).await
            }
        }
    });
    Ok(quote! {
        #block
        #declared
        const _: () = {
            use ::shaketable::__private as __with;

            impl #kind {
                /// Draws one operation of a client.
                fn operation(&self, client: usize) -> __with::BoxedStrategy<#op> {
                    use __with::Strategy as _;
                    let _ = client;
                    __with::drawn(::std::vec![#(#drawn),*])
                }

                /// Does an operation as its method does it.
                async fn perform(&self, session: &mut #session, op: &#op) -> ::shaketable::Outcome<#answer> {
                    match ::core::clone::Clone::clone(op) {
                        #(#performed,)*
                    }
                }
            }

            impl ::shaketable::Workload for #kind {
                type Op = #op;
                type Answer = #answer;
                type Session = #session;
                type Model = #model;

                const NAME: &'static str = #name;
                const ABOUT: &'static str = #about;

                #operations
                #given
                #apply
                #(#moved)*
            }
        };
    })
}

/// A field of the configuration, in a variable. Where there is none, the compiler accuses the type.
fn field(name: &str, kind: &Type) -> TokenStream {
    let name = Ident::new(name, kind.span());
    quote_spanned!(kind.span()=> let Self { #name, .. } = self;)
}

/// What the trait asks for and the block does not have.
fn defaults(
    kind: &Type,
    operations: &[Operation],
    op: &Ident,
    moved: &[ImplItem],
    fixed: bool,
) -> TokenStream {
    let missing = |method: &str| !moved.iter().any(|item| is_named(item, method));
    let clients = missing("clients").then(|| {
        let clients = field("clients", kind);
        quote!(
            fn clients(&self) -> usize {
                #clients
                *clients
            }
        )
    });
    let length = (missing("length") && !fixed).then(|| {
        let operations = field("operations", kind);
        quote! {
            fn length(&mut self) -> ::core::option::Option<&mut ::core::ops::Range<usize>> {
                #operations
                ::core::option::Option::Some(operations)
            }
        }
    });
    let model = missing("model").then(|| {
        quote!(
            fn model(&self) -> Self::Model {
                ::core::default::Default::default()
            }
        )
    });
    let blind = operations.iter().filter(|one| one.options.blind).map(|one| &one.method);
    let blind: Vec<_> = blind.map(|method| quote!(#op::#method { .. })).collect();
    let free = (!blind.is_empty())
        .then(|| quote!(fn is_conflict_free(&self, op: &#op) -> bool { matches!(op, #(#blind)|*) }));
    let rare = operations.iter().filter(|one| one.options.rare).map(|one| one.method.to_string());
    let rare = missing("rare_kinds").then(|| {
        quote! {
            fn rare_kinds() -> &'static [&'static str] {
                &[#(#rare),*]
            }
        }
    });
    quote! {
        #clients
        #length
        #model
        #free
        #rare
    }
}

/// Whether a method or a constant is one of the trait's.
fn describes(item: &ImplItem) -> bool {
    METHODS.iter().chain(&CONSTANTS).any(|name| is_named(item, name))
}

fn is_named(item: &ImplItem, name: &str) -> bool {
    match item {
        ImplItem::Fn(method) => method.sig.ident == name,
        ImplItem::Const(constant) => constant.ident == name,
        _ => false,
    }
}

/// What an operation of a session cannot have.
fn refused(operation: &Operation) -> Option<Error> {
    let name = operation.method.to_string();
    if METHODS.contains(&name.as_str()) {
        let message = format!("`{name}` describes the workload, and is no operation");
        return Some(Error::new(operation.method.span(), message));
    }
    let taken = operation.takes.iter().any(|taken| matches!(taken, Taken::Env | Taken::Isolation));
    let option = operation.options.of_transaction();
    let message = match (taken, option) {
        (true, _) => "an operation of a session takes it and what is drawn".to_owned(),
        (_, Some(option)) => format!("`{option}` is for an operation that is one transaction"),
        _ => return None,
    };
    Some(Error::new(operation.method.span(), message))
}
