//! Reading recordings: one case a line, with errors that name the line.

use super::cases::Case;
use thiserror::Error;

/// A line that is no case.
#[derive(Debug, Error)]
#[error("line {line}: {error}")]
pub struct FormatError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: serde_json::Error,
}

/// The cases of a recording, in order.
pub fn parse(text: &str) -> Result<Vec<Case>, FormatError> {
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
}
