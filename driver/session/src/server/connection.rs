//! The two threads of a connection: exchange greetings, read requests, write answers, and disconnect.

use super::{Shared, limits, program::ConnectedProgram};
use crate::protocol::{
    LONGEST_REQUEST, Response, VERSION, encode,
    frames::{FrameError, Frames},
    greeting::{Greeting, GreetingError, Side},
    outbox::Outbox,
    wire::Wire,
};
use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

/// How long a program that is disconnected may take to read the reason: long enough for one among a thousand
/// on a busy machine.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection ends.
enum Reason {
    /// The program is gone.
    Gone,
    /// The server ends.
    Closing,
    /// The server does not accept what the program sent.
    Refused(String),
}

impl Shared {
    /// Serves a connection from its beginning to its end.
    pub fn receive(&self, wire: Arc<Wire>) {
        let number = self.connections.lock().add(wire.clone());
        let outbox = Arc::new(Outbox::default());
        let writer = {
            let (outbox, wire) = (outbox.clone(), wire.clone());
            thread::Builder::new().name("answers".to_owned()).spawn(move || outbox.write(&wire))
        };
        if let Ok(writer) = writer {
            let reason = self.serve(&wire, &outbox, number);
            self.disconnect(&wire, &outbox, reason);
            // It has no panic to pass on.
            let _ = writer.join();
        }
        self.connections.lock().remove(number);
        self.left.notify_all();
    }

    /// Serves a connection until there is a reason to end it.
    fn serve(&self, wire: &Wire, outbox: &Arc<Outbox>, number: u64) -> Reason {
        let longest = match self.greet(wire, number) {
            Ok(longest) => longest,
            Err(reason) => return reason,
        };
        let mut program = ConnectedProgram::new(&self.host, outbox, longest);
        let mut frames = Frames::new(LONGEST_REQUEST);
        loop {
            outbox.wait_below(limits::UNREAD);
            let taken = match frames.next(wire) {
                Ok(body) => program.take(body),
                Err(torn @ FrameError::TooLong { .. }) => Err(torn.to_string()),
                Err(FrameError::End | FrameError::Truncated) if self.is_closing.load(Ordering::SeqCst) => {
                    return Reason::Closing;
                }
                Err(FrameError::End | FrameError::Truncated) => return Reason::Gone,
            };
            if let Err(line) = taken {
                return Reason::Refused(line);
            }
        }
    }

    /// Exchanges greetings. Returns the length of the longest answer that the program accepts.
    fn greet(&self, wire: &Wire, number: u64) -> Result<u32, Reason> {
        let refused = |line: String| Err(Reason::Refused(line));
        let accepted = match Greeting::receive(wire, Side::Client) {
            Err(GreetingError::Gone) => Err(Reason::Gone),
            Err(strange) => refused(strange.to_string()),
            Ok(Greeting { version, .. }) if version != VERSION => refused(format!(
                "the server speaks version {VERSION} of the protocol, and the client version {version}"
            )),
            Ok(_) if !self.connections.lock().accept(number) => {
                refused(format!("there are {} connections already", limits::CONNECTIONS))
            }
            Ok(greeting) => Ok(greeting.longest),
        };
        // Only now: who was greeted before another one came has its place before it. A program that is gone
        // does not notice.
        let _ = Greeting::SERVER.send(wire);
        accepted
    }

    /// Ends a connection: sends the reason, and gives the program time to read it.
    fn disconnect(&self, wire: &Wire, outbox: &Outbox, reason: Reason) {
        let line = match reason {
            Reason::Gone => None,
            Reason::Closing => Some("the server has ended".to_owned()),
            Reason::Refused(line) => {
                self.connections.lock().refuse(&line);
                Some(line)
            }
        };
        let is_heard = line.is_some();
        if let Some(body) = line.and_then(|line| encode(&Response::Refused(line))) {
            outbox.push(&body, false);
        }
        outbox.close();
        if is_heard {
            outbox.wait_for_end(REASON_TIMEOUT);
            wire.end_writes();
            // Closing a socket with unread input resets the connection, and the program would lose the
            // reason.
            if wire.limit_reads(Some(REASON_TIMEOUT)).is_ok() {
                let mut rest = vec![0; 64 << 10];
                for _ in 0..LONGEST_REQUEST as usize / rest.len() {
                    if !wire.read(&mut rest).is_ok_and(|read| read > 0) {
                        break;
                    }
                }
            }
        }
        wire.end();
    }
}
