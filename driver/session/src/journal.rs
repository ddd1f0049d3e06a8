//! The journal of a run: the requests of a program, and when it made them. It survives a process that ends
//! without a report, by a signal, `_exit` or a crash: [`Host::replay`](crate::Host::replay) performs the same
//! run again, and judges it.
//!
//! The first line says that it is a journal, and whether it could be written to its end; the second one is
//! what repeats the run ([`Settings::again`]). Entries follow, in the encoding of postcard, each with a
//! checksum of it and of all entries before it: a journal that was cut, or changed, is read up to there, and
//! the report says how far that is. A process may be killed at any time, so that a journal need not have a
//! last entry.
//! Time is counted in steps: a step is the delivery of an answer, or an advance of virtual time. All
//! requests between two steps take effect at one instant. The steps of a run are determined by its seed and
//! by the requests, except for those that keep the pace of the wall clock: these are entries of their own.

use crate::{
    Command,
    clusters::ProcessVersions,
    inbox::{Inbox, Message},
    output::complain,
    protocol::Request,
    settings::{Environment, Settings},
    sleepers::SleepId,
    threads::ThreadNumber,
};
use serde::{Deserialize, Serialize};
use shaketable_sim::{rt::Nanos, trace::hash_bytes};
use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

/// The first line of a journal.
const WHOLE: &[u8] = b"shaketable journal 1, whole\n";

/// The first line of a journal that could not be written to its end. It is as long as the other: a full disk
/// has room for it.
const SHORT: &[u8] = b"shaketable journal 1, short\n";

/// The maximum length of a journal, bytes. Later requests are not recorded.
const LONGEST: usize = 1 << 30;

/// The most steps that a replay makes after the end of the journal, for calls that were still waited for.
const MOST_AFTER: u32 = 300_000;

/// How many bytes are buffered at most.
const MOST_WAITING: usize = 64 << 10;

/// An entry: the steps since the one before, and what happened.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JournalEntry(pub(crate) u64, pub(crate) Event);

/// How the line of a report begins that says that the journal has not all that the program asked.
pub const NOT_WHOLE: &str = "THE JOURNAL IS NOT WHOLE: ";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
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
    /// The transactions that follow are created by this thread.
    Thread(ThreadNumber),
}

/// Writes a journal.
pub struct Journal {
    /// None if it cannot be written, or is too long.
    file: Option<File>,
    waiting: Vec<u8>,
    length: usize,
    /// The steps since the last entry.
    steps: u64,
    /// That of the last entry.
    checksum: u64,
    /// The thread that created the last transaction.
    thread: Option<ThreadNumber>,
}

impl Journal {
    /// Begins a journal. If it cannot be written, standard error says so, and the run continues without one.
    pub fn create(path: &Path, settings: &Settings) -> Journal {
        let file = File::create(path).map_err(|error| cannot_write(&error)).ok();
        let waiting = [WHOLE, settings.again().as_bytes(), b"\n"].concat();
        let mut journal = Journal { file, waiting, length: 0, steps: 0, checksum: 0, thread: None };
        journal.flush();
        journal
    }

    /// Leaves a journal without requests, unless there is one: the program has a database. Its cluster begins
    /// later, or not at all if the program ends before.
    pub fn mark(path: &Path) {
        // If it cannot be written, `create` says so, and its first line is not there.
        let _ = File::options().append(true).create(true).open(path).and_then(|mut file| {
            match file.metadata()?.len() {
                0 => file.write_all(WHOLE),
                _ => Ok(()),
            }
        });
    }

    /// Records a message of the program.
    pub fn asked(&mut self, message: &Message) {
        if let Message::Command(_, _, Some(thread)) = message
            && self.thread.replace(*thread) != Some(*thread)
        {
            self.add(Event::Thread(*thread));
        }
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

    pub(crate) fn add(&mut self, event: Event) {
        if self.file.is_none() {
            return;
        }
        let is_cut = event == Event::Cut;
        // What a program can ask has an encoding.
        let Ok(entry) = postcard::to_stdvec(&JournalEntry(std::mem::take(&mut self.steps), event)) else {
            return;
        };
        self.checksum = hash_bytes(self.checksum, &entry);
        self.length += entry.len();
        self.waiting.extend_from_slice(&entry);
        self.waiting.extend_from_slice(&self.checksum.to_le_bytes());
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
            // If this fails as well, the torn entry remains to be noticed.
            let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(SHORT));
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
        Message::Command(database, command, _) => Request::Command(*database, command.clone()),
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
fn message(event: &Event, versions: &ProcessVersions, thread: Option<ThreadNumber>) -> Option<Message> {
    let request = match event {
        Event::Asked(request) => request.clone(),
        Event::Sleeps(number, until) => return Some(Message::Sleep(SleepId(*number), *until, Box::new(()))),
        Event::Wakes(number) => return Some(Message::Wake(SleepId(*number))),
        Event::Follows(_) | Event::Stopped | Event::Cut | Event::Thread(_) => return None,
    };
    Some(match request {
        Request::Open(id, cluster) => Message::Open(id, cluster, versions.clone()),
        Request::Command(database, command) => {
            let thread = thread.filter(|_| matches!(command, Command::Create(_)));
            Message::Command(database, command, thread)
        }
        Request::Call(id, database, transaction, call) => {
            Message::Call { id, database, transaction, call, completion: Box::new(drop) }
        }
        Request::Want(id) => Message::Want(id),
        Request::Cancel(id) => Message::Cancel(id),
    })
}

/// Why a journal has not all that the program asked, beside the end of its process.
enum Lack {
    /// The journal could not be written any more.
    Unwritten,
    /// It had become too long.
    TooLong,
    /// From this byte on there is no entry.
    Damaged(usize),
}

/// The reader of a journal whose run is performed again.
pub struct Script {
    bytes: Vec<u8>,
    /// Where the next entry begins, and where the last one that is whole ends.
    at: usize,
    end: usize,
    next: Option<JournalEntry>,
    /// The number of requests, and why there are no more.
    requests: usize,
    lack: Option<Lack>,
    /// The steps after the end.
    after: u32,
    /// Shared by the databases of the process.
    versions: ProcessVersions,
    /// The thread that creates the next transactions.
    thread: Option<ThreadNumber>,
}

impl Script {
    /// Reads a journal: the settings and the requests of the run. `None` if it has its first line only: the
    /// run then had no requests. Fails if it is no journal, or one of another version.
    pub fn read(bytes: Vec<u8>) -> io::Result<Option<(Settings, Script)>> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let foreign = || invalid("it is no journal of this version");
        let unwritten = || invalid("it could not be written");
        let (rest, is_short) = match (bytes.strip_prefix(WHOLE), bytes.strip_prefix(SHORT)) {
            (Some([]), _) => return Ok(None),
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(if WHOLE.starts_with(&bytes) { unwritten() } else { foreign() }),
        };
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or_else(unwritten)?;
        let line = std::str::from_utf8(&rest[..length]).map_err(|_| foreign())?;
        let said = |name: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words.filter(|(said, _)| *said == name).map(|(_, value)| value.to_owned()).next()
        };
        let settings = Environment::read(said).map_err(|_| foreign())?.settings(None);
        let at = WHOLE.len() + length + 1;
        let mut script = Script {
            at,
            end: at,
            next: None,
            requests: 0,
            lack: None,
            after: 0,
            versions: ProcessVersions::default(),
            thread: None,
            bytes,
        };
        script.survey(is_short);
        script.turn();
        Ok(Some((settings, script)))
    }

    /// Finds out how far the journal can be read.
    fn survey(&mut self, is_short: bool) {
        let (mut before, mut is_too_long) = (0, false);
        while let Some((JournalEntry(_, event), end, sum)) = self.entry_at(self.end)
            && sum == hash_bytes(before, &self.bytes[self.end..end - size_of::<u64>()])
        {
            self.requests += usize::from(matches!(event, Event::Asked(_)));
            is_too_long |= event == Event::Cut;
            (self.end, before) = (end, sum);
        }
        self.lack = match self.end < self.bytes.len() {
            _ if is_short => Some(Lack::Unwritten),
            true => Some(Lack::Damaged(self.end)),
            false => is_too_long.then_some(Lack::TooLong),
        };
    }

    /// The entry at a place, the end of it and of its checksum, and the checksum.
    fn entry_at(&self, at: usize) -> Option<(JournalEntry, usize, u64)> {
        let (entry, rest) = postcard::take_from_bytes(&self.bytes[at..]).ok()?;
        let (sum, rest) = rest.split_first_chunk()?;
        Some((entry, self.bytes.len() - rest.len(), u64::from_le_bytes(*sum)))
    }

    /// What the report must say if the run had requests that the journal does not have.
    pub fn lack(&self) -> Option<String> {
        let why = match self.lack.as_ref()? {
            Lack::Unwritten => "could not be written to its end".to_owned(),
            Lack::TooLong => "had become too long".to_owned(),
            Lack::Damaged(at) => format!("is damaged at byte {at} of {}", self.bytes.len()),
        };
        let requests = self.requests;
        let judged = format!("{requests} requests of it were performed, and what came later was not judged");
        Some(format!("{NOT_WHOLE}it {why}; {judged}"))
    }

    /// Reads the next entry.
    fn turn(&mut self) {
        let next = (self.at < self.end).then(|| self.entry_at(self.at)).flatten();
        self.next = next.map(|(entry, end, _)| {
            self.at = end;
            entry
        });
    }

    /// Its entries, as far as it can be read.
    pub(crate) fn entries(mut self) -> impl Iterator<Item = JournalEntry> {
        std::iter::from_fn(move || {
            let entry = self.next.take();
            self.turn();
            entry
        })
    }

    /// Sends the requests that were made before the next step. The run ends where the program stopped the
    /// network; if it did not, the answers that it waited for are still delivered.
    pub fn ask(&mut self, inbox: &Inbox) {
        while let Some(JournalEntry(0, event)) = &self.next {
            if let Event::Thread(thread) = event {
                self.thread = Some(*thread);
            } else if let Some(message) = message(event, &self.versions, self.thread) {
                inbox.push(message);
            } else {
                break;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallId;

    #[test]
    fn a_journal_says_how_far_it_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let written = |events: Vec<Event>| {
            let mut journal = Journal::create(&path, &Environment::default().settings(None));
            events.into_iter().for_each(|event| journal.add(event));
            journal.flush();
            std::fs::read(&path).expect("there is a journal")
        };
        let asked = |id| Event::Asked(Request::Want(CallId(id)));
        let lack = |bytes: &[u8]| {
            let (_, script) =
                Script::read(bytes.to_vec()).expect("a journal").expect("it has its first lines");
            script.lack()
        };
        let whole = written(vec![asked(1), Event::Stopped]);
        assert_eq!([lack(&whole), lack(&written(vec![asked(1)]))], [None, None], "a process may be killed");
        let lacks = |bytes: &[u8], why: &str, requests: usize| {
            let said = lack(bytes).expect("it says so");
            let judged = format!("{requests} requests of it were performed");
            assert!(said.starts_with(NOT_WHOLE) && said.contains(why) && said.contains(&judged), "{said}");
        };
        lacks(&whole[..whole.len() - 1], "is damaged at byte ", 1);
        let mut changed = whole.clone();
        *changed.last_mut().expect("it has bytes") ^= 1;
        lacks(&changed, "is damaged at byte ", 1);
        // Entries that are whole, of another journal.
        let first = written(vec![]).len();
        lacks(&[&whole, &whole[first..]].concat(), "is damaged at byte ", 1);
        lacks(&written(vec![asked(1), asked(2), Event::Cut]), "had become too long", 2);
        let short = [SHORT, &whole[WHOLE.len()..]].concat();
        lacks(&short, "could not be written to its end", 1);
        std::fs::remove_file(&path).expect("it is there");
        Journal::mark(&path);
        Journal::mark(&path);
        let marked = std::fs::read(&path).expect("it is left");
        assert!(Script::read(marked).expect("a journal").is_none(), "nothing was asked");
        let wrong = [WHOLE, b"SHAKETABLE_SEED=x\n"].concat();
        for (bytes, why) in [
            (&b""[..], "it could not be written"),
            (&whole[..9], "it could not be written"),
            (SHORT, "it could not be written"),
            (&whole[..first - 1], "it could not be written"),
            (b"?", "it is no journal of this version"),
            (b"SHAKETABLE_SEED=3\n", "it is no journal of this version"),
            (&wrong, "it is no journal of this version"),
        ] {
            let said = Script::read(bytes.to_vec()).err().expect("it is refused").to_string();
            assert_eq!(said, why, "{}", bytes.escape_ascii());
        }
    }
}
