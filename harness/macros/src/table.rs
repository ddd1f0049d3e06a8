//! What an `impl` block says of a workload.

use crate::operation::{Draws, First, Operation, docs, same, take};
use syn::{
    Error, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Result, ReturnType, Token, Type, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned,
};

/// What is said in `#[workload(..)]`.
pub struct Attribute {
    /// The name on the command line; without one, it is made of the type's.
    pub name: Option<LitStr>,
    /// The model; without one, the block has invariants.
    pub model: Option<Type>,
    pub error: Option<Type>,
    /// The state of a client between operations, and what all of them return, where an operation is several
    /// transactions.
    pub session: Option<Type>,
    pub answer: Option<Type>,
    /// Whether a block with `#[planted]` has its planted bugs.
    pub planted: bool,
    /// What the layer promises.
    pub turns: bool,
    pub limits: bool,
    /// The general bugs that it does not have, and whether it has the one that few layers show.
    pub without: Vec<Ident>,
    pub risky_read: bool,
}

/// Names of general planted bugs, as they stand in `without(..)`.
pub const GENERAL: [&str; 7] =
    ["unrecorded", "unwritten", "deferred", "not_awaited", "remembered", "kept_version", "interleaved"];

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> Result<Attribute> {
        let (mut name, mut model, mut error, mut session, mut answer) = (None, None, None, None, None);
        let (mut planted, mut turns, mut limits, mut risky_read, mut without) =
            (false, false, false, false, Vec::new());
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "name" => {
                    input.parse::<Token![=]>()?;
                    name = Some(input.parse::<LitStr>()?);
                }
                "model" => model = Some(is(input)?),
                "error" => error = Some(is(input)?),
                "session" => session = Some(is(input)?),
                "answer" => answer = Some(is(input)?),
                "planted" => planted = true,
                "risky_read" => risky_read = true,
                "promises" => {
                    for promise in words(input)? {
                        match promise.to_string().as_str() {
                            "turns" => turns = true,
                            "limits" => limits = true,
                            _ => {
                                return Err(Error::new(
                                    promise.span(),
                                    "a layer promises `turns` or `limits`",
                                ));
                            }
                        }
                    }
                }
                "without" => {
                    without = words(input)?.into_iter().collect();
                    let unknown = without.iter().find(|word| !GENERAL.contains(&word.to_string().as_str()));
                    if let Some(unknown) = unknown {
                        let message = format!("the general bugs are {}", GENERAL.join(", "));
                        return Err(Error::new(unknown.span(), message));
                    }
                }
                _ => {
                    let message = "a workload has `name`, `model`, `error`, `session`, `answer`, `planted`, `promises`, `risky_read` or `without`";
                    return Err(Error::new(word.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if let Some(name) = &name
            && (name.value().is_empty() || !name.value().chars().all(is_name))
        {
            let message = "a name on the command line has lower case letters, digits, `_` and `-`";
            return Err(Error::new(name.span(), message));
        }
        Ok(Attribute { name, model, error, session, answer, planted, turns, limits, without, risky_read })
    }
}

impl Attribute {
    /// What it says that only a workload can do whose operations are one transaction each, and which has a
    /// model.
    pub fn of_transactions(&self) -> Option<&'static str> {
        let said = [
            (self.planted, "planted"),
            (self.turns || self.limits, "promises"),
            (!self.without.is_empty(), "without"),
            (self.risky_read, "risky_read"),
        ];
        said.into_iter().find(|(is_said, _)| *is_said).map(|(_, name)| name)
    }
}

/// The type after `=`.
fn is(input: ParseStream<'_>) -> Result<Type> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn words(input: ParseStream<'_>) -> Result<Punctuated<Ident, Token![,]>> {
    let content;
    parenthesized!(content in input);
    Punctuated::parse_terminated(&content)
}

/// A workload.
pub struct Table {
    pub attribute: Attribute,
    /// The block, without the attributes of its methods.
    pub block: ItemImpl,
    /// The type that the block is of, and its name.
    pub kind: Type,
    pub kind_name: Ident,
    pub about: String,
    pub operations: Vec<Operation>,
    /// The error of all operations.
    pub error: Type,
    /// The method that reads what is stored, for the model.
    pub stored: Option<Ident>,
    /// What must always hold: its name, and the method.
    pub invariants: Vec<(LitStr, Ident)>,
    /// Methods by whose names the workload is described further: the name, and the number of arguments.
    pub described: Vec<(Ident, usize)>,
    /// Constants by whose names it is.
    pub constants: Vec<(Ident, Type)>,
    /// Whether `setup` is given a transaction, and not the database.
    pub sets_up_in_transaction: bool,
}

/// The methods by whose names a workload is described. None of them is an operation.
pub const DESCRIBED: [&str; 17] = [
    "draw",
    "keys",
    "subspaces",
    "number",
    "is_conflict_free",
    "describe_key",
    "describe_value",
    "setup",
    "is_effect",
    "model",
    "choose",
    "refuses_cleanly",
    "apply",
    "resolve",
    "timeout",
    "wait",
    "points",
];

/// Those of a workload without a model.
const DESCRIBED_OF_INVARIANTS: [&str; 5] = ["draw", "keys", "subspaces", "setup", "points"];

/// The constants by whose names a workload is described.
const CONSTANTS: [&str; 4] = ["CLIENTS", "TRANSACTIONS", "TOGETHER", "JOINS"];

/// Those of a workload without a model.
const CONSTANTS_OF_INVARIANTS: [&str; 3] = ["CLIENTS", "OPERATIONS", "MAY_OVERWRITE"];

impl Table {
    /// What the block says.
    pub fn of(attribute: Attribute, mut block: ItemImpl) -> Result<Table> {
        let (kind, kind_name) = named_type(&block)?;
        let about = about(&block)?;
        let mut failed: Option<Error> = None;
        let mut fail = |e: Error| match &mut failed {
            Some(first) => first.combine(e),
            none => *none = Some(e),
        };
        let (mut operations, mut stored) = (Vec::<Operation>::new(), None::<Ident>);
        let mut invariants = Vec::new();
        let has_model = attribute.model.is_some();
        let (methods, known, unknown) = match has_model {
            true => (&DESCRIBED[..], &CONSTANTS[..], &CONSTANTS_OF_INVARIANTS[..]),
            false => (&DESCRIBED_OF_INVARIANTS[..], &CONSTANTS_OF_INVARIANTS[..], &CONSTANTS[..]),
        };
        let (mut described, mut constants, mut sets_up_in_transaction) = (Vec::new(), Vec::new(), false);
        let (mut draws, mut attempted) = (Draws::default(), false);
        for item in &mut block.items {
            if let ImplItem::Fn(method) = item {
                draws.note(method).unwrap_or_else(&mut fail);
            }
        }
        for item in &mut block.items {
            match item {
                ImplItem::Fn(method) => {
                    let name = method.sig.ident.clone();
                    if let Some(attribute) = take(&mut method.attrs, "stored").first() {
                        match &stored {
                            Some(_) => fail(Error::new(attribute.span(), "one method reads what is stored")),
                            None => stored = Some(name),
                        }
                        continue;
                    }
                    if let Some(attribute) = take(&mut method.attrs, "invariant").first() {
                        match attribute.parse_args::<LitStr>() {
                            Ok(words) => invariants.push((words, name)),
                            Err(e) => fail(Error::new(
                                e.span(),
                                "an invariant has a name: `#[invariant(\"the sum stays\")]`",
                            )),
                        }
                        continue;
                    }
                    let done = Operation::of(method, &mut draws, First::Transaction);
                    attempted |= !matches!(done, Ok(None));
                    match done {
                        Ok(Some(operation)) if DESCRIBED.contains(&name.to_string().as_str()) => {
                            let message =
                                format!("`{}` describes the workload, and is no operation", operation.method);
                            fail(Error::new(name.span(), message));
                        }
                        Ok(Some(operation)) => {
                            if let (false, Some(option)) = (has_model, operation.options.of_model()) {
                                let message = format!("`{option}` is for a workload with a model");
                                fail(Error::new(name.span(), message));
                            }
                            operations.push(operation);
                        }
                        Ok(None) if DESCRIBED.contains(&name.to_string().as_str()) => {
                            if !methods.contains(&name.to_string().as_str()) {
                                let message = format!("`{name}` describes a workload with a model");
                                fail(Error::new(name.span(), message));
                            }
                            if name == "setup" {
                                sets_up_in_transaction = takes_transaction(method);
                            }
                            described.push((name, method.sig.inputs.len()));
                        }
                        Ok(None) => {}
                        Err(e) => fail(e),
                    }
                }
                ImplItem::Const(constant) if known.contains(&constant.ident.to_string().as_str()) => {
                    constants.push((constant.ident.clone(), constant.ty.clone()));
                }
                ImplItem::Const(constant) if unknown.contains(&constant.ident.to_string().as_str()) => {
                    let with = if has_model { "without" } else { "with" };
                    let message = format!("`{}` describes a workload {with} a model", constant.ident);
                    fail(Error::new(constant.ident.span(), message));
                }
                _ => {}
            }
        }
        let said_twice = |method: &str, option: &str, has: fn(&Operation) -> bool| {
            let own = operations
                .iter()
                .find(|of| has(of))
                .filter(|_| described.iter().any(|(name, _)| name == method))?;
            let message = format!("`{method}` takes the place of `{option}`");
            Some(Error::new(own.method.span(), message))
        };
        said_twice("is_conflict_free", "blind", |of| of.options.blind).into_iter().for_each(&mut fail);
        said_twice("refuses_cleanly", "composed", |of| of.options.composed).into_iter().for_each(&mut fail);
        if let Some(unused) = draws.unused() {
            fail(Error::new(unused.span(), format!("no operation takes `{unused}`")));
        }
        match (&attribute.model, &stored, invariants.first()) {
            (Some(_), None, _) => {
                let message = "one method reads what is stored, as the model: mark it with `#[stored]`";
                fail(Error::new(kind.span(), message));
            }
            (Some(_), _, Some((words, _))) => {
                let message =
                    "what is stored is compared with the model: an invariant is for a workload without one";
                fail(Error::new(words.span(), message));
            }
            (None, Some(stored), _) => {
                let message = "it is read as which model? Write `model = TYPE` in the attribute";
                fail(Error::new(stored.span(), message));
            }
            (None, None, None) => {
                let message = "a workload has a model, `model = TYPE`, or says what must hold: mark methods with `#[invariant(\"..\")]`";
                fail(Error::new(kind.span(), message));
            }
            _ => {}
        }
        if let (None, Some(said)) = (&attribute.model, attribute.of_transactions()) {
            fail(Error::new(kind.span(), format!("`{said}` is for a workload with a model")));
        }
        if let Some(answer) = &attribute.answer {
            fail(Error::new(answer.span(), "`answer` is for operations of a session: `session = TYPE`"));
        }
        if operations.is_empty() && !attempted {
            fail(Error::new(
                kind.span(),
                "a workload has operations: mark methods with `#[write]` or `#[read]`",
            ));
        }
        let error = attribute.error.clone().or_else(|| operations.iter().find_map(|of| of.error.clone()));
        for operation in &operations {
            if let (Some(own), Some(error)) = (&operation.error, &error)
                && !same(own, error)
            {
                fail(Error::new(own.span(), "all operations are refused with the same error"));
            }
        }
        if error.is_none() && !operations.is_empty() {
            fail(Error::new(
                operations[0].answer.span(),
                "with which error? Write `Result<.., Error>`, or `error = ..` in the attribute",
            ));
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        let Some(error) = error else { unreachable!("it was refused") };
        Ok(Table {
            attribute,
            block,
            kind,
            kind_name,
            about,
            operations,
            error,
            stored,
            invariants,
            described,
            constants,
            sets_up_in_transaction,
        })
    }

    /// How many arguments the method of this name takes, if there is one.
    pub fn described(&self, name: &str) -> Option<usize> {
        self.described.iter().find(|(own, _)| own == name).map(|(_, count)| *count)
    }
}

/// The type that a block is of, and its name.
pub fn named_type(block: &ItemImpl) -> Result<(Type, Ident)> {
    if let Some((_, of, _)) = &block.trait_ {
        return Err(Error::new(of.span(), "a workload is an `impl` block of a type, without a trait"));
    }
    if let Some(parameter) = block.generics.params.first() {
        return Err(Error::new(parameter.span(), "a workload has no type parameters"));
    }
    let kind = (*block.self_ty).clone();
    let name = match &kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.clone()),
        _ => None,
    };
    let name = name.ok_or_else(|| Error::new(kind.span(), "a workload is a type with a name"))?;
    Ok((kind, name))
}

/// The name on the command line.
pub fn name(attribute: &Attribute, kind_name: &Ident) -> String {
    if let Some(name) = &attribute.name {
        return name.value();
    }
    let mut name = String::new();
    for (at, c) in kind_name.to_string().chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// What the block says of the workload: the first line of its documentation.
pub fn about(block: &ItemImpl) -> Result<String> {
    let first = documentation(&block.attrs).into_iter().next();
    first.filter(|line| !line.is_empty()).map(|line| listed(&line)).ok_or_else(|| {
        let message = "a workload says in one line what it shakes: a `///` before this block";
        Error::new(block.impl_token.span, message)
    })
}

/// A sentence as lists show it: without its full stop, and with a small letter unless its first word has more
/// capitals.
pub fn listed(sentence: &str) -> String {
    let line = sentence.trim_end_matches('.');
    let (first, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
    let word = rest.split(' ').next().unwrap_or_default();
    match word.chars().any(char::is_uppercase) {
        true => line.to_owned(),
        false => first.to_lowercase() + rest,
    }
}

/// The lines of an item's documentation.
pub fn documentation(attributes: &[syn::Attribute]) -> Vec<String> {
    let lines = docs(attributes).into_iter().filter_map(|line| match &line.meta {
        syn::Meta::NameValue(pair) => text_of(&pair.value),
        _ => None,
    });
    lines.collect()
}

/// A literal text, which a macro may have passed on.
fn text_of(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
        syn::Expr::Group(group) => text_of(&group.expr),
        _ => None,
    }
}

/// Whether the last argument of a method is a transaction, and what it returns a result.
fn takes_transaction(method: &ImplItemFn) -> bool {
    let last = method.sig.inputs.last();
    matches!(last, Some(syn::FnArg::Typed(typed)) if crate::operation::last_name(&typed.ty).as_deref() == Some("Tx"))
        && matches!(method.sig.output, ReturnType::Type(..))
}
