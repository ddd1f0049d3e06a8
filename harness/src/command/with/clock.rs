//! Whether a program can see virtual time: the library that shows it is preloaded, and has functions in place
//! of the C library's.
//!
//! A program that is linked statically loads no library, and one in Go asks the kernel for the time. Scripts
//! are as their interpreters are. What starts other programs is not known here.

use std::{
    fs::File,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

/// How many interpreters of interpreters are followed, as in Linux.
const INTERPRETERS: u32 = 4;

/// How much of a script is read for its first line, bytes.
const FIRST_LINE: u64 = 256;

/// The types of segments: the path of the program that loads libraries, and notes.
const INTERPRETER: u64 = 3;
const NOTE: u64 = 4;

/// The longest segment of notes that is read, bytes.
const LONGEST_NOTES: usize = 1 << 16;

/// Why the program that a command names would not see virtual time; none if it would, or if it is not known.
pub(super) fn blindness(command: &Path) -> Option<&'static str> {
    let mut program = found(command)?;
    for _ in 0..INTERPRETERS {
        match interpreter(&program) {
            Some(next) => program = found(&next)?,
            None => return blindness_of_file(&File::open(program).ok()?),
        }
    }
    None
}

/// The file of a command.
fn found(command: &Path) -> Option<PathBuf> {
    if command.as_os_str().as_bytes().contains(&b'/') {
        return Some(command.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(|file| file.is_file())
}

/// The interpreter of a script; that which `env` finds for it.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut first = Vec::new();
    File::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let interpreter = words.next()?;
    match interpreter.ends_with("/env") {
        true => words.find(|word| !word.starts_with('-') && !word.contains('=')).map(PathBuf::from),
        false => Some(interpreter.into()),
    }
}

/// Numbers of an ELF file of 64 bits, with the lowest byte first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    Some(bytes.get(at..at + length)?.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn read(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn blindness_of_file(file: &File) -> Option<&'static str> {
    let head = read(file, 0, 64).filter(|head| head.starts_with(b"\x7fELF\x02\x01"))?;
    let (at, length, count) = (number(&head, 32, 8)?, number(&head, 54, 2)?, number(&head, 56, 2)?);
    let table = read(file, at, usize::try_from(length * count).ok()?)?;
    let segments: Vec<_> =
        table.chunks_exact(usize::try_from(length).ok().filter(|length| *length > 0)?).collect();
    let of = |wanted| segments.iter().filter(move |segment| number(segment, 0, 4) == Some(wanted));
    if of(NOTE).any(|segment| is_of_go(file, segment) == Some(true)) {
        return Some("a program in Go asks the kernel for the time, and not the C library");
    }
    of(INTERPRETER).next().is_none().then_some("it is linked statically, and loads no library")
}

/// Whether a segment has the note by which Go marks what it builds.
fn is_of_go(file: &File, segment: &[u8]) -> Option<bool> {
    let (at, length) = (number(segment, 8, 8)?, usize::try_from(number(segment, 32, 8)?).ok()?);
    let notes = read(file, at, length.min(LONGEST_NOTES))?;
    // The length of the name, that of what follows, the type 4, and the name.
    let is_mark =
        |note: &[u8]| note.starts_with(&[4, 0, 0, 0]) && note.get(8..16) == Some(b"\x04\0\0\0Go\0\0");
    Some((0..notes.len()).step_by(4).any(|at| is_mark(&notes[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// An ELF file with one segment of this type, and its content.
    fn elf(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        (bytes[32], bytes[54], bytes[56]) = (64, 56, 1);
        let mut segment = vec![0; 56];
        (segment[0], segment[8], segment[32]) = (kind, 120, content.len() as u8);
        [&bytes[..], &segment, content].concat()
    }

    #[test]
    fn programs_in_go_and_static_ones_are_known_and_scripts_are_as_their_interpreters() {
        let folder = tempfile::tempdir().expect("a folder");
        let says = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("written");
            blindness(&path).unwrap_or("it sees").to_owned()
        };
        let go = says("go", &elf(4, b"\x04\0\0\0\x04\0\0\0\x04\0\0\0Go\0\0abcd"));
        assert!(go.starts_with("a program in Go "), "{go}");
        assert_eq!(says("dynamic", &elf(3, b"/lib/ld.so")), "it sees");
        assert!(says("static", &elf(1, b"")).starts_with("it is linked statically"));
        let there = folder.path().display();
        assert_eq!(says("script", format!("#!{there}/go -x\n").as_bytes()), go);
        assert_eq!(says("script of a script", format!("#! {there}/script\n").as_bytes()), go);
        assert_eq!(says("by env", format!("#!/usr/bin/env -S A=b {there}/go\n").as_bytes()), go);
        for (name, unknown) in
            [("loop", format!("#!{there}/loop")), ("cut", "\x7fELF\x02\x01".into()), ("text", "x".into())]
        {
            assert_eq!(says(name, unknown.as_bytes()), "it sees", "{name}");
        }
        assert_eq!((blindness(Path::new("sh")), blindness(Path::new("no such command"))), (None, None));
    }
}
