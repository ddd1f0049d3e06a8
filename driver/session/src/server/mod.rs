//! A server: programs connect to it and share the cluster of a [`Host`].
//!
//! Each connection is a program with databases, transactions and calls of its own. It is served by two
//! threads, which are outside of the simulation: one reads requests and hands them to the host, one writes
//! answers. Virtual time is one for all: it runs while any of them waits for a call (see the [table](crate)).
//! The order in which requests of several programs arrive is the order in which the cluster sees them, so
//! that the seed alone does not determine a run.
//!
//! The end of a connection is the death of its clients, whether the program closed it, exited or was killed.
//! Their machines are killed, as by the fault family `client-death`: writes of transactions that were not
//! committed are gone, a commit that was sent may be there or not, now or a little later. Nobody is told.
//!
//! What a connection may do is bounded, so that one program does not end the cluster of the others: see
//! [`limits`]. A program that exceeds a bound, or sends what is no request, is told in one line and
//! disconnected.
//!
//! The server checks that nobody sends nonsense. It does not check who a client is: do not let it listen
//! where strangers can connect.

mod connection;
mod guest;
pub mod limits;
mod listener;
mod visitors;

pub use visitors::Visitors;

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
    house: Arc<House>,
    address: Address,
    acceptor: JoinHandle<()>,
}

/// What connections share.
struct House {
    host: Arc<Host>,
    is_closing: AtomicBool,
    visitors: Mutex<visitors::Book>,
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
        let house = House {
            host,
            is_closing: AtomicBool::new(false),
            visitors: Mutex::default(),
            left: Condvar::new(),
        };
        let house = Arc::new(house);
        let open = house.clone();
        let acceptor =
            thread::Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &open))?;
        Ok(Server { house, address, acceptor })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Who came so far.
    pub fn visitors(&self) -> Visitors {
        self.house.visitors.lock().visitors.clone()
    }

    /// Accepts no more connections, and ends those that are open. To be called before the host is stopped.
    pub fn stop(self) -> Visitors {
        self.house.is_closing.store(true, Ordering::SeqCst);
        // It has no panic to pass on.
        let _ = self.acceptor.join();
        let mut book = self.house.visitors.lock();
        book.dismiss();
        self.house.left.wait_while_for(&mut book, |book| book.visitors.now > 0, LONGEST_END);
        book.visitors.clone()
    }
}

fn accept(listener: &Listener, house: &Arc<House>) {
    while !house.is_closing.load(Ordering::SeqCst) {
        let Some(wire) = listener.accept() else { continue };
        let (wire, house) = (Arc::new(wire), house.clone());
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().name("client".to_owned()).spawn(move || house.receive(wire));
    }
}
