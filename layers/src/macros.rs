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
