//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, space},
};
use foundationdb_tuple::Bytes;
use shaketable_layers::blob::{Blobs, Expect, UploadId};
use shaketable_tx::Isolation::Serializable;

fn upload() -> UploadId {
    UploadId([7; 16])
}

shared::refused_calls! {
    [below((4, Bytes::from(&upload().0[..]))), below((3,))],
    "parts": |tx| Blobs::new(space()).parts(&tx, upload(), Serializable),
    "uploads": |tx| Blobs::new(space()).uploads(&tx, None, MOST, Serializable),
    "finish_upload": |tx| async {
        let blobs = Blobs::new(space());
        blobs.begin_upload(&tx, b"blob", upload()).await?;
        blobs.finish_upload(&tx, upload(), Expect::Anything).await
    },
}
