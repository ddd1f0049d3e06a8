//! What the layers would otherwise repeat: the reasons that every error has.

/// Declares a layer's `Error`: the reasons that every layer has, then its own.
macro_rules! layer_error {
    ($(#[$meta:meta])* pub enum Error { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum Error {
            /// FoundationDB's error, for the retry loop to judge.
            #[error(transparent)]
            Fdb(#[from] $crate::tx::Error),
            /// The exactly-once mechanism did not let the operation through.
            #[error(transparent)]
            Once(#[from] $crate::once::Error),
            /// A key, a value or all of it together is larger than FoundationDB takes.
            #[error(transparent)]
            TooLarge(#[from] $crate::limits::TooLarge),
            /// The subspace holds something that this layer does not write; this is its key.
            #[error("not of this layer's schema: \"{}\"", .0.escape_ascii())]
            Foreign(bytes::Bytes),
            $($own)*
        }

        impl Error {
            /// The key is not of the layer's schema, or its value is not.
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

/// Declares why a layer refuses: an error for the retry loop, of FoundationDB's error, that of the exactly-once
/// mechanism, and refusals of the layer's own, each with its message. An operation that is refused has no effect and is
/// not tried again.
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
            /// FoundationDB's error, for the retry loop to judge.
            Fdb($crate::tx::Error),
            /// The exactly-once mechanism did not let the operation through.
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
