//! Planted bugs: other bodies of operations.

use crate::{
    operation::{arguments, is_unit, last_name, result_of, take},
    table::{documentation, listed},
};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Result, ReturnType, Token, Type,
    parse::{Parse, ParseStream},
    spanned::Spanned,
};

/// What is said in `#[bug(..)]`: the operations that it changes, and what the bug is, or that it is a further
/// part of another one.
struct Said {
    /// None: whatever the calls of a transaction are.
    operations: Vec<Ident>,
    what: What,
}

/// What is said in `#[flaw(..)]`: operations whose transaction has a flaw.
struct Flawed {
    name: Ident,
    operations: Vec<Ident>,
    flaw: Ident,
    about: LitStr,
    source: LitStr,
}

impl Parse for Flawed {
    fn parse(input: ParseStream<'_>) -> Result<Flawed> {
        let usage = |e: Error| {
            let message =
                "a flaw is `#[flaw(NAME, OPERATION, FLAW, \"what is wrong\", \"where it comes from\")]`";
            Error::new(e.span(), message)
        };
        let name = input.parse().map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let operations = alternatives(input).map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let flaw = input.parse().map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let about = input.parse().map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let source = input.parse().map_err(usage)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Flawed { name, operations, flaw, about, source })
    }
}

/// What is said in `#[named(..)]`: a bug that is another configuration, or another way to apply.
struct Named {
    name: Ident,
    about: LitStr,
    source: LitStr,
    only_simulated: Option<LitStr>,
}

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> Result<Named> {
        let usage = |e: Error| {
            let message = "it is `#[named(NAME, \"what is wrong\", \"where it comes from\")]`";
            Error::new(e.span(), message)
        };
        let name = input.parse().map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let about = input.parse().map_err(usage)?;
        input.parse::<Token![,]>().map_err(usage)?;
        let source = input.parse().map_err(usage)?;
        Ok(Named { name, about, source, only_simulated: only_simulated(input)? })
    }
}

/// The text that may end a list.
fn only_simulated(input: ParseStream<'_>) -> Result<Option<LitStr>> {
    match input.parse::<Option<Token![,]>>()? {
        Some(_) if !input.is_empty() => Ok(Some(input.parse()?)),
        _ => Ok(None),
    }
}

/// What a bug's method says of it: the first paragraph of its documentation.
fn about(method: &ImplItemFn) -> Result<String> {
    let lines = documentation(&method.attrs);
    let paragraph: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| !line.is_empty()).collect();
    match paragraph.is_empty() {
        false => Ok(listed(&paragraph.join(" "))),
        true => {
            let message = "a bug says what is wrong: a `///` before its method";
            Err(Error::new(method.sig.ident.span(), message))
        }
    }
}

/// The value of a bug.
fn declared(
    name: &str,
    about: &impl ToTokens,
    source: &LitStr,
    only_simulated: Option<&LitStr>,
) -> TokenStream {
    let only_simulated = match only_simulated {
        Some(words) => quote!(::core::option::Option::Some(#words)),
        None => quote!(::core::option::Option::None),
    };
    quote!(::shaketable::Bug { name: #name, about: #about, source: #source, only_simulated: #only_simulated })
}

/// `add | take`.
fn alternatives(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let mut operations = vec![input.parse::<Ident>()?];
    while input.parse::<Option<Token![|]>>()?.is_some() {
        operations.push(input.parse()?);
    }
    Ok(operations)
}

enum What {
    Bug { source: LitStr, only_simulated: Option<LitStr> },
    PartOf(LitStr),
}

impl Parse for Said {
    fn parse(input: ParseStream<'_>) -> Result<Said> {
        let operations = match input.parse::<Option<Token![*]>>()? {
            Some(_) => Vec::new(),
            None => alternatives(input)?,
        };
        let usage = |e: Error| {
            let message = "a bug is `#[bug(OPERATION, \"where it comes from\")]`, \
                           and a further part of one is `#[bug(OPERATION, part_of = \"NAME\")]`";
            Error::new(e.span(), message)
        };
        input.parse::<Token![,]>().map_err(usage)?;
        if input.peek(Ident) {
            let word: Ident = input.parse()?;
            if word != "part_of" {
                return Err(usage(Error::new(word.span(), "")));
            }
            input.parse::<Token![=]>()?;
            return Ok(Said { operations, what: What::PartOf(input.parse()?) });
        }
        let source = input.parse().map_err(usage)?;
        let only_simulated = only_simulated(input)?;
        Ok(Said { operations, what: What::Bug { source, only_simulated } })
    }
}

/// The block, and an implementation of `Planted`.
pub fn expand(attribute: TokenStream, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some(word) = attribute.into_iter().next() {
        return Err(Error::new(word.span(), "`#[planted]` says nothing more"));
    }
    let kind = (*block.self_ty).clone();
    let (mut bugs, mut arms, mut failed) = (Vec::new(), Arms::default(), None::<Error>);
    for attribute in take(&mut block.attrs, "named") {
        let Named { name, about, source, only_simulated } = attribute.parse_args()?;
        let name = name.to_string().replace('_', "-");
        bugs.push((name.clone(), declared(&name, &about, &source, only_simulated.as_ref())));
    }
    for attribute in take(&mut block.attrs, "flaw") {
        let Flawed { name, operations, flaw, about, source } = attribute.parse_args()?;
        let name = name.to_string().replace('_', "-");
        bugs.push((name.clone(), declared(&name, &about, &source, None)));
        let patterns =
            operations.iter().map(|operation| quote_spanned!(operation.span()=> Op::#operation { .. }));
        arms.performed.push(quote! {
            (#name, op @ (#(#patterns)|*)) => {
                let flawed = __with::flawed(tx, __with::Flaw::#flaw, __with::everything());
                let done = ::shaketable::specimen::Specimen::perform(self, &flawed, env, &op, isolation);
                ::core::option::Option::Some(done.await)
            }
        });
    }
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        for attribute in take(&mut method.attrs, "bug") {
            if let Err(e) = bug(&kind, method, &attribute, &mut bugs, &mut arms) {
                match &mut failed {
                    Some(first) => first.combine(e),
                    none => *none = Some(e),
                }
            }
        }
    }
    if bugs.is_empty() && failed.is_none() {
        return Err(Error::new(
            kind.span(),
            "there is no bug: mark methods with `#[bug(..)]`, or the block with `#[flaw(..)]` or `#[named(..)]`",
        ));
    }
    // The workload can do without the bugs that are refused.
    let failed = failed.map(Error::into_compile_error);
    let Arms { performed, applied, composed } = arms;
    let bugs = bugs.iter().map(|(_, bug)| bug);
    Ok(quote! {
        #failed
        // A method's name is the bug's.
        #[allow(clippy::wrong_self_convention)]
        #block
        const _: () = {
            use ::shaketable::__private as __with;
            type Op = <#kind as ::shaketable::specimen::Specimen>::Op;
            type Answer = <#kind as ::shaketable::specimen::Specimen>::Answer;

            impl ::shaketable::table::Planted for #kind {
                const BUGS: &'static [::shaketable::Bug] = &[#(#bugs),*];

                async fn perform(
                    &self,
                    bug: &str,
                    (tx, env): (&__with::Tx, &__with::Env),
                    op: &Op,
                    isolation: __with::Isolation,
                ) -> ::core::option::Option<::core::result::Result<Answer, Self::Error>> {
                    let isolation = <#kind as ::shaketable::specimen::Specimen>::level(op, isolation);
                    let _ = (tx, env, isolation);
                    match (bug, ::core::clone::Clone::clone(op)) {
                        #(#performed,)*
                        _ => ::core::option::Option::None,
                    }
                }

                async fn apply(
                    &self,
                    bug: &str,
                    session: &mut __with::tx::once::Session<__with::Db>,
                    ops: &[Op],
                ) -> ::core::option::Option<::shaketable::Outcome<::shaketable::specimen::Answer<Answer>>>
                {
                    let _ = &session;
                    #(#composed)*
                    let [op] = ops else { return ::core::option::Option::None };
                    match (bug, ::core::clone::Clone::clone(op)) {
                        #(#applied,)*
                        _ => ::core::option::Option::None,
                    }
                }
            }
        };
    })
}

/// The arms of the two functions that do an operation with a bug.
#[derive(Default)]
struct Arms {
    performed: Vec<TokenStream>,
    applied: Vec<TokenStream>,
    /// What is done with all calls of a transaction.
    composed: Vec<TokenStream>,
}

/// Notes the bug, or the part of one, that an attribute of a method declares.
fn bug(
    kind: &Type,
    method: &ImplItemFn,
    attribute: &Attribute,
    bugs: &mut Vec<(String, TokenStream)>,
    arms: &mut Arms,
) -> Result<()> {
    let Said { operations, what } = attribute.parse_args()?;
    let is_known = |name: &str| bugs.iter().any(|(known, _)| known == name);
    let name = match what {
        What::Bug { source, only_simulated } => {
            let name = method.sig.ident.to_string().replace('_', "-");
            if is_known(&name) {
                return Err(Error::new(attribute.span(), "a bug is declared once"));
            }
            let about = about(method)?;
            bugs.push((name.clone(), declared(&name, &about, &source, only_simulated.as_ref())));
            name
        }
        What::PartOf(name) if is_known(&name.value()) => name.value(),
        What::PartOf(name) => {
            return Err(Error::new(name.span(), "no bug before this one has this name"));
        }
    };
    if operations.is_empty() {
        let method = &method.sig.ident;
        arms.composed.push(quote! {
            if bug == #name {
                return <#kind>::#method(self, session, ops).await;
            }
        });
    }
    for operation in &operations {
        match body(kind, method, operation, &name)? {
            (true, arm) => arms.performed.push(arm),
            (false, arm) => arms.applied.push(arm),
        }
    }
    Ok(())
}

/// Where a body does its work.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Transaction,
    Database,
    Session,
}

/// The arm that does an operation with this body, and whether it is one of a single transaction.
fn body(kind: &Type, method: &ImplItemFn, operation: &Ident, bug: &str) -> Result<(bool, TokenStream)> {
    if method.sig.asyncness.is_none() {
        return Err(Error::new(method.sig.fn_token.span, "the body of an operation is an `async fn`"));
    }
    let (mut place, mut takes, mut fields) = (None, Vec::new(), Vec::new());
    for (at, (argument, of)) in arguments(method)?.into_iter().enumerate() {
        let name = last_name(of);
        if at == 0 {
            place = Some(match name.as_deref() {
                Some("Tx") => Place::Transaction,
                Some("Db") => Place::Database,
                Some("Session") => Place::Session,
                _ => return Err(place_of(of.span())),
            });
            continue;
        }
        takes.push(match name.as_deref() {
            Some("Env") => quote!(env),
            Some("Isolation") => quote!(isolation),
            _ => {
                fields.push(argument.clone());
                match of {
                    Type::Reference(_) => quote!(&#argument),
                    _ => quote!(#argument),
                }
            }
        });
    }
    let place = place.ok_or_else(|| place_of(method.sig.ident.span()))?;
    let (name, pattern) =
        (&method.sig.ident, quote_spanned!(operation.span()=> (#bug, Op::#operation { #(#fields,)* .. })));
    let (answer, error) = match place {
        Place::Session => (outcome_of(&method.sig.output, name.span())?, None),
        _ => result_of(&method.sig.output, name.span())?,
    };
    // What a retry loop returns may have been committed.
    let may_be_committed = error.as_ref().and_then(last_name).as_deref() == Some("RunError");
    let answered = match is_unit(&answer) {
        true => quote!(|()| Answer::#operation),
        false => quote!(Answer::#operation),
    };
    let arm = match place {
        Place::Transaction => quote! {
            #pattern => ::core::option::Option::Some(
                <#kind>::#name(self, tx, #(#takes),*).await.map(#answered)
            )
        },
        Place::Database if may_be_committed => quote! {
            #pattern => {
                let db = ::core::clone::Clone::clone(session.database());
                let ran = <#kind>::#name(self, &db, #(#takes),*).await.map(#answered);
                ::core::option::Option::Some(::shaketable::specimen::ran(ran.map(|answer| ::std::vec![answer])))
            }
        },
        Place::Database => quote! {
            #pattern => {
                let db = ::core::clone::Clone::clone(session.database());
                let done = <#kind>::#name(self, &db, #(#takes),*).await.map(#answered);
                ::core::option::Option::Some(__with::outcome(done))
            }
        },
        Place::Session => quote! {
            #pattern => {
                let done = <#kind>::#name(self, session, #(#takes),*).await;
                ::core::option::Option::Some(__with::Alone::alone(done, #answered))
            }
        },
    };
    Ok((place == Place::Transaction, arm))
}

fn place_of(span: Span) -> Error {
    Error::new(span, "the body of a bug takes `tx: &Tx`, `db: &Db` or `session: &mut Session<Db>` next")
}

/// The answer in `Outcome<..>`, or in `Outcome<Answer<..>>`.
fn outcome_of(output: &ReturnType, span: Span) -> Result<Type> {
    let outcome = match output {
        ReturnType::Type(_, kind) => inside(kind, "Outcome"),
        ReturnType::Default => None,
    };
    let answer = outcome.map(|of| inside(of, "Answer").unwrap_or(of));
    let refused = || Error::new(span, "a bug of a session returns the `Outcome<..>` of the operation");
    answer.cloned().ok_or_else(refused)
}

/// The first type in the angle brackets of a type with this name.
fn inside<'a>(kind: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(kind)) => Some(kind),
        _ => None,
    }
}
