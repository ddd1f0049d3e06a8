//! A server: programs connect to it and share the cluster of a [`Host`].
//!
//! Each connection is a program with databases, transactions and calls of its own. It is served by two
//! threads, which are outside of the simulation: one reads requests and hands them to the host, one writes
//! answers. All programs share one virtual time: it advances while any of them waits for a call (see the
//! [table](crate)).
//! The order in which requests of several programs arrive is the order in which the cluster sees them, so
//! that the seed alone does not determine a run.
//!
//! The end of a connection is the death of its clients, whether the program closed it, exited or was killed.
//! Their machines are killed, as by the fault family `client-death`: writes of transactions that were not
//! committed are gone; a commit that was sent may take effect or not, now or a little later. The other
//! programs are not notified.
//!
//! What a connection may do is bounded, so that one program does not end the cluster of the others: see
//! [`limits`]. A program that exceeds a bound, or sends a frame that is no request, receives a reason of one
//! line and is disconnected.
//!
//! The server checks that requests are well formed. It does not authenticate clients: do not let it listen
//! where untrusted programs can connect.

mod connection;
mod connections;
pub mod limits;
mod listener;
mod program;

pub use connections::ConnectionStats;

use crate::{Host, address::Address};
use listener::Listener;
use parking_lot::{Condvar, Mutex};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// How long the end of a server waits for connections to end.
const LONGEST_END: Duration = Duration::from_secs(3);

/// A server that accepts connections, until it is stopped.
pub struct Server {
    shared: Arc<Shared>,
    address: Address,
    acceptor: JoinHandle<()>,
}

/// The state that connections share.
struct Shared {
    host: Arc<Host>,
    is_closing: AtomicBool,
    connections: Mutex<connections::Registry>,
    /// A connection has ended.
    left: Condvar,
}

impl Server {
    /// Listens on an address and serves the cluster of a host, which [runs](Host::run) on another thread.
    ///
    /// # Errors
    ///
    /// Those of the system: a port in use, an address of another machine, a folder that cannot be written.
    pub fn start(address: &Address, host: Arc<Host>) -> io::Result<Server> {
        host.share();
        let listener = Listener::bind(address)?;
        let address = listener.address()?;
        let shared = Shared {
            host,
            is_closing: AtomicBool::new(false),
            connections: Mutex::default(),
            left: Condvar::new(),
        };
        let shared = Arc::new(shared);
        let open = shared.clone();
        let acceptor =
            thread::Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &open))?;
        Ok(Server { shared, address, acceptor })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Statistics of the connections so far.
    pub fn connections(&self) -> ConnectionStats {
        self.shared.connections.lock().stats.clone()
    }

    /// Accepts no more connections, and ends those that are open. To be called before the host is stopped.
    pub fn stop(self) -> ConnectionStats {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        // It has no panic to pass on.
        let _ = self.acceptor.join();
        let mut registry = self.shared.connections.lock();
        registry.end_reads();
        self.shared.left.wait_while_for(&mut registry, |registry| registry.stats.now > 0, LONGEST_END);
        registry.stats.clone()
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
    while !shared.is_closing.load(Ordering::SeqCst) {
        let Some(wire) = listener.accept() else { continue };
        let (wire, shared) = (Arc::new(wire), shared.clone());
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().name("client".to_owned()).spawn(move || shared.receive(wire));
    }
}
