//! Parsing recordings: one case per line, with errors that contain the line number.

use super::{cases::Case, directories::DirectoryCase, special::SpecialLine, tuples::TupleCase};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;
use thiserror::Error;

/// A line that is not a valid case.
#[derive(Debug, Error)]
#[error("line {line}: {error}")]
pub struct FormatError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: serde_json::Error,
}

/// A recording: its cases, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// Of the client.
    Client(Vec<Case>),
    /// Of the directory layer.
    Directories(Vec<DirectoryCase>),
    /// Of the tuple layer.
    Tuples(Vec<TupleCase>),
    /// Of special and system keys.
    Special(Vec<SpecialLine>),
}

/// Parses a recording; the fields of its first case determine its kind.
pub fn parse(text: &str) -> Result<Recording, FormatError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first = serde_json::from_str::<Value>(first).unwrap_or_default();
    let has = |field| first.get(field).is_some();
    Ok(if has("manual_prefixes") {
        Recording::Directories(cases(text)?)
    } else if has("packed") {
        Recording::Tuples(cases(text)?)
    } else {
        Recording::Client(cases(text)?)
    })
}

/// Parses a recording of special keys.
pub fn parse_special(text: &str) -> Result<Recording, FormatError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let answer_missing = |line| FormatError { line, error: serde_json::Error::custom("no answer after ->") };
    let parsed = lines.map(|(i, line)| SpecialLine::parse(line).ok_or_else(|| answer_missing(i + 1)));
    Ok(Recording::Special(parsed.collect::<Result<_, _>>()?))
}

fn cases<C: DeserializeOwned>(text: &str) -> Result<Vec<C>, FormatError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| serde_json::from_str(line).map_err(|error| FormatError { line: i + 1, error }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Bytes;
    use std::collections::BTreeMap;

    #[test]
    fn bytes_are_spelled_in_three_ways() {
        let stamps = BTreeMap::from([("A".to_owned(), [7; 10])]);
        let decode = |text: &str| Bytes(text.to_owned()).decode(&stamps);
        assert_eq!(decode("61ff"), Some(vec![0x61, 0xff]));
        assert_eq!(decode("61*3"), Some(vec![0x61; 3]));
        assert_eq!(decode("62{A}00"), Some([&[0x62][..], &[7; 10], &[0]].concat()));
        assert_eq!(decode("62{B}00"), None);
        assert_eq!(decode("6"), None);
        assert_eq!(Bytes::encode(&[1; 10]).0, "01*10");
        assert_eq!(Bytes::encode(&[1, 2]).0, "0102");
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse("\n{\"id\": 3}\n").unwrap_err();
        assert_eq!(error.line, 2);
    }

    #[test]
    fn the_first_case_states_what_is_recorded() {
        let tuples = parse("{\"tuple\":[{\"int\":\"7\"}],\"packed\":\"1507\"}\n").unwrap();
        assert!(matches!(tuples, Recording::Tuples(cases) if cases.len() == 1));
        let directories =
            parse("{\"id\":\"d-1\",\"manual_prefixes\":true,\"steps\":[],\"final\":[]}").unwrap();
        assert!(matches!(directories, Recording::Directories(cases) if cases.len() == 1));
        assert_eq!(parse("\n").unwrap(), Recording::Client(Vec::new()));
    }
}
