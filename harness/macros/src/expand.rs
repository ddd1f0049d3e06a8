//! What a table becomes: the types of its operations and answers, and an implementation of `Specimen`.

use crate::{
    operation::{Operation, Taken, is_unit},
    table::{GENERAL, Table},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

/// Everything that takes the place of the block.
pub fn expand(table: &Table) -> TokenStream {
    let (block, types, specimen) = (&table.block, types(table), specimen(table));
    quote! {
        #block
        #types
        const _: () = {
            use ::shaketable::__private as __with;
            #specimen
        };
    }
}

fn types(table: &Table) -> TokenStream {
    let (op, answer) = names(table);
    let variants = table.operations.iter().map(|operation| {
        let Operation { method, docs, .. } = operation;
        let (names, kinds): (Vec<_>, Vec<_>) =
            operation.arguments().map(|argument| (&argument.name, &argument.kind)).unzip();
        quote!(#(#docs)* #method { #(#names: #kinds),* })
    });
    let answers = table.operations.iter().map(|Operation { method, answer, .. }| match is_unit(answer) {
        true => quote!(#method),
        false => quote!(#method(#answer)),
    });
    let op_doc = format!("An operation of [`{}`].", table.kind_name);
    let answer_doc = format!("What an operation of [`{}`] returns.", table.kind_name);
    quote! {
        #[doc = #op_doc]
        #[allow(non_camel_case_types, missing_docs, private_interfaces)]
        #[derive(
            Clone, Debug,
            ::shaketable::__private::serde::Serialize, ::shaketable::__private::serde::Deserialize,
        )]
        #[serde(crate = "::shaketable::__private::serde")]
        pub enum #op { #(#variants),* }

        #[doc = #answer_doc]
        #[allow(non_camel_case_types, missing_docs, private_interfaces)]
        #[derive(
            Clone, Debug, PartialEq,
            ::shaketable::__private::serde::Serialize, ::shaketable::__private::serde::Deserialize,
        )]
        #[serde(crate = "::shaketable::__private::serde")]
        pub enum #answer { #(#answers),* }
    }
}

/// The names of the types of operations and of answers.
fn names(table: &Table) -> (proc_macro2::Ident, proc_macro2::Ident) {
    (format_ident!("{}Op", table.kind_name), format_ident!("{}Answer", table.kind_name))
}

fn specimen(table: &Table) -> TokenStream {
    let (kind, model, error) = (&table.kind, &table.attribute.model, &table.error);
    let (op, answer) = names(table);
    let (name, about, stored) = (&table.attribute.name, &table.about, &table.stored);
    let (limits, turns) = (table.attribute.limits, table.attribute.turns);
    let constants = table.constants.iter().map(|(name, of)| quote!(const #name: #of = <#kind>::#name;));
    let (bugs, described) = (bugs(table), described(table));
    let all = &table.operations;
    let (writes, free, isolated, rare, composed): (Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>) = (
        names_of(all, |one| one.options.writes),
        names_of(all, |one| one.options.blind),
        names_of(all, Operation::takes_isolation),
        names_of(all, |one| one.options.rare),
        names_of(all, |one| one.options.composed),
    );
    let rare = rare.iter().map(|name| name.to_string());
    let matching = |some: &[&proc_macro2::Ident]| match some {
        [] => quote!({
            let _ = op;
            false
        }),
        some => quote!(matches!(op, #(#op::#some { .. })|*)),
    };
    let (writes, isolated, composed) = (matching(&writes), matching(&isolated), matching(&composed));
    let free = match table.described("is_conflict_free") {
        Some(_) => quote!(<#kind>::is_conflict_free(self, op)),
        None => matching(&free),
    };
    let strategies = all.iter().map(|operation| strategy(operation, &op));
    let performed = all.iter().map(|operation| {
        let (method, pattern) = (&operation.method, pattern(operation, &op));
        let takes = operation.takes.iter().map(|taken| match taken {
            Taken::Env => quote!(env),
            Taken::Isolation => quote!(isolation),
            Taken::Argument(argument) => given(argument),
        });
        let answered = answered(operation, &answer);
        quote!(#pattern => <#kind>::#method(self, tx, #(#takes),*).await.map(#answered))
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

            fn operation(&self, client: usize) -> __with::BoxedStrategy<#op> {
                use __with::Strategy as _;
                let _ = client;
                __with::Union::new_weighted(::std::vec![#(#strategies),*]).boxed()
            }

            fn is_read_only(op: &#op) -> bool {
                !#writes
            }

            fn refuses_cleanly(op: &#op, _: &#error) -> bool {
                !#composed
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

            async fn perform(
                &self,
                tx: &__with::Tx,
                env: &__with::Env,
                op: &#op,
                isolation: __with::Isolation,
            ) -> ::core::result::Result<#answer, #error> {
                let _ = (env, isolation);
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

fn names_of(all: &[Operation], is: impl Fn(&Operation) -> bool) -> Vec<&proc_macro2::Ident> {
    all.iter().filter(|one| is(one)).map(|one| &one.method).collect()
}

fn pattern(operation: &Operation, op: &proc_macro2::Ident) -> TokenStream {
    let (method, arguments) = (&operation.method, operation.arguments().map(|argument| &argument.name));
    quote!(#op::#method { #(#arguments),* })
}

fn given(argument: &crate::operation::Argument) -> TokenStream {
    let name = &argument.name;
    match argument.by_reference {
        true => quote!(&#name),
        false => quote!(#name),
    }
}

/// What makes the answer of what an operation returns.
fn answered(operation: &Operation, answer: &proc_macro2::Ident) -> TokenStream {
    let method = &operation.method;
    match is_unit(&operation.answer) {
        true => quote!(|()| #answer::#method),
        false => quote!(#answer::#method),
    }
}

fn strategy(operation: &Operation, op: &proc_macro2::Ident) -> TokenStream {
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
fn described(table: &Table) -> TokenStream {
    let (kind, model, error) = (&table.kind, &table.attribute.model, &table.error);
    let (op, answer) = names(table);
    let draw = match table.described("draw") {
        Some(1) => quote!(let _ = bug; <#kind>::draw(rng)),
        Some(_) => quote!(<#kind>::draw(rng, bug)),
        None => quote!(let _ = (rng, bug); ::core::default::Default::default()),
    };
    let keys = match table.described("keys") {
        Some(_) => quote!(<#kind>::keys(self).into_iter().map(__with::Bytes::from).collect()),
        None => quote!(::std::vec::Vec::new()),
    };
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
        ("points", quote!(fn points() -> &'static [&'static str] { <#kind>::points() })),
        (
            "subspaces",
            quote! {
                fn subspaces(&self) -> ::std::vec::Vec<::shaketable::weakened::Span> {
                    <#kind>::subspaces(self).into_iter().collect()
                }
            },
        ),
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
    quote! {
        fn draw(rng: &mut __with::Stream, bug: ::core::option::Option<&str>) -> Self {
            #draw
        }

        fn keys(&self) -> ::std::vec::Vec<__with::Bytes> {
            #keys
        }

        fn model(&self) -> #model {
            #initial
        }

        #setup
        #(#others)*
    }
}
