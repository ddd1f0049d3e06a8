//! The table of pending calls: which answers are waited for, and which calls have ended.
//!
//! Clients add and complete calls; the main task of the cluster delivers the answers, and advances virtual
//! time only as far as the answers that are waited for require it.

use crate::{CallId, Completion, Reply, quiescence::Caller, timeouts::Of};
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use shaketable_sim::rt::Task;
use shaketable_tx::{Error, Result};
use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

/// Which pending answers something waits for. It decides how virtual time advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing waits.
    Nothing,
    /// Something waits, but only for calls that may never end, such as watches.
    OpenEnded,
    /// Something waits for a call that ends in bounded time.
    Calls,
}

/// A call whose answer is outstanding.
struct PendingCall {
    of: Of,
    completion: Completion,
    /// Whether the call may never end, as a watch may not.
    is_open_ended: bool,
    /// Whether something waits for the answer.
    is_wanted: bool,
    /// The thread whose callback waits for it.
    caller: Option<Caller>,
    /// The task that performs it, once it has begun. Dropping it ends the task.
    task: Option<Task>,
}

/// The pending calls, shared by the cluster's main task and the clients.
#[derive(Default)]
pub struct PendingCalls {
    state: Mutex<State>,
    /// Wakes the main task.
    main: AtomicWaker,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<CallId, PendingCall>,
    ended: VecDeque<(CallId, Result<Reply>)>,
    wanted_calls: usize,
    wanted_open_ended: usize,
    /// The number of calls of each transaction that has any.
    transactions: BTreeMap<Of, usize>,
    /// For how many answers the callbacks of each thread wait.
    callers: BTreeMap<Caller, usize>,
    /// The errors that were given, with their numbers.
    errors: BTreeMap<Error, u64>,
}

impl State {
    fn count(&mut self, is_open_ended: bool) -> &mut usize {
        if is_open_ended { &mut self.wanted_open_ended } else { &mut self.wanted_calls }
    }

    fn remove(&mut self, id: CallId) -> Option<PendingCall> {
        let call = self.pending.remove(&id)?;
        if call.is_wanted {
            *self.count(call.is_open_ended) -= 1;
        }
        subtract(&mut self.transactions, call.of);
        if let Some(caller) = call.caller {
            subtract(&mut self.callers, caller);
        }
        Some(call)
    }
}

/// One less; those of which there are none are not kept.
fn subtract<K: Ord>(numbers: &mut BTreeMap<K, usize>, key: K) {
    if let Entry::Occupied(mut number) = numbers.entry(key) {
        *number.get_mut() -= 1;
        if *number.get() == 0 {
            number.remove();
        }
    }
}

impl PendingCalls {
    /// Adds a call of a transaction.
    pub fn add(&self, id: CallId, of: Of, is_open_ended: bool, completion: Completion) {
        let call = PendingCall { of, completion, is_open_ended, is_wanted: false, caller: None, task: None };
        let mut state = self.state.lock();
        state.pending.insert(id, call);
        *state.transactions.entry(of).or_default() += 1;
    }

    /// Whether an answer of the transaction is outstanding.
    pub fn has_any_of(&self, of: Of) -> bool {
        self.state.lock().transactions.contains_key(&of)
    }

    /// Something waits for the call: a callback of the caller, if one is given.
    pub fn want(&self, id: CallId, caller: Option<Caller>) {
        let mut state = self.state.lock();
        let State { pending, callers, .. } = &mut *state;
        let Some(call) = pending.get_mut(&id) else { return };
        if let (Some(caller), None) = (caller, call.caller) {
            call.caller = Some(caller);
            *callers.entry(caller).or_default() += 1;
        }
        if !std::mem::replace(&mut call.is_wanted, true) {
            let is_open_ended = call.is_open_ended;
            *state.count(is_open_ended) += 1;
        }
    }

    /// An open-ended call is about to end: from now on it counts as a call that ends in bounded time.
    pub fn make_urgent(&self, id: CallId) {
        let mut state = self.state.lock();
        let Some(call) = state.pending.get_mut(&id) else { return };
        if std::mem::replace(&mut call.is_open_ended, false) && call.is_wanted {
            state.wanted_open_ended -= 1;
            state.wanted_calls += 1;
        }
    }

    /// How many threads have callbacks that wait.
    pub fn callers(&self) -> usize {
        self.state.lock().callers.len()
    }

    /// What is waited for.
    pub fn demand(&self) -> Demand {
        let state = self.state.lock();
        match (state.wanted_calls, state.wanted_open_ended) {
            (0, 0) => Demand::Nothing,
            (0, _) => Demand::OpenEnded,
            _ => Demand::Calls,
        }
    }

    /// The call is performed by `task`. If the call was cancelled before, the task is dropped, which ends it.
    pub fn begun(&self, id: CallId, task: Task) {
        let mut state = self.state.lock();
        let cancelled = match state.pending.get_mut(&id) {
            Some(call) => call.task.replace(task),
            None => Some(task),
        };
        drop(state);
        drop(cancelled);
    }

    /// The call has ended. Wakes the main task, which delivers the answer.
    pub fn ended(&self, id: CallId, answer: Result<Reply>) {
        self.state.lock().ended.push_back((id, answer));
        self.main.wake();
    }

    /// Whether there is an answer to deliver; registers the task to be woken when there is one.
    pub fn has_ended(&self, waker: &std::task::Waker) -> bool {
        self.main.register(waker);
        !self.state.lock().ended.is_empty()
    }

    /// Delivers the answer of the call that ended first, if there is one.
    pub fn deliver(&self) -> bool {
        let mut state = self.state.lock();
        let Some((id, answer)) = state.ended.pop_front() else { return false };
        let pending = state.remove(id);
        if let (Some(_), Err(error)) = (&pending, &answer) {
            *state.errors.entry(*error).or_default() += 1;
        }
        drop(state);
        if let Some(call) = pending {
            (call.completion)(answer);
        }
        true
    }

    /// The errors that were given as answers, with their numbers.
    pub fn errors(&self) -> BTreeMap<Error, u64> {
        self.state.lock().errors.clone()
    }

    /// Whether the call is pending and not open-ended.
    pub fn expects(&self, id: CallId) -> bool {
        self.state.lock().pending.get(&id).is_some_and(|call| !call.is_open_ended)
    }

    /// Ends a call with 1101, if its answer is outstanding.
    pub fn cancel(&self, id: CallId) {
        let pending = self.state.lock().remove(id);
        if let Some(PendingCall { completion, task, .. }) = pending {
            drop(task);
            completion(Err(Error::OPERATION_CANCELLED));
        }
    }

    /// Ends every call with an error.
    pub fn close(&self, error: Error) {
        loop {
            let first = self.state.lock().pending.keys().next().copied();
            let Some(id) = first else { return };
            let pending = self.state.lock().remove(id);
            if let Some(PendingCall { completion, task, .. }) = pending {
                drop(task);
                completion(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatabaseId, TransactionId};

    #[test]
    fn threads_whose_callbacks_wait_are_counted() {
        let pending = PendingCalls::default();
        for id in 0..4 {
            pending.add(CallId(id), (DatabaseId(0), TransactionId(id)), false, Box::new(drop));
        }
        let other = std::thread::spawn(Caller::this).join().expect("it has a number");
        let callers = |id, caller| {
            pending.want(CallId(id), caller);
            pending.callers()
        };
        assert_eq!([callers(0, None), callers(1, Some(Caller::this()))], [0, 1]);
        assert_eq!(
            [callers(2, Some(Caller::this())), callers(1, Some(other))],
            [1, 1],
            "who was first counts"
        );
        assert_eq!(callers(3, Some(other)), 2);
        pending.cancel(CallId(1));
        assert_eq!(pending.callers(), 2, "the thread has another");
        pending.ended(CallId(2), Ok(Reply::Done));
        assert!(pending.deliver());
        assert_eq!(pending.callers(), 1);
        let has_any = [0, 1, 2, 3].map(|id| pending.has_any_of((DatabaseId(0), TransactionId(id))));
        assert_eq!(has_any, [true, false, false, true]);
    }
}
