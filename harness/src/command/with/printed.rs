//! What a run prints: the end of it is kept, however much it is.

use super::SHOWN;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    io::{PipeReader, PipeWriter, Read},
    process::Command,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

/// How long the end of a run waits for what was printed last: a process that went on may hold the pipe open.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps the end of what a command prints.
pub(super) struct Printed {
    kept: Arc<Mutex<Kept>>,
    ended: Receiver<()>,
}

/// The last bytes, and how many came before them.
#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    left_out: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let more = self.bytes.len().saturating_sub(SHOWN);
        self.bytes.drain(..more);
        self.left_out += more as u64;
    }
}

impl Printed {
    /// Takes what a command will print to standard output and standard error, in one order.
    pub(super) fn by(command: &mut Command) -> std::io::Result<Printed> {
        let (reader, writer): (PipeReader, PipeWriter) = std::io::pipe()?;
        command.stderr(writer.try_clone()?).stdout(writer);
        let (sender, ended) = channel();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let into = kept.clone();
        std::thread::Builder::new().name("printed".to_owned()).spawn(move || {
            keep(reader, &into);
            sender.send(())
        })?;
        Ok(Printed { kept, ended })
    }

    /// What was printed: the end, and before it how much is left out.
    pub(super) fn end(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(PATIENCE);
        let Kept { bytes, left_out } = std::mem::take(&mut *self.kept.lock());
        let mut text = match left_out {
            0 => Vec::new(),
            bytes => format!("({bytes} bytes are left out)\n").into_bytes(),
        };
        text.extend(bytes);
        text
    }
}

/// Reads to the end.
fn keep(mut reader: PipeReader, into: &Mutex<Kept>) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(read @ 1..) = reader.read(&mut chunk) {
        into.lock().add(&chunk[..read]);
    }
}
