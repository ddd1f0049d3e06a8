//! The short form of a [`Specimen`](super::Specimen): each operation is declared once, with its arguments,
//! what it does, what the model answers, and its planted bugs.

/// Defines a workload with a model: a [`Specimen`](crate::specimen::Specimen) whose operations are declared
/// once each. Run it as [`Mounted`](crate::specimen::Mounted).
///
/// The parts, in this order:
///
/// * the name of its type, which is also its name on the command line unless it has another one there
///   (`Stock as "stock"`), and the error of the layer;
/// * any constants of [`Specimen`](crate::specimen::Specimen), such as `const JOINS: bool = false;`;
/// * `model TYPE = VALUE;`: the model, and its state after the setup;
/// * an optional `keys = LIST;`: samples of the layer's keys, at which shards and resolvers may be split;
/// * an optional `subspaces = LIST;`: the begin and the end of each subspace of the layer, so that
///   [nothing else may be changed](crate::Workload::subspaces);
/// * an optional `setup(tx)` of the empty database, in one transaction;
/// * the operations that may write (`fn`), and then those that only read (`read`). Each argument is drawn by
///   a proptest strategy; a range of numbers needs a type, as in `0..5u32`. After a semicolon, an operation
///   may ask for `env` (clock and randomness), and one that reads for `isolation`: it is then done at both
///   levels. The body is `async`; it ends with the layer's answer, or with its refusal.
///   `model(NAME)` or `model(NAME, at)` is the same operation on the model, a mutable reference, with the
///   same arguments; `at` is its [place in the order](crate::specimen::At). Each `bug` is another body of the
///   operation, which replaces the right one when the command plants this bug;
/// * `stored(tx)`: reads everything that the layer stores, as a model. A refusal says which structural
///   invariant is broken.
///
/// ```
/// use shaketable::prelude::*;
///
/// shaketable_tx::refusals! {
///     /// Why a step was refused.
///     pub enum Refusal { Empty = "there is nothing left" }
/// }
///
/// fn number(value: Option<Bytes>) -> u64 {
///     value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_le_bytes)
/// }
///
/// shaketable::modelled! {
///     /// A number that never falls below zero.
///     Stock as "stock": Refusal;
///
///     model u64 = 0;
///
///     fn add(tx, many: u64 = 1..10u64) {
///         let tx = tx.writing().await;
///         tx.atomic_op(b"stock", &many.to_le_bytes(), MutationType::Add);
///         Ok(())
///     }
///     model(stock) {
///         *stock += many;
///         Ok(())
///     }
///
///     fn take(tx, many: u64 = 1..15u64) -> u64 {
///         let tx = tx.writing().await;
///         let left = number(tx.get(b"stock", Serializable).await?).checked_sub(many).ok_or(Refusal::Empty)?;
///         tx.set(b"stock", &left.to_le_bytes());
///         Ok(left)
///     }
///     model(stock) {
///         *stock = stock.checked_sub(many).ok_or(Refusal::Empty)?;
///         Ok(*stock)
///     }
///     bug "at-snapshot", "a take reads at snapshot", "a dropped conflict range" {
///         let left = number(tx.get(b"stock", Snapshot).await?).checked_sub(many).ok_or(Refusal::Empty)?;
///         tx.set(b"stock", &left.to_le_bytes());
///         Ok(left)
///     }
///
///     read count(tx; isolation) -> u64 {
///         Ok(number(tx.reading().await.get(b"stock", isolation).await?))
///     }
///     model(stock) { Ok(*stock) }
///
///     stored(tx) { Ok(number(tx.get(b"stock", Serializable).await?)) }
/// }
///
/// assert_eq!(Stock::NAME, "stock");
/// Shake::<Mounted<Stock>>::new().seeds(0..10).assert();
/// Shake::<Mounted<Stock>>::new().bug("at-snapshot").assert_caught();
/// ```
#[macro_export]
macro_rules! modelled {
    (
        $(#[doc = $about:literal])+
        $vis:vis $layer:ident $(as $name:literal)?: $error:ty;
        $(const $constant:ident: $constant_type:ty = $constant_value:expr;)*
        model $model:ty = $initial:expr;
        $(keys = $keys:expr;)?
        $(subspaces = $subspaces:expr;)?
        $(setup($setup_tx:ident) $setup:block)?
        $(
            fn $write:ident $write_takes:tt $(-> $write_answers:ty)? $write_body:block
            model $write_model:tt $write_replay:block
            $(bug $write_bug:literal, $write_bug_about:literal, $write_bug_source:literal $write_bug_body:block)*
        )*
        $(
            read $read:ident $read_takes:tt $(-> $read_answers:ty)? $read_body:block
            model $read_model:tt $read_replay:block
            $(bug $read_bug:literal, $read_bug_about:literal, $read_bug_source:literal $read_bug_body:block)*
        )*
        stored($stored_tx:ident) $stored:block
    ) => {
        $crate::__modelled! {
            [$($about)+] ($vis) $layer [$($name)?] ($error) ($model) ($initial)
            [$($constant: $constant_type = $constant_value;)*] [$($keys)?] [$($subspaces)?]
            [$(($setup_tx) $setup)?] ($stored_tx) $stored
            $(
                false $write $write_takes $write_takes [$($write_answers)?] [$($write_answers)?]
                $write_body $write_model $write_replay
                [$($write_bug $write_bug_about $write_bug_source $write_bug_body)*]
            )*
            $(
                true $read $read_takes $read_takes [$($read_answers)?] [$($read_answers)?]
                $read_body $read_model $read_replay
                [$($read_bug $read_bug_about $read_bug_source $read_bug_body)*]
            )*
        }
    };
}

/// What [`modelled!`](crate::modelled) becomes, with one list of operations. What an operation takes and what
/// it answers are there twice: as they are, and as one group, because a repetition within an operation (its
/// bugs) can only use what is no repetition itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __modelled {
    (
        [$($about:literal)+] ($vis:vis) $layer:ident $name:tt ($error:ty) ($model:ty) ($initial:expr)
        [$($constant:ident: $constant_type:ty = $constant_value:expr;)*]
        [$($keys:expr)?] [$($subspaces:expr)?] [$(($setup_tx:ident) $setup:block)?]
        ($stored_tx:ident) $stored:block
        $(
            $read_only:literal $op:ident $takes:tt
            ($tx:ident $(, $arg:ident: $type:ty = $strategy:expr)* $(,)? $(; $($asked:ident),+)?)
            $answers:tt [$($answer:ty)?]
            $body:block ($replayed:ident $(, $at:ident)?) $replay:block
            [$($bug:literal $bug_about:literal $bug_source:literal $bug_body:block)*]
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, $crate::__private::serde::Serialize, $crate::__private::serde::Deserialize)]
        #[serde(crate = "shaketable::__private::serde")]
        $vis struct $layer {
            planted: Option<String>,
        }

        const _: () = {
            use $crate::__private as __with;

            $crate::__operations! { $($op { $($arg: $type = $strategy),* })+ }

            #[allow(non_camel_case_types)]
            #[derive(
                Clone, Debug, PartialEq, __with::serde::Serialize, __with::serde::Deserialize,
            )]
            #[serde(crate = "__with::serde")]
            pub enum __Answer {
                $($op $(($answer))?),+
            }

            impl $crate::specimen::Specimen for $layer {
                type Op = __Op;
                type Answer = __Answer;
                type Error = $error;
                type Model = $model;

                const NAME: &'static str = $crate::__modelled!(@name $layer $name);
                const ABOUT: &'static str = [$($about),+][0].trim_ascii();
                $(const $constant: $constant_type = $constant_value;)*

                fn bugs() -> &'static [$crate::Bug] {
                    &[
                        $crate::specimen::UNRECORDED_BUG,
                        $($($crate::Bug { name: $bug, about: $bug_about, source: $bug_source, only_simulated: None },)*)+
                    ]
                }

                fn draw(_: &mut __with::Stream, bug: Option<&str>) -> Self {
                    $layer { planted: bug.map(str::to_owned) }
                }

                fn keys(&self) -> Vec<__with::Bytes> {
                    let keys: &[Vec<__with::Bytes>] =
                        &[$($keys.into_iter().map(__with::Bytes::from).collect())?];
                    keys.concat()
                }

                $(fn subspaces(&self) -> Vec<$crate::weakened::Span> {
                    $subspaces.into_iter().collect()
                })?

                fn operation(&self, _: usize) -> __with::BoxedStrategy<__Op> {
                    __operation()
                }

                fn is_read_only(op: &__Op) -> bool {
                    match op {
                        $(__Op::$op { .. } => $read_only),+
                    }
                }

                fn takes_isolation(&self, op: &__Op) -> bool {
                    match op {
                        $(__Op::$op { .. } => {
                            // One that does not ask for it reads as it wants to.
                            $read_only && [$($($crate::__modelled!(@isolated $asked)),+)?].contains(&true)
                        })+
                    }
                }

                $(async fn setup(&self, db: &__with::Db) -> __with::tx::Result<()> {
                    async fn __filled(
                        $setup_tx: &__with::Tx,
                    ) -> ::std::result::Result<(), $error> $setup
                    let filled: ::std::result::Result<(), __with::RunError<$error>> =
                        __with::Database::run(db, |tx, _| async move { __filled(&tx).await }).await;
                    __with::set_up(filled)
                })?

                async fn perform(
                    &self,
                    tx: &__with::Tx,
                    env: &__with::Env,
                    op: &__Op,
                    isolation: __with::Isolation,
                ) -> ::std::result::Result<__Answer, $error> {
                    let with = (tx, env, isolation);
                    match op.clone() {
                        $(__Op::$op { $($arg),* } => {
                            $(if self.planted.as_deref() == Some($bug) {
                                return $crate::__modelled!(@do $op ($error) $answers $takes $bug_body with);
                            })*
                            $crate::__modelled!(@do $op ($error) $answers $takes $body with)
                        })+
                    }
                }

                fn model(&self) -> $model {
                    $initial
                }

                fn replay(
                    &self,
                    model: &mut $model,
                    op: &__Op,
                    at: &$crate::specimen::At,
                ) -> ::std::result::Result<__Answer, $error> {
                    match op.clone() {
                        $(__Op::$op { $($arg),* } => {
                            #[allow(unused_variables, clippy::ptr_arg)]
                            fn __replay(
                                $replayed: &mut $model,
                                at: &$crate::specimen::At,
                                $($arg: $type),*
                            ) -> ::std::result::Result<$crate::__modelled!(@type $answers), $error> {
                                $(let $at = at;)?
                                $replay
                            }
                            $crate::__modelled!(@answer $op $answers __replay(model, at, $($arg),*))
                        })+
                    }
                }

                async fn read_model(
                    &self,
                    tx: &__with::Tx,
                ) -> __with::tx::Result<::std::result::Result<$model, $crate::Misfit>> {
                    async fn __stored(
                        $stored_tx: &__with::Tx,
                    ) -> ::std::result::Result<$model, $error> $stored
                    __with::stored(__stored(tx).await)
                }
            }
        };
    };

    (@name $layer:ident []) => { stringify!($layer) };
    (@name $layer:ident [$name:literal]) => { $name };

    // One body of an operation, done with what the operation takes.
    (
        @do $op:ident ($error:ty) $answers:tt
        ($tx:ident $(, $arg:ident: $type:ty = $strategy:expr)* $(,)? $(; $($asked:ident),+)?)
        $body:block $with:ident
    ) => {{
        #[allow(unused_variables)]
        async fn __perform(
            $tx: &__with::Tx,
            env: &__with::Env,
            isolation: __with::Isolation,
            $($arg: $type),*
        ) -> ::std::result::Result<$crate::__modelled!(@type $answers), $error> {
            $($(let $asked = $crate::__modelled!(@asked $asked env isolation);)+)?
            $body
        }
        let (tx, env, isolation) = $with;
        $crate::__modelled!(@answer $op $answers __perform(tx, env, isolation, $($arg),*).await)
    }};

    (@asked env $env:ident $isolation:ident) => { $env };
    (@asked isolation $env:ident $isolation:ident) => { $isolation };
    (@asked $asked:ident $env:ident $isolation:ident) => {
        compile_error!("an operation may ask for `env` and for `isolation`")
    };

    (@isolated isolation) => { true };
    (@isolated $asked:ident) => { false };

    (@type []) => { () };
    (@type [$answer:ty]) => { $answer };

    (@answer $op:ident [] $($result:tt)+) => { ($($result)+).map(|()| __Answer::$op) };
    (@answer $op:ident [$answer:ty] $($result:tt)+) => { ($($result)+).map(__Answer::$op) };
}
