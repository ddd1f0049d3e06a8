//! Which client of a simulated cluster a database handle stands for.

use super::Embedded;
use parking_lot::Mutex;
use shaketable_session::{Command, DatabaseId, Session};
use shaketable_sim::client::{SimDatabase, WeakDatabase};
use std::sync::Arc;

/// The sessions of one database handle. The handle may live longer than a run, so that its clients come and
/// go.
#[derive(Default)]
pub struct Clients {
    /// The client that it was made for; without one it stands for the client that is running.
    only: Option<SimDatabase>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was set on the handle, for clients to come.
    options: Vec<Command>,
    open: Vec<(WeakDatabase, Arc<Embedded>)>,
}

impl Clients {
    /// The sessions of a handle that stands for one client.
    pub fn only(db: SimDatabase) -> Clients {
        Clients { only: Some(db), state: Mutex::default() }
    }

    /// The session with the client of the machine whose task is being polled, or with the only one. None
    /// outside of a simulation, and on machines that have no client.
    pub fn session(&self) -> Option<Arc<dyn Session>> {
        let db = self.only.clone().or_else(SimDatabase::current)?;
        let mut state = self.state.lock();
        if let Some((_, session)) = state.open.iter().find(|(client, _)| client.is(&db)) {
            return Some(session.clone());
        }
        state.open.retain(|(client, _)| !client.is_gone());
        let session = Arc::new(Embedded::new(db.reopened()));
        state.options.iter().for_each(|option| session.command(DatabaseId(0), option.clone()));
        state.open.push((db.downgrade(), session.clone()));
        Some(session)
    }

    /// Sets an option for every client that the handle stands for now or later.
    pub fn set_option(&self, option: &Command) {
        let mut state = self.state.lock();
        state.options.push(option.clone());
        for (_, session) in &state.open {
            session.command(DatabaseId(0), option.clone());
        }
    }
}
