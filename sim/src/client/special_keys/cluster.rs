//! Where the cluster is, and which it is.

use super::{
    parts::{Kind, SpecialKeyRange},
    reader::{Reader, row},
};
use crate::system_keys::{self, Uid};
use shaketable_tx::KeyValue;

/// The path of the cluster file: a simulated client has no file, and the default name stands for it.
pub(super) const CLUSTER_FILE: &str = "fdb.cluster";

impl Reader {
    pub(super) fn cluster(&self, part: &SpecialKeyRange) -> Vec<KeyValue> {
        let world = self.world();
        vec![row(
            part,
            match part.kind {
                Kind::ClusterId => Uid::of(world.seed, "cluster").to_string(),
                Kind::ConnectionString => system_keys::connection_string(world),
                _ => CLUSTER_FILE.to_owned(),
            },
        )]
    }
}
