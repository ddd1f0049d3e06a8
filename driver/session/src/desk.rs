//! The calls in progress: who expects their answers, and which have ended.

use crate::{CallId, Completion, Reply};
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use shaketable_sim::rt::Task;
use shaketable_tx::{Error, Result};
use std::collections::{BTreeMap, VecDeque};

/// How urgent the answers are that something waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing waits.
    Nothing,
    /// Something waits for what may take for ever, such as watches.
    Patience,
    /// Something waits for another call.
    Calls,
}

/// A call whose answer is outstanding.
struct Pending {
    completion: Completion,
    is_patient: bool,
    is_wanted: bool,
    /// The task that performs it, once it has begun. Dropping it ends the task.
    task: Option<Task>,
}

/// The calls in progress, shared by the cluster's main task and the clients.
#[derive(Default)]
pub struct Desk {
    state: Mutex<State>,
    /// The main task.
    main: AtomicWaker,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<CallId, Pending>,
    ended: VecDeque<(CallId, Result<Reply>)>,
    wanted_calls: usize,
    wanted_patient: usize,
}

impl State {
    fn count(&mut self, is_patient: bool) -> &mut usize {
        if is_patient { &mut self.wanted_patient } else { &mut self.wanted_calls }
    }

    fn remove(&mut self, id: CallId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if pending.is_wanted {
            *self.count(pending.is_patient) -= 1;
        }
        Some(pending)
    }
}

impl Desk {
    /// Adds a call.
    pub fn add(&self, id: CallId, is_patient: bool, completion: Completion) {
        let pending = Pending { completion, is_patient, is_wanted: false, task: None };
        self.state.lock().pending.insert(id, pending);
    }

    /// Something waits for the call.
    pub fn want(&self, id: CallId) {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.get_mut(&id) else { return };
        if !std::mem::replace(&mut pending.is_wanted, true) {
            let is_patient = pending.is_patient;
            *state.count(is_patient) += 1;
        }
    }

    /// A call that could take for ever is about to end: what waits for it waits for a call like any other.
    pub fn hasten(&self, id: CallId) {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.get_mut(&id) else { return };
        if std::mem::replace(&mut pending.is_patient, false) && pending.is_wanted {
            state.wanted_patient -= 1;
            state.wanted_calls += 1;
        }
    }

    /// What is waited for.
    pub fn demand(&self) -> Demand {
        let state = self.state.lock();
        match (state.wanted_calls, state.wanted_patient) {
            (0, 0) => Demand::Nothing,
            (0, _) => Demand::Patience,
            _ => Demand::Calls,
        }
    }

    /// The call has begun and goes on in `task`. A call that nobody expects any more ends here.
    pub fn begun(&self, id: CallId, task: Task) {
        let mut state = self.state.lock();
        let unexpected = match state.pending.get_mut(&id) {
            Some(pending) => pending.task.replace(task),
            None => Some(task),
        };
        drop(state);
        drop(unexpected);
    }

    /// The call has ended. Wakes the main task, which delivers the answer.
    pub fn ended(&self, id: CallId, answer: Result<Reply>) {
        self.state.lock().ended.push_back((id, answer));
        self.main.wake();
    }

    /// Whether a call has ended whose answer was not delivered; if not, wakes the task when one has.
    pub fn has_ended(&self, waker: &std::task::Waker) -> bool {
        self.main.register(waker);
        !self.state.lock().ended.is_empty()
    }

    /// Delivers the answer of the call that ended first, if there is one.
    pub fn deliver(&self) -> bool {
        let mut state = self.state.lock();
        let Some((id, answer)) = state.ended.pop_front() else { return false };
        let pending = state.remove(id);
        drop(state);
        if let Some(pending) = pending {
            (pending.completion)(answer);
        }
        true
    }

    /// Whether the answer of a call is outstanding that is no watch.
    pub fn expects(&self, id: CallId) -> bool {
        self.state.lock().pending.get(&id).is_some_and(|pending| !pending.is_patient)
    }

    /// Ends a call with 1101, if its answer is outstanding.
    pub fn cancel(&self, id: CallId) {
        let pending = self.state.lock().remove(id);
        if let Some(Pending { completion, task, .. }) = pending {
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
            if let Some(Pending { completion, task, .. }) = pending {
                drop(task);
                completion(Err(error));
            }
        }
    }
}
