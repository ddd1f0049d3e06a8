//! Commits that a client has given up with 1039 and that are still on their way.
//!
//! When the cluster's version has changed, the multi-version client closes the connections of its old library
//! before it uses a new one. What the old one has sent may be committed, but not after a commit of the new
//! one.

use futures::{
    FutureExt,
    channel::oneshot::{Receiver, Sender, channel},
    future::Shared,
};
use parking_lot::Mutex;

/// The commits on their way.
#[derive(Default)]
pub struct Landings(Mutex<Vec<Awaited>>);

/// A commit on its way, seen by later commits.
struct Awaited {
    /// Dropped to make it arrive at once.
    hurry: Option<Sender<()>>,
    /// Ends once it has arrived, or will never.
    arrived: Shared<Receiver<()>>,
}

/// A commit on its way. Dropped when it has arrived, or when the client's machine dies.
pub struct Landing {
    hurry: Receiver<()>,
    _arrives: Sender<()>,
}

impl Landing {
    /// Completes when the commit must arrive at once.
    pub fn hurried(&mut self) -> &mut Receiver<()> {
        &mut self.hurry
    }
}

impl Landings {
    /// Adds a commit.
    pub fn add(&self) -> Landing {
        let ((hurry, hurried), (arrives, arrived)) = (channel(), channel());
        self.0.lock().push(Awaited { hurry: Some(hurry), arrived: arrived.shared() });
        Landing { hurry: hurried, _arrives: arrives }
    }

    /// Makes the commits on their way arrive at once, and waits until they have.
    pub async fn settle(&self) {
        let awaited: Vec<_> = self
            .0
            .lock()
            .iter_mut()
            .map(|landing| {
                landing.hurry = None;
                landing.arrived.clone()
            })
            .collect();
        for arrived in awaited {
            let _ = arrived.await;
        }
        self.0.lock().retain(|landing| landing.arrived.peek().is_none());
    }
}
