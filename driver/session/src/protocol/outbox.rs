//! The send queue of a connection: any thread adds frames without blocking, and one thread writes them.

use super::wire::Wire;
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// How many bytes of frames that may wait are collected at most before they are written.
const MOST_WAITING: usize = 64 << 10;

/// The frames that were not written yet.
#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// Something is to be written, or the outbox was closed.
    more: Condvar,
    /// Something was written, or cannot be any more.
    less: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// The bytes that the writer has taken and not written.
    writing: usize,
    /// How large the answers may be that are still to come.
    reserved: usize,
    is_write_due: bool,
    is_closed: bool,
    is_broken: bool,
}

impl State {
    fn size(&self) -> usize {
        self.bytes.len() + self.writing
    }

    /// Whether an answer of this size fits in `most`, as any does when nothing else waits.
    fn has_room(&self, bytes: usize, most: usize) -> bool {
        let waiting = self.size() + self.reserved;
        waiting == 0 || waiting + bytes <= most || self.is_broken || self.is_closed
    }
}

impl Outbox {
    /// Adds a frame. One that may wait is written together with the next one that may not.
    pub fn push(&self, body: &[u8], may_wait: bool) {
        // Bodies are far below 4 GiB, because their senders check them.
        let Ok(length) = u32::try_from(body.len()) else { return };
        let mut state = self.state.lock();
        if state.is_closed || state.is_broken {
            return;
        }
        state.bytes.extend_from_slice(&length.to_le_bytes());
        state.bytes.extend_from_slice(body);
        if !may_wait || state.bytes.len() > MOST_WAITING {
            state.is_write_due = true;
            self.more.notify_one();
        }
    }

    /// Writes frames until the outbox is closed and empty, or until the other side is gone.
    pub fn write(&self, wire: &Wire) {
        loop {
            let mut state = self.state.lock();
            self.more.wait_while(&mut state, |state| !state.is_write_due && !state.is_closed);
            state.is_write_due = false;
            let bytes = std::mem::take(&mut state.bytes);
            state.writing = bytes.len();
            let is_last = state.is_closed;
            drop(state);
            let written = wire.write(&bytes);
            let mut state = self.state.lock();
            state.writing = 0;
            state.is_broken = is_last || written.is_err();
            self.less.notify_all();
            if state.is_broken {
                state.bytes = Vec::new();
                return;
            }
        }
    }

    /// Waits until less than this is to be written.
    pub fn wait_below(&self, bytes: usize) {
        let mut state = self.state.lock();
        self.less
            .wait_while(&mut state, |state| state.size() >= bytes && !state.is_broken && !state.is_closed);
    }

    /// Reserves room for an answer of at most this size, unless more than `most` would wait to be written
    /// then.
    pub fn try_reserve(&self, bytes: usize, most: usize) -> bool {
        let mut state = self.state.lock();
        let is_room = state.has_room(bytes, most);
        state.reserved += if is_room { bytes } else { 0 };
        is_room
    }

    /// The same, and waits until there is room.
    pub fn reserve(&self, bytes: usize, most: usize) {
        let mut state = self.state.lock();
        self.less.wait_while(&mut state, |state| !state.has_room(bytes, most));
        state.reserved += bytes;
    }

    /// An answer for which there was room has been added, or does not come.
    pub fn release(&self, bytes: usize) {
        self.state.lock().reserved -= bytes;
        self.less.notify_all();
    }

    /// No more frames: the writer ends when it has written what there is.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.more.notify_all();
        self.less.notify_all();
    }

    /// Waits until the writer has ended, at most for `timeout`.
    pub fn wait_for_end(&self, timeout: Duration) {
        let mut state = self.state.lock();
        self.less.wait_while_for(&mut state, |state| !state.is_broken, timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{Arc, mpsc::channel},
        thread,
    };

    /// What gives the last room back may do so at any moment, also while another begins to wait for it.
    #[test]
    fn whoever_waits_for_room_gets_it() {
        const TIMES: usize = 2_000_000;
        let (outbox, (done, all_done)) = (Arc::new(Outbox::default()), channel());
        for _ in 0..2 {
            let (outbox, done) = (outbox.clone(), done.clone());
            thread::spawn(move || {
                for _ in 0..TIMES {
                    outbox.reserve(10, 10);
                    outbox.release(10);
                }
                done.send(()).expect("the test waits");
            });
        }
        for _ in 0..2 {
            assert_eq!(all_done.recv_timeout(Duration::from_secs(60)), Ok(()), "it waits for nothing");
        }
    }
}
