//! The journal of a run: the requests of a program, and when it made them. It survives a process that ends
//! without a report, by a signal, `_exit` or a crash: [`Host::replay`](crate::Host::replay) performs the same
//! run again, and judges it.
//!
//! The first line is what repeats the run ([`Settings::again`]). Entries follow, in the encoding of postcard.
//! Time is counted in steps: a step is the delivery of an answer, or an advance of virtual time. All
//! requests between two steps take effect at one instant. The steps of a run are determined by its seed and
//! by the requests, except for those that keep the pace of the wall clock: these are entries of their own.

use crate::{
    clusters::ProcessVersions,
    inbox::{Inbox, Message},
    output::complain,
    protocol::Request,
    settings::{Environment, Settings},
    sleepers::SleepId,
};
use serde::{Deserialize, Serialize};
use shaketable_sim::rt::Nanos;
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

/// The maximum length of a journal, bytes. Later requests are not recorded.
const LONGEST: usize = 1 << 30;

/// The most steps that a replay makes after the end of the journal, for calls that were still waited for.
const MOST_AFTER: u32 = 300_000;

/// How many bytes are buffered at most.
const MOST_WAITING: usize = 64 << 10;

/// An entry: the steps since the one before, and what happened.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JournalEntry(u64, Event);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Event {
    /// The program asked for something.
    Asked(Request),
    /// Virtual time follows the wall clock, nanoseconds.
    Follows(Nanos),
    /// The program stopped the network.
    Stopped,
    /// The journal has become too long.
    Cut,
    /// A thread waits for a virtual time since the start of the cluster.
    Sleeps(u64, Nanos),
    /// It does not wait any more, before that time.
    Wakes(u64),
}

/// Writes a journal.
pub struct Journal {
    /// None if it cannot be written, or is too long.
    file: Option<File>,
    waiting: Vec<u8>,
    length: usize,
    /// The steps since the last entry.
    steps: u64,
}

impl Journal {
    /// Begins a journal. If it cannot be written, standard error says so, and the run continues without one.
    pub fn create(path: &Path, settings: &Settings) -> Journal {
        let begun = File::create(path).and_then(|mut file| {
            writeln!(file, "{}", settings.again())?;
            Ok(file)
        });
        let file = begun.map_err(|error| cannot_write(&error)).ok();
        Journal { file, waiting: Vec::new(), length: 0, steps: 0 }
    }

    /// Leaves an empty journal, unless there is one: the program has a database. Its cluster begins later, or
    /// not at all if the program ends before.
    pub fn mark(path: &Path) {
        // If it cannot be written, `create` says so.
        let _ = File::options().append(true).create(true).open(path);
    }

    /// Records a message of the program.
    pub fn asked(&mut self, message: &Message) {
        if let (Some(_), Some(event)) = (&self.file, event(message)) {
            self.add(event);
        }
    }

    /// Records that virtual time is about to follow the wall clock.
    pub fn follows(&mut self, nanos: Nanos) {
        self.add(Event::Follows(nanos));
    }

    /// There was a step.
    pub fn stepped(&mut self) {
        self.steps += 1;
    }

    /// The program has stopped the network.
    pub fn stopped(&mut self) {
        self.add(Event::Stopped);
        self.flush();
    }

    fn add(&mut self, event: Event) {
        if self.file.is_none() {
            return;
        }
        let is_cut = event == Event::Cut;
        // What a program can ask has an encoding.
        let Ok(entry) = postcard::to_stdvec(&JournalEntry(std::mem::take(&mut self.steps), event)) else {
            return;
        };
        self.length += entry.len();
        self.waiting.extend_from_slice(&entry);
        if self.waiting.len() > MOST_WAITING {
            self.flush();
        }
        if self.length > LONGEST && !is_cut {
            self.add(Event::Cut);
            self.flush();
            self.file = None;
        }
    }

    /// Writes the buffered entries. Must be called before an answer is delivered, because the program may
    /// then end.
    pub fn flush(&mut self) {
        if let (Some(file), false) = (&mut self.file, self.waiting.is_empty())
            && let Err(error) = file.write_all(&self.waiting)
        {
            cannot_write(&error);
            self.file = None;
        }
        self.waiting.clear();
    }
}

fn cannot_write(error: &io::Error) {
    complain(&format!("cannot write the journal of the run: {error}"));
}

/// What is recorded of a message. Only a server kills clients, and such messages are not recorded. A thread's
/// turn is not either: the requests have the order that it made.
fn event(message: &Message) -> Option<Event> {
    Some(Event::Asked(match message {
        Message::Open(id, cluster, _) => Request::Open(*id, cluster.clone()),
        Message::Command(database, command) => Request::Command(*database, command.clone()),
        Message::Call { id, database, transaction, call, .. } => {
            Request::Call(*id, *database, *transaction, call.clone())
        }
        Message::Want(id) | Message::Expect(id, _) => Request::Want(*id),
        Message::Cancel(id) => Request::Cancel(*id),
        Message::Sleep(SleepId(number), until, _) => return Some(Event::Sleeps(*number, *until)),
        Message::Wake(SleepId(number)) => return Some(Event::Wakes(*number)),
        Message::Turn | Message::Kill(..) => return None,
    }))
}

/// The message of a recorded event, if it was one. Its answer is dropped.
fn message(event: &Event, versions: &ProcessVersions) -> Option<Message> {
    let request = match event {
        Event::Asked(request) => request.clone(),
        Event::Sleeps(number, until) => return Some(Message::Sleep(SleepId(*number), *until, Box::new(()))),
        Event::Wakes(number) => return Some(Message::Wake(SleepId(*number))),
        Event::Follows(_) | Event::Stopped | Event::Cut => return None,
    };
    Some(match request {
        Request::Open(id, cluster) => Message::Open(id, cluster, versions.clone()),
        Request::Command(database, command) => Message::Command(database, command),
        Request::Call(id, database, transaction, call) => {
            Message::Call { id, database, transaction, call, completion: Box::new(drop) }
        }
        Request::Want(id) => Message::Want(id),
        Request::Cancel(id) => Message::Cancel(id),
    })
}

/// The reader of a journal whose run is performed again.
pub struct Script {
    bytes: Vec<u8>,
    /// Where the next entry begins.
    at: usize,
    next: Option<JournalEntry>,
    is_cut: bool,
    /// The steps after the end.
    after: u32,
    /// Shared by the databases of the process.
    versions: ProcessVersions,
}

impl Script {
    /// Reads a journal: the settings and the requests of the run. `None` if its first line is incomplete: the
    /// run then had no requests.
    pub fn read(bytes: Vec<u8>) -> Option<(Settings, Script)> {
        let at = bytes.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&bytes[..at]).ok()?;
        let said = |name: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words.filter(|(said, _)| *said == name).map(|(_, value)| value.to_owned()).next()
        };
        let settings = Environment::read(said).ok()?.settings(None);
        let mut script = Script {
            bytes,
            at: at + 1,
            next: None,
            is_cut: false,
            after: 0,
            versions: ProcessVersions::default(),
        };
        script.turn();
        Some((settings, script))
    }

    /// Whether the run had requests that the journal does not have.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads the next entry; none at the end, where the last entry may be incomplete.
    fn turn(&mut self) {
        let read = postcard::take_from_bytes(&self.bytes[self.at..]).ok();
        self.next = read.map(|(entry, rest): (JournalEntry, _)| {
            self.at = self.bytes.len() - rest.len();
            entry
        });
        self.is_cut |= matches!(self.next, Some(JournalEntry(_, Event::Cut)));
    }

    /// Sends the requests that were made before the next step. The run ends where the program stopped the
    /// network; if it did not, the answers that it waited for are still delivered.
    pub fn ask(&mut self, inbox: &Inbox) {
        while let Some(JournalEntry(0, event)) = &self.next
            && let Some(message) = message(event, &self.versions)
        {
            inbox.push(message);
            self.turn();
        }
        if matches!(self.next, Some(JournalEntry(0, Event::Stopped | Event::Cut))) || self.after > MOST_AFTER
        {
            inbox.stop();
        }
    }

    /// There was a step.
    pub fn stepped(&mut self) {
        match &mut self.next {
            Some(JournalEntry(steps, _)) => *steps = steps.saturating_sub(1),
            None => self.after += 1,
        }
    }

    /// How far virtual time followed the wall clock in the next step, if it did.
    pub fn follows(&mut self) -> Option<Nanos> {
        let Some(JournalEntry(0, Event::Follows(nanos))) = self.next else { return None };
        self.turn();
        Some(nanos)
    }
}
