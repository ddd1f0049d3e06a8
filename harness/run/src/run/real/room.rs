//! How long keys may be where a run takes place: below the prefix of a run on a real cluster they are
//! shorter.

use std::cell::Cell;

/// What a key may be longer than another one that is used with it: names differ by so many bytes at most.
const NAMES: usize = 256;

thread_local! {
    static ROOM: Cell<usize> = const { Cell::new(0) };
}

/// By how many bytes a key that FoundationDB is to accept must stay below
/// [`KEY_SIZE_LIMIT`](shaketable_tx::KEY_SIZE_LIMIT), in the run of this thread. It is 0 on a simulated
/// cluster, whose keys have no prefix. A layer knows its own subspace, but not what is before it; keys
/// between the two limits would be refused by the commit only.
pub fn key_room() -> usize {
    ROOM.get()
}

/// As long as it exists, keys of runs on this thread have a prefix.
pub(super) struct Below(usize);

impl Below {
    /// Below a prefix of this length.
    pub(super) fn prefix(length: usize) -> Below {
        Below(ROOM.replace(length + NAMES))
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        ROOM.set(self.0);
    }
}
