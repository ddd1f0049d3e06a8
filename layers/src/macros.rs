//! Macros for error types: the variants that every layer's error shares.

/// Declares a layer's `Error`: the variants common to all layers, followed by the layer's own variants.
macro_rules! layer_error {
    ($(#[$meta:meta])* pub enum Error { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum Error {
            /// A FoundationDB error; the retry loop decides whether to retry.
            #[error(transparent)]
            Fdb(#[from] $crate::tx::Error),
            /// The exactly-once mechanism refused the operation.
            #[error(transparent)]
            Once(#[from] $crate::once::Error),
            /// A key, a value or the whole transaction exceeds FoundationDB's limits.
            #[error(transparent)]
            TooLarge(#[from] $crate::limits::TooLarge),
            /// The subspace holds a row that this layer did not write; the value is the row's key.
            #[error("not of this layer's schema: \"{}\"", .0.escape_ascii())]
            Foreign(bytes::Bytes),
            $($own)*
        }

        impl Error {
            /// The key or its value does not follow the layer's schema.
            #[allow(dead_code, reason = "a layer whose every key and value can be read has no use for it")]
            pub(crate) fn foreign(key: &[u8]) -> Error {
                Error::Foreign(bytes::Bytes::copy_from_slice(key))
            }
        }

        impl $crate::tx::RetryError for Error {
            fn fdb(&self) -> Option<$crate::tx::Error> {
                match self {
                    Error::Fdb(e) => Some(*e),
                    Error::Once(e) => $crate::tx::RetryError::fdb(e),
                    _ => None,
                }
            }
        }
    };
}

/// Declares a layer's error: a FoundationDB error, which the retry loop handles, an error of the exactly-once
/// mechanism, and the layer's own refusals, each with its message. A refused operation has no effect and is
/// not retried.
///
/// ```
/// shaketable_layers::refusals! {
///     /// Why a transfer was refused.
///     pub enum Refusal {
///         Poor = "the account does not hold that much",
///     }
/// }
/// assert_eq!(Refusal::Poor.to_string(), "the account does not hold that much");
/// ```
#[macro_export]
macro_rules! refusals {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($refusal:ident = $message:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $name {
            /// A FoundationDB error; the retry loop decides whether to retry.
            Fdb($crate::tx::Error),
            /// The exactly-once mechanism refused the operation.
            Once($crate::once::Error),
            $(#[doc = $message] $refusal),*
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $name::Fdb(error) => ::std::fmt::Display::fmt(error, f),
                    $name::Once(error) => ::std::fmt::Display::fmt(error, f),
                    $($name::$refusal => f.write_str($message)),*
                }
            }
        }

        impl ::std::error::Error for $name {}

        impl ::std::convert::From<$crate::tx::Error> for $name {
            fn from(error: $crate::tx::Error) -> $name {
                $name::Fdb(error)
            }
        }

        impl ::std::convert::From<$crate::once::Error> for $name {
            fn from(error: $crate::once::Error) -> $name {
                $name::Once(error)
            }
        }

        impl $crate::tx::RetryError for $name {
            fn fdb(&self) -> ::std::option::Option<$crate::tx::Error> {
                match self {
                    $name::Fdb(error) => ::std::option::Option::Some(*error),
                    $name::Once(error) => $crate::tx::RetryError::fdb(error),
                    $($name::$refusal => ::std::option::Option::None),*
                }
            }
        }
    };
}
