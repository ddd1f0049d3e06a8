//! A macro for the error types of layers.

/// Declares a layer's error: a FoundationDB error, which the retry loop handles, an error of the exactly-once
/// mechanism, and the layer's own refusals, each with its message. A refused operation has no effect and is
/// not retried.
///
/// ```
/// shaketable_tx::refusals! {
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
            Fdb($crate::Error),
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

        impl ::std::convert::From<$crate::Error> for $name {
            fn from(error: $crate::Error) -> $name {
                $name::Fdb(error)
            }
        }

        impl ::std::convert::From<$crate::once::Error> for $name {
            fn from(error: $crate::once::Error) -> $name {
                $name::Once(error)
            }
        }

        impl $crate::RetryError for $name {
            fn fdb(&self) -> ::std::option::Option<$crate::Error> {
                match self {
                    $name::Fdb(error) => ::std::option::Option::Some(*error),
                    $name::Once(error) => $crate::RetryError::fdb(error),
                    $($name::$refusal => ::std::option::Option::None),*
                }
            }
        }
    };
}
