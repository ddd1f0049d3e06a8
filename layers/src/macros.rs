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
