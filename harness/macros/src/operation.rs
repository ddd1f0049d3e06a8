//! One operation: a method that does something in a transaction, with arguments that are drawn.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ImplItemFn, Lit, Pat, PathArguments,
    Result, ReturnType, Token, Type,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned,
};

/// An operation.
pub struct Operation {
    pub method: Ident,
    pub docs: Vec<Attribute>,
    pub options: Options,
    pub takes: Vec<Taken>,
    pub answer: Type,
    /// The error that is named in the return type; none where an alias hides it.
    pub error: Option<Type>,
}

/// What is said in `#[write(..)]` or `#[read(..)]`.
#[derive(Default)]
pub struct Options {
    pub writes: bool,
    pub weight: Option<Expr>,
    pub blind: bool,
    pub rare: bool,
    pub at: bool,
    pub composed: bool,
}

/// What an operation takes after its transaction.
pub enum Taken {
    Env,
    Isolation,
    Argument(Box<Argument>),
}

/// An argument that is drawn.
pub struct Argument {
    pub name: Ident,
    /// Its type, as it is stored.
    pub kind: Type,
    pub by_reference: bool,
    pub strategy: Expr,
}

const KNOWN: &str = "an operation has `weight = N`, `blind`, `rare`, `at` or `composed`";

enum Setting {
    Weight(Expr),
    Word(Ident),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Setting> {
        let word: Ident = input.parse()?;
        if word == "weight" {
            input.parse::<Token![=]>()?;
            let weight: Expr = input.parse()?;
            let is_weight = match &weight {
                Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
                    matches!(number.base10_parse::<u32>(), Ok(1..))
                }
                Expr::Lit(_) => false,
                _ => true,
            };
            return match is_weight {
                true => Ok(Setting::Weight(weight)),
                false => Err(Error::new(weight.span(), "a weight is a number from 1 to 4294967295")),
            };
        }
        if input.peek(Token![=]) {
            return Err(Error::new(word.span(), KNOWN));
        }
        Ok(Setting::Word(word))
    }
}

impl Options {
    /// The options of an operation that this attribute declares.
    fn of(attribute: &Attribute, writes: bool) -> Result<Options> {
        let mut options = Options { writes, ..Options::default() };
        if matches!(attribute.meta, syn::Meta::Path(_)) {
            return Ok(options);
        }
        let settings = attribute.parse_args_with(Punctuated::<Setting, Token![,]>::parse_terminated)?;
        for setting in settings {
            let word = match setting {
                Setting::Weight(weight) => {
                    options.weight = Some(weight);
                    continue;
                }
                Setting::Word(word) => word,
            };
            match word.to_string().as_str() {
                "blind" if writes => options.blind = true,
                "blind" => {
                    return Err(Error::new(word.span(), "`blind` is for an operation that writes"));
                }
                "rare" => options.rare = true,
                "at" => options.at = true,
                "composed" => options.composed = true,
                _ => return Err(Error::new(word.span(), KNOWN)),
            }
        }
        Ok(options)
    }

    /// An option that says what only a workload with a model needs.
    pub fn of_model(&self) -> Option<&'static str> {
        let mut said = [(self.blind, "blind"), (self.rare, "rare")].into_iter();
        let said = said.find(|(is_said, _)| *is_said).map(|(_, name)| name);
        said.or_else(|| self.of_transaction())
    }

    /// An option that says what only an operation of one transaction needs.
    pub fn of_transaction(&self) -> Option<&'static str> {
        let mut said = [(self.at, "at"), (self.composed, "composed")].into_iter();
        said.find(|(is_said, _)| *is_said).map(|(_, name)| name)
    }
}

/// Takes the attributes of this name away.
pub fn take(attributes: &mut Vec<Attribute>, name: &str) -> Vec<Attribute> {
    let (taken, left) = attributes.drain(..).partition(|attribute| attribute.path().is_ident(name));
    *attributes = left;
    taken
}

/// What the documentation of an item says.
pub fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}

/// The last name of a type's path, without references.
pub fn last_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Reference(reference) => last_name(&reference.elem),
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// The answer and the error of a `Result`.
pub fn result_of(output: &ReturnType, span: Span) -> Result<(Type, Option<Type>)> {
    let refused =
        || Error::new(span, "an operation returns a `Result`: its answer, or why the layer refuses it");
    let ReturnType::Type(_, kind) = output else { return Err(refused()) };
    let Type::Path(path) = &**kind else { return Err(refused()) };
    let last = path.path.segments.last().filter(|last| last.ident == "Result").ok_or_else(refused)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Err(refused()) };
    let mut kinds = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind.clone()),
        _ => None,
    });
    Ok((kinds.next().ok_or_else(refused)?, kinds.next()))
}

/// Whether a type is `()`.
pub fn is_unit(kind: &Type) -> bool {
    matches!(kind, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// The name and the type of each argument after `&self`. The first one, the transaction, needs no name.
pub fn arguments(method: &ImplItemFn) -> Result<Vec<(Ident, &Type)>> {
    let mut inputs = method.sig.inputs.iter();
    match inputs.next() {
        Some(FnArg::Receiver(own)) if own.reference.is_some() && own.mutability.is_none() => {}
        _ => {
            let message = "it takes `&self`, the configuration of the run";
            return Err(Error::new(method.sig.ident.span(), message));
        }
    }
    inputs
        .enumerate()
        .map(|(at, input)| match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(name) => Ok((name.ident.clone(), &*typed.ty)),
                other if at == 0 => Ok((Ident::new("_", other.span()), &*typed.ty)),
                pattern => Err(Error::new(pattern.span(), "an argument has a name")),
            },
            FnArg::Receiver(own) => Err(Error::new(own.span(), "`self` comes first")),
        })
        .collect()
}

impl Argument {
    /// Whether it is the level at which the operation reads.
    pub fn is_isolation(&self) -> bool {
        last_name(&self.kind).as_deref() == Some("Isolation")
    }
}

/// What an operation takes first: it is done in a transaction, or with the session of its client.
#[derive(Clone, Copy, PartialEq)]
pub enum First {
    Transaction,
    Session,
}

impl First {
    fn is_missing(self, span: Span) -> Error {
        Error::new(
            span,
            match self {
                First::Transaction => "it takes its transaction next: `tx: &Tx`",
                First::Session => "it takes the session of its client next: `session: &mut Session<Db>`",
            },
        )
    }
}

impl Operation {
    /// The operation that a method is; `None` if it has no attribute that says so. Its attributes are taken
    /// away. An argument without a strategy of its own has that of its name.
    pub fn of(method: &mut ImplItemFn, draws: &mut Draws, first: First) -> Result<Option<Operation>> {
        let kinds = [(true, take(&mut method.attrs, "write")), (false, take(&mut method.attrs, "read"))];
        let mut kinds = kinds.iter().flat_map(|(writes, all)| all.iter().map(move |one| (*writes, one)));
        let Some((writes, attribute)) = kinds.next() else { return Ok(None) };
        if let Some((_, other)) = kinds.next() {
            return Err(Error::new(other.span(), "an operation either writes or only reads"));
        }
        let options = Options::of(attribute, writes)?;
        let name = method.sig.ident.clone();
        if method.sig.asyncness.is_none() {
            return Err(Error::new(method.sig.fn_token.span, "an operation is an `async fn`"));
        }
        if let Some(parameter) = method.sig.generics.params.first() {
            return Err(Error::new(parameter.span(), "an operation has no type parameters"));
        }
        let mut drawn = own_draws(method)?;
        let mut takes = Vec::new();
        for (at, (argument, kind)) in arguments(method)?.into_iter().enumerate() {
            let mut strategy = drawn.remove(0);
            if at == 0 {
                match kind {
                    Type::Reference(_) if strategy.is_none() => continue,
                    _ => return Err(first.is_missing(kind.span())),
                }
            }
            strategy = strategy.or_else(|| draws.of(&argument));
            takes.push(match (strategy, last_name(kind).as_deref(), kind) {
                (None, Some("Env"), _) => Taken::Env,
                (_, Some("Isolation"), _) if writes => {
                    let message =
                        "an operation that writes reads at `Serializable`: only a `#[read]` is given one";
                    return Err(Error::new(kind.span(), message));
                }
                (None, Some("Isolation"), _) => Taken::Isolation,
                (strategy, _, kind) => {
                    let strategy = strategy.ok_or_else(|| {
                        let message = format!(
                            "how is `{argument}` drawn? Give it a strategy, as in `#[draw(0..5u32)]`, \
                             or a method with `#[draws({argument})]`"
                        );
                        Error::new(argument.span(), message)
                    })?;
                    let (kind, by_reference) = match kind {
                        Type::Reference(reference) => (owned(&reference.elem), true),
                        kind => (kind.clone(), false),
                    };
                    Taken::Argument(Box::new(Argument { name: argument, kind, by_reference, strategy }))
                }
            });
        }
        if method.sig.inputs.len() < 2 {
            return Err(first.is_missing(name.span()));
        }
        let (answer, error) = match first {
            First::Transaction => result_of(&method.sig.output, name.span())?,
            // The workload has one type of answers.
            First::Session => (syn::parse_quote!(()), None),
        };
        Ok(Some(Operation { docs: docs(&method.attrs), method: name, options, takes, answer, error }))
    }

    /// The arguments that are drawn.
    pub fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.takes.iter().filter_map(|taken| match taken {
            Taken::Argument(argument) => Some(&**argument),
            _ => None,
        })
    }

    /// Whether it is given the isolation at which it is to read.
    pub fn takes_isolation(&self) -> bool {
        self.takes.iter().any(|taken| matches!(taken, Taken::Isolation))
    }

    /// The argument that is the level at which it reads.
    pub fn drawn_isolation(&self) -> Option<&Ident> {
        self.arguments().find(|argument| argument.is_isolation()).map(|argument| &argument.name)
    }
}

/// The methods that draw arguments by their names.
#[derive(Default)]
pub struct Draws(Vec<Draw>);

struct Draw {
    argument: Ident,
    method: Ident,
    takes_self: bool,
    takes_client: bool,
    is_used: bool,
}

impl Draws {
    /// Takes the attribute `#[draws(..)]` of a method.
    pub fn note(&mut self, method: &mut ImplItemFn) -> Result<()> {
        for attribute in take(&mut method.attrs, "draws") {
            let takes_self = method.sig.inputs.iter().any(|input| matches!(input, FnArg::Receiver(_)));
            let takes_client = method.sig.inputs.len() > usize::from(takes_self);
            if let (true, ReturnType::Type(_, kind)) = (takes_self, &method.sig.output)
                && matches!(**kind, Type::ImplTrait(_))
            {
                let message = "an `impl Strategy` borrows `self`, and operations outlive it: \
                               return a `BoxedStrategy<..>`, or take no `self`";
                return Err(Error::new(kind.span(), message));
            }
            let names = attribute.parse_args_with(Punctuated::<Ident, Token![,]>::parse_terminated)?;
            for argument in names {
                if self.0.iter().any(|draw| draw.argument == argument) {
                    let message = format!("`{argument}` is drawn by another method");
                    return Err(Error::new(argument.span(), message));
                }
                self.0.push(Draw {
                    argument,
                    method: method.sig.ident.clone(),
                    takes_self,
                    takes_client,
                    is_used: false,
                });
            }
        }
        Ok(())
    }

    /// The strategy of an argument of this name.
    fn of(&mut self, argument: &Ident) -> Option<Expr> {
        let draw = self.0.iter_mut().find(|draw| draw.argument == *argument)?;
        draw.is_used = true;
        let method = &draw.method;
        let client = draw.takes_client.then(|| Ident::new("client", method.span()));
        Some(match draw.takes_self {
            true => syn::parse_quote!(self.#method(#client)),
            false => syn::parse_quote!(Self::#method(#client)),
        })
    }

    /// A name that no operation has.
    pub fn unused(&self) -> Option<&Ident> {
        self.0.iter().find(|draw| !draw.is_used).map(|draw| &draw.argument)
    }
}

/// What is kept of an argument that is taken by reference.
fn owned(kind: &Type) -> Type {
    match kind {
        Type::Slice(slice) => {
            let of = &slice.elem;
            syn::parse_quote!(::std::vec::Vec<#of>)
        }
        kind if last_name(kind).as_deref() == Some("str") => syn::parse_quote!(::std::string::String),
        kind => kind.clone(),
    }
}

/// Takes the strategy of each argument after `self` away.
fn own_draws(method: &mut ImplItemFn) -> Result<Vec<Option<Expr>>> {
    let mut all = Vec::new();
    for input in &mut method.sig.inputs {
        let FnArg::Typed(typed) = input else { continue };
        let mut drawn = take(&mut typed.attrs, "draw").into_iter();
        let strategy = drawn.next().map(|attribute| attribute.parse_args::<Expr>()).transpose()?;
        if let Some(other) = drawn.next() {
            return Err(Error::new(other.span(), "an argument has one strategy"));
        }
        all.push(strategy);
    }
    Ok(all)
}

/// Whether two types are written alike.
pub fn same(one: &Type, other: &Type) -> bool {
    one.to_token_stream().to_string() == other.to_token_stream().to_string()
}
