//! What a table becomes: the types of its operations and answers, and an implementation of `Specimen`.

use crate::{
    operation::{Operation, Taken, is_unit},
    table::{GENERAL, Table, name},
};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;

/// Everything that takes the place of the block.
pub fn expand(table: &Table) -> TokenStream {
    let (block, types) = (&table.block, types(table));
    let implemented = match (&table.attribute.model, &table.stored) {
        (Some(model), Some(stored)) => specimen(table, model, stored),
        _ => invariants(table),
    };
    quote! {
        #block
        #types
        const _: () = {
            use ::shaketable::__private as __with;
            #implemented
        };
    }
}

fn types(table: &Table) -> TokenStream {
    let (op, answer) = names(table);
    let answers = table.operations.iter().map(|Operation { method, answer, .. }| match is_unit(answer) {
        true => quote!(#method),
        false => quote!(#method(#answer)),
    });
    let answers = table.attribute.model.as_ref().map(|_| {
        let answer_doc = format!("What an operation of [`{}`] returns.", table.kind_name);
        quote! {
            #[doc = #answer_doc]
            #[allow(non_camel_case_types, missing_docs, private_interfaces)]
            #[derive(
                Clone, Debug, PartialEq,
                ::shaketable::__private::serde::Serialize, ::shaketable::__private::serde::Deserialize,
            )]
            #[serde(crate = "::shaketable::__private::serde")]
            pub enum #answer { #(#answers),* }
        }
    });
    let declared = declared(&table.kind_name, &op, &table.operations);
    quote! {
        #declared
        #answers
    }
}

/// The type of the operations.
pub fn declared(kind_name: &Ident, op: &Ident, operations: &[Operation]) -> TokenStream {
    let variants = operations.iter().map(|operation| {
        let Operation { method, docs, .. } = operation;
        let (names, kinds): (Vec<_>, Vec<_>) =
            operation.arguments().map(|argument| (&argument.name, &argument.kind)).unzip();
        quote!(#(#docs)* #method { #(#names: #kinds),* })
    });
    let op_doc = format!("An operation of [`{kind_name}`].");
    quote! {
        #[doc = #op_doc]
        #[allow(non_camel_case_types, missing_docs, private_interfaces)]
        #[derive(
            Clone, Debug,
            ::shaketable::__private::serde::Serialize, ::shaketable::__private::serde::Deserialize,
        )]
        #[serde(crate = "::shaketable::__private::serde")]
        pub enum #op { #(#variants),* }
    }
}

/// The names of the types of operations and of answers.
fn names(table: &Table) -> (Ident, Ident) {
    (format_ident!("{}Op", table.kind_name), format_ident!("{}Answer", table.kind_name))
}

/// A workload with a model.
fn specimen(table: &Table, model: &Type, stored: &Ident) -> TokenStream {
    let (kind, error) = (&table.kind, &table.error);
    let (op, answer) = names(table);
    let (name, about) = (name(&table.attribute, &table.kind_name), &table.about);
    let (limits, turns) = (table.attribute.limits, table.attribute.turns);
    let constants = table.constants.iter().map(|(name, of)| quote!(const #name: #of = <#kind>::#name;));
    let (bugs, described) = (bugs(table), described(table, model));
    let all = &table.operations;
    let (writes, free, isolated, rare, composed): (Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>) = (
        names_of(all, |one| one.options.writes),
        names_of(all, |one| one.options.blind),
        names_of(all, Operation::takes_isolation),
        names_of(all, |one| one.options.rare),
        names_of(all, |one| one.options.composed),
    );
    let rare = rare.iter().map(|name| name.to_string());
    let matching = |some: &[TokenStream]| match some {
        [] => quote!({
            let _ = op;
            false
        }),
        some => quote!(matches!(op, #(#some)|*)),
    };
    let any = |names: &[&Ident]| names.iter().map(|name| quote!(#op::#name { .. })).collect::<Vec<_>>();
    // The looks that are drawn at one of the levels.
    let looks = |level: TokenStream| {
        let drawn = all.iter().filter_map(|one| Some((&one.method, one.drawn_isolation()?)));
        let looks = drawn.map(|(look, field)| quote!(#op::#look { #field: __with::Isolation::#level, .. }));
        looks.collect::<Vec<_>>()
    };
    let at_snapshot = looks(quote!(Snapshot));
    let isolated = matching(&[any(&isolated), looks(quote!(Serializable))].concat());
    let (writes, composed) = (matching(&any(&writes)), matching(&any(&composed)));
    let free = match table.described("is_conflict_free") {
        Some(_) => quote!(<#kind>::is_conflict_free(self, op)),
        None => matching(&[any(&free), at_snapshot.clone()].concat()),
    };
    let level = match at_snapshot.is_empty() {
        true => quote!(),
        false => {
            let is_snapshot = matching(&at_snapshot);
            quote! {
                fn level(op: &#op, isolation: __with::Isolation) -> __with::Isolation {
                    if #is_snapshot { __with::Isolation::Snapshot } else { isolation }
                }
            }
        }
    };
    let clean = match table.described("refuses_cleanly") {
        Some(_) => quote!(<#kind>::refuses_cleanly(op, refusal)),
        None => quote!(!#composed),
    };
    let drawn = drawn(table);
    let performed = all.iter().map(|operation| {
        let (call, answered) = (call(table, operation), answered(operation, &answer));
        quote!(#call.map(#answered))
    });
    let replayed = all.iter().map(|operation| {
        let (method, pattern) = (&operation.method, pattern(operation, &op));
        let (takes, kind) = (operation.arguments().map(given), &operation.answer);
        let at = operation.options.at.then(|| quote!(at));
        let answered = answered(operation, &answer);
        // An error about the model's method points at the operation.
        let expected = quote_spanned!(method.span()=> <#model>::#method(model, #(#takes,)* #at));
        quote!(#pattern => {
            let expected: ::core::result::Result<#kind, #error> = #expected;
            expected.map(#answered)
        })
    });
    quote! {
        impl ::shaketable::specimen::Specimen for #kind {
            type Op = #op;
            type Answer = #answer;
            type Error = #error;
            type Model = #model;

            const NAME: &'static str = #name;
            const ABOUT: &'static str = #about;
            const CHECKS_LIMITS: bool = #limits;
            #(#constants)*

            #bugs
            #described

            #drawn

            fn is_read_only(op: &#op) -> bool {
                !#writes
            }

            fn refuses_cleanly(op: &#op, refusal: &#error) -> bool {
                let _ = refusal;
                #clean
            }

            fn is_conflict_free(&self, op: &#op) -> bool {
                #free
            }

            fn rare_kinds() -> &'static [&'static str] {
                &[#(#rare),*]
            }

            fn takes_isolation(&self, op: &#op) -> bool {
                #isolated
            }

            fn takes_turns(&self) -> bool {
                #turns
            }

            #level

            async fn perform(
                &self,
                tx: &__with::Tx,
                env: &__with::Env,
                op: &#op,
                isolation: __with::Isolation,
            ) -> ::core::result::Result<#answer, #error> {
                // An argument may have the other name.
                let (_, __isolation) = (env, <#kind as ::shaketable::specimen::Specimen>::level(op, isolation));
                match ::core::clone::Clone::clone(op) {
                    #(#performed,)*
                }
            }

            fn replay(
                &self,
                model: &mut #model,
                op: &#op,
                at: &::shaketable::specimen::At<'_>,
            ) -> ::core::result::Result<#answer, #error> {
                let _ = at;
                match ::core::clone::Clone::clone(op) {
                    #(#replayed,)*
                }
            }

            async fn read_model(
                &self,
                tx: &__with::Tx,
            ) -> __with::tx::Result<::core::result::Result<#model, ::shaketable::Misfit>> {
                __with::Stored::stored(<#kind>::#stored(self, tx).await)
            }
        }
    }
}

/// The strategy of one operation.
fn drawn(table: &Table) -> TokenStream {
    let (op, _) = names(table);
    let strategies = table.operations.iter().map(|operation| strategy(operation, &op));
    quote! {
        fn operation(&self, client: usize) -> __with::BoxedStrategy<#op> {
            use __with::Strategy as _;
            let _ = client;
            __with::drawn(::std::vec![#(#strategies),*])
        }
    }
}

/// The arm that performs an operation, up to what it returns.
fn call(table: &Table, operation: &Operation) -> TokenStream {
    let (kind, (op, _)) = (&table.kind, names(table));
    let method = &operation.method;
    let fields = operation.arguments().map(|argument| {
        let name = &argument.name;
        if argument.is_isolation() { quote!(#name: _) } else { quote!(#name) }
    });
    let takes = operation.takes.iter().map(|taken| match taken {
        Taken::Env => quote!(env),
        Taken::Argument(argument) if !argument.is_isolation() => given(argument),
        Taken::Isolation | Taken::Argument(_) => quote!(__isolation),
    });
    quote!(#op::#method { #(#fields),* } => <#kind>::#method(self, tx, #(#takes),*).await)
}

/// A workload with invariants.
fn invariants(table: &Table) -> TokenStream {
    let (kind, error, (op, _)) = (&table.kind, &table.error, names(table));
    let (name, about) = (name(&table.attribute, &table.kind_name), &table.about);
    let constants = table.constants.iter().map(|(name, of)| quote!(const #name: #of = <#kind>::#name;));
    let draw = match table.described("draw") {
        Some(1) => quote!(<#kind>::draw(rng)),
        Some(_) => quote!(<#kind>::draw(rng, ::core::option::Option::None)),
        None => quote!(let _ = rng; ::core::default::Default::default()),
    };
    let (drawn, keys) = (drawn(table), keys(table));
    let setup = table.described("setup").map(|_| {
        quote! {
            async fn setup(&self, tx: &__with::Tx) -> ::core::result::Result<(), #error> {
                <#kind>::setup(self, tx).await
            }
        }
    });
    let others = ["points", "subspaces"].map(|name| further(table, name));
    let performed = table.operations.iter().map(|operation| call(table, operation));
    let holds = table.invariants.iter().map(|(words, method)| {
        quote! {
            let verdict = ::shaketable::invariants::judged(#words, <#kind>::#method(self, tx)).await;
            if let ::core::result::Result::Err(broken) = verdict.map_err(<#error>::from)? {
                return ::core::result::Result::Ok(::core::result::Result::Err(broken));
            }
        }
    });
    quote! {
        impl ::shaketable::Invariants for #kind {
            type Op = #op;
            type Error = #error;

            const NAME: &'static str = #name;
            const ABOUT: &'static str = #about;
            #(#constants)*

            fn draw(rng: &mut __with::Stream) -> Self {
                #draw
            }

            #keys
            #setup
            #(#others)*
            #drawn

            async fn perform(
                &self,
                tx: &__with::Tx,
                env: &__with::Env,
                op: &#op,
            ) -> ::core::result::Result<(), #error> {
                let (_, __isolation) = (env, __with::Isolation::Serializable);
                match ::core::clone::Clone::clone(op) {
                    #(#performed.map(drop),)*
                }
            }

            async fn holds(
                &self,
                tx: &__with::Tx,
            ) -> ::core::result::Result<::core::result::Result<(), ::shaketable::Misfit>, #error> {
                #(#holds)*
                ::core::result::Result::Ok(::core::result::Result::Ok(()))
            }
        }
    }
}

fn names_of(all: &[Operation], is: impl Fn(&Operation) -> bool) -> Vec<&Ident> {
    all.iter().filter(|one| is(one)).map(|one| &one.method).collect()
}

/// What takes the arguments of an operation.
pub fn pattern(operation: &Operation, op: &Ident) -> TokenStream {
    let (method, arguments) = (&operation.method, operation.arguments().map(|argument| &argument.name));
    quote!(#op::#method { #(#arguments),* })
}

/// An argument as the method takes it.
pub fn given(argument: &crate::operation::Argument) -> TokenStream {
    let name = &argument.name;
    match argument.by_reference {
        true => quote!(&#name),
        false => quote!(#name),
    }
}

/// What makes the answer of what an operation returns.
fn answered(operation: &Operation, answer: &Ident) -> TokenStream {
    let method = &operation.method;
    match is_unit(&operation.answer) {
        true => quote!(|()| #answer::#method),
        false => quote!(#answer::#method),
    }
}

/// The weight of an operation, and how it is drawn.
pub fn strategy(operation: &Operation, op: &Ident) -> TokenStream {
    let pattern = pattern(operation, op);
    let weight = operation.options.weight.as_ref().map_or_else(|| quote!(1), |weight| quote!(#weight));
    let (names, strategies): (Vec<_>, Vec<_>) =
        operation.arguments().map(|argument| (&argument.name, &argument.strategy)).unzip();
    quote!((
        #weight,
        (__with::Just(()), #(#strategies),*).prop_map(|((), #(#names),*)| #pattern).boxed()
    ))
}

/// The list of planted bugs: the general ones, and those of a block of their own.
fn bugs(table: &Table) -> TokenStream {
    let kind = &table.kind;
    let (writes, reads) = (
        table.operations.iter().any(|one| one.options.writes),
        table.operations.iter().any(|one| !one.options.writes),
    );
    let general = GENERAL.iter().filter(|name| match **name {
        "remembered" | "kept_version" => reads,
        "interleaved" => writes && table.attribute.turns,
        _ => writes,
    });
    let general = general.filter(|name| table.attribute.without.iter().all(|other| other != **name));
    let risky_read = table.attribute.risky_read.then_some(&"risky_read");
    let general = general.chain(risky_read).map(|name| format_ident!("{}", name.to_uppercase()));
    let (own, planted) = match table.attribute.planted {
        true => (
            quote!(<#kind as ::shaketable::table::Planted>::BUGS),
            quote! {
                fn plants(bug: &str) -> bool {
                    <#kind as ::shaketable::table::Planted>::BUGS.iter().any(|own| own.name == bug)
                }

                async fn perform_planted(
                    &self,
                    bug: &str,
                    (tx, env): (&__with::Tx, &__with::Env),
                    op: &Self::Op,
                    isolation: __with::Isolation,
                ) -> ::core::option::Option<::core::result::Result<Self::Answer, Self::Error>> {
                    ::shaketable::table::Planted::perform(self, bug, (tx, env), op, isolation).await
                }

                async fn apply_bug(
                    &self,
                    bug: &str,
                    session: &mut __with::tx::once::Session<__with::Db>,
                    ops: &[Self::Op],
                ) -> ::core::option::Option<
                    ::shaketable::Outcome<::shaketable::specimen::Answer<Self::Answer>>,
                > {
                    ::shaketable::table::Planted::apply(self, bug, session, ops).await
                }
            },
        ),
        false => (quote!(&[]), quote!()),
    };
    quote! {
        fn bugs() -> &'static [::shaketable::Bug] {
            static BUGS: ::std::sync::LazyLock<::std::vec::Vec<::shaketable::Bug>> =
                ::std::sync::LazyLock::new(|| [&[#(__with::general::#general),*][..], #own].concat());
            &BUGS
        }

        #planted
    }
}

/// The methods of the block that describe the workload.
fn described(table: &Table, model: &Type) -> TokenStream {
    let (kind, error) = (&table.kind, &table.error);
    let (op, answer) = names(table);
    let draw = match table.described("draw") {
        Some(1) => quote!(let _ = bug; <#kind>::draw(rng)),
        Some(_) => quote!(<#kind>::draw(rng, bug)),
        None => quote!(let _ = (rng, bug); ::core::default::Default::default()),
    };
    let keys = keys(table);
    let initial = match table.described("model") {
        Some(_) => quote!(<#kind>::model(self)),
        None => quote!(::core::default::Default::default()),
    };
    let setup = match (table.described("setup"), table.sets_up_in_transaction) {
        (Some(_), true) => quote! {
            async fn setup(&self, db: &__with::Db) -> __with::tx::Result<()> {
                let filled: ::core::result::Result<(), __with::RunError<#error>> =
                    __with::Database::run(db, |tx, _| async move { <#kind>::setup(self, &tx).await }).await;
                __with::set_up(filled)
            }
        },
        (Some(_), false) => quote! {
            async fn setup(&self, db: &__with::Db) -> __with::tx::Result<()> {
                <#kind>::setup(self, db).await
            }
        },
        (None, _) => quote!(),
    };
    let others = [
        (
            "number",
            quote!(fn number(op: &mut #op, client: usize, number: usize) {
                <#kind>::number(op, client, number);
            }),
        ),
        (
            "describe_key",
            quote! {
                fn describe_key(&self, key: &[u8]) -> ::core::option::Option<::std::string::String> {
                    <#kind>::describe_key(self, key)
                }
            },
        ),
        (
            "describe_value",
            quote! {
                fn describe_value(
                    &self,
                    key: &[u8],
                    value: &[u8],
                ) -> ::core::option::Option<::std::string::String> {
                    <#kind>::describe_value(self, key, value)
                }
            },
        ),
        (
            "is_effect",
            quote!(fn is_effect(&self, mutations: &[__with::Mutation]) -> bool {
                <#kind>::is_effect(self, mutations)
            }),
        ),
        (
            "choose",
            quote! {
                fn choose(
                    &self,
                    model: &mut #model,
                    expected: &mut [#answer],
                    answers: ::core::option::Option<&[#answer]>,
                    mutations: &[__with::Mutation],
                ) {
                    <#kind>::choose(self, model, expected, answers, mutations);
                }
            },
        ),
        (
            "apply",
            quote! {
                async fn apply(
                    &self,
                    bug: ::core::option::Option<&str>,
                    session: &mut __with::tx::once::Session<__with::Db>,
                    ops: &[#op],
                ) -> ::core::option::Option<::shaketable::Outcome<::shaketable::specimen::Answer<#answer>>>
                {
                    <#kind>::apply(self, bug, session, ops).await
                }
            },
        ),
        (
            "resolve",
            quote! {
                async fn resolve(
                    &self,
                    bug: ::core::option::Option<&str>,
                    session: &mut __with::tx::once::Session<__with::Db>,
                    ops: &[#op],
                    pending: __with::tx::once::OpId,
                ) -> ::core::result::Result<
                    __with::tx::once::Fate<::std::vec::Vec<#answer>>,
                    __with::tx::once::Error,
                > {
                    <#kind>::resolve(self, bug, session, ops, pending).await
                }
            },
        ),
        (
            "timeout",
            quote!(fn timeout(&self, op: &#op) -> ::core::option::Option<u64> {
                <#kind>::timeout(self, op)
            }),
        ),
        (
            "wait",
            quote! {
                fn wait(
                    &self,
                    model: &#model,
                    op: &#op,
                    answer: &#answer,
                    at: &::shaketable::specimen::At<'_>,
                ) -> ::core::option::Option<::shaketable::waiting::Wait> {
                    <#kind>::wait(self, model, op, answer, at)
                }
            },
        ),
    ];
    let others = others.into_iter().filter(|(name, _)| table.described(name).is_some()).map(|(_, own)| own);
    let others = others.chain(["points", "subspaces"].into_iter().filter_map(|name| further(table, name)));
    quote! {
        fn draw(rng: &mut __with::Stream, bug: ::core::option::Option<&str>) -> Self {
            #draw
        }

        #keys

        fn model(&self) -> #model {
            #initial
        }

        #setup
        #(#others)*
    }
}

/// The samples of keys.
fn keys(table: &Table) -> TokenStream {
    let kind = &table.kind;
    let keys = match table.described("keys") {
        Some(_) => quote!(<#kind>::keys(self).into_iter().map(__with::Bytes::from).collect()),
        None => quote!(::std::vec::Vec::new()),
    };
    quote! {
        fn keys(&self) -> ::std::vec::Vec<__with::Bytes> {
            #keys
        }
    }
}

/// A method that every workload may have, if this one has it.
fn further(table: &Table, name: &str) -> Option<TokenStream> {
    let kind = &table.kind;
    table.described(name)?;
    Some(match name {
        "points" => quote!(fn points() -> &'static [&'static str] { <#kind>::points() }),
        _ => quote! {
            fn subspaces(&self) -> ::std::vec::Vec<::shaketable::weakened::Span> {
                <#kind>::subspaces(self).into_iter().collect()
            }
        },
    })
}
