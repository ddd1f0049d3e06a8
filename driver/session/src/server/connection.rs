//! The threads of a connection: greeting, requests, answers, the end.

use super::{House, guest::Guest, limits};
use crate::protocol::{
    LONGEST_REQUEST, Response, VERSION, encode,
    frames::{Frames, Torn},
    greeting::{Greeting, Side, Strange},
    outbox::Outbox,
    wire::Wire,
};
use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

/// How long a program that is disconnected may take to read why.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ends.
enum Reason {
    /// The program is gone.
    Gone,
    /// The server ends.
    Closing,
    /// The server does not accept what the program sent.
    Refused(String),
}

impl House {
    /// Serves a connection from its beginning to its end.
    pub fn receive(&self, wire: Arc<Wire>) {
        let number = self.visitors.lock().enter(wire.clone());
        let outbox = Arc::new(Outbox::default());
        let writer = {
            let (outbox, wire) = (outbox.clone(), wire.clone());
            thread::Builder::new().name("answers".to_owned()).spawn(move || outbox.write(&wire))
        };
        if let Ok(writer) = writer {
            let reason = self.serve(&wire, &outbox, number);
            self.dismiss(&wire, &outbox, reason);
            // It has no panic to pass on.
            let _ = writer.join();
        }
        self.visitors.lock().leave(number);
        self.left.notify_all();
    }

    /// Serves a connection until there is a reason to end it.
    fn serve(&self, wire: &Wire, outbox: &Arc<Outbox>, number: u64) -> Reason {
        let longest = match self.greet(wire, number) {
            Ok(longest) => longest,
            Err(reason) => return reason,
        };
        let mut guest = Guest::new(&self.host, outbox, longest);
        let mut frames = Frames::new(LONGEST_REQUEST);
        loop {
            outbox.wait_below(limits::UNREAD);
            let taken = match frames.next(wire) {
                Ok(body) => guest.take(body),
                Err(torn @ Torn::TooLong { .. }) => Err(torn.to_string()),
                Err(Torn::End | Torn::Truncated) if self.is_closing.load(Ordering::SeqCst) => {
                    return Reason::Closing;
                }
                Err(Torn::End | Torn::Truncated) => return Reason::Gone,
            };
            if let Err(line) = taken {
                return Reason::Refused(line);
            }
        }
    }

    /// Exchanges greetings. Returns the length of the longest answer that the program accepts.
    fn greet(&self, wire: &Wire, number: u64) -> Result<u32, Reason> {
        let received = Greeting::receive(wire, Side::Client);
        // A program that is gone does not notice.
        let _ = Greeting::SERVER.send(wire);
        let refused = |line: String| Err(Reason::Refused(line));
        match received {
            Err(Strange::Gone) => Err(Reason::Gone),
            Err(strange) => refused(strange.to_string()),
            Ok(Greeting { version, .. }) if version != VERSION => refused(format!(
                "the server speaks version {VERSION} of the protocol, and the client version {version}"
            )),
            Ok(_) if !self.visitors.lock().serve(number) => {
                refused(format!("there are {} connections already", limits::CONNECTIONS))
            }
            Ok(greeting) => Ok(greeting.longest),
        }
    }

    /// Ends a connection: says why, and gives the program time to read it.
    fn dismiss(&self, wire: &Wire, outbox: &Outbox, reason: Reason) {
        let line = match reason {
            Reason::Gone => None,
            Reason::Closing => Some("the server has ended".to_owned()),
            Reason::Refused(line) => {
                self.visitors.lock().refuse(&line);
                Some(line)
            }
        };
        let is_heard = line.is_some();
        if let Some(body) = line.and_then(|line| encode(&Response::Refused(line))) {
            outbox.push(&body, false);
        }
        outbox.close();
        if is_heard {
            outbox.wait_for_end(FAREWELL);
            wire.end_writes();
            // What is not read when a socket is closed takes back what was sent.
            if wire.limit_reads(Some(FAREWELL)).is_ok() {
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
