//! The profiler of servers' actors, which is off: it has no samples.

use super::{
    parts::special,
    reader::{self, Reader},
};
use crate::proto::KeyRange;
use shaketable_tx::{KeyValue, Result};
use std::net::SocketAddr;

impl Reader {
    /// The samples of one server: none. A read names an index and a server, the same at both ends.
    pub(super) fn actor_lineage(&self, range: &KeyRange) -> Result<Vec<KeyValue>> {
        let place = |key: &[u8]| {
            let rest = key.strip_prefix(&special("actor_lineage/")[..]).unwrap_or_default();
            let mut words = rest.split(|byte| *byte == b'/').map(<[u8]>::to_vec);
            Some((words.next()?, words.next()?))
        };
        let fails = |why| Err(self.state().special_failure("read actor_lineage", why));
        let (Some(begin), Some(end)) = (place(&range.begin), place(&range.end)) else {
            return fails("missing required parameters (index, host)");
        };
        let host = |word: &[u8]| reader::text(word).and_then(|text| text.parse::<SocketAddr>().ok());
        if !matches!(&begin.0[..], b"state" | b"time") || begin.0 != end.0 {
            return fails("invalid index in actor_lineage");
        }
        match (host(&begin.1), host(&end.1)) {
            (Some(begin), Some(end)) if begin == end => Ok(Vec::new()),
            (Some(_), Some(_)) => fails("the host must remain the same on both ends of the range"),
            _ => fails("failed to parse key"),
        }
    }
}
