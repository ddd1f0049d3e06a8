//! Reports as JSON: for machines, and for other renderers.

use crate::document::{Document, SCHEMA};
use serde::Deserialize;

/// The document as indented JSON, ending with a line feed.
pub fn render(document: &Document) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("plain data with text keys");
    text.push('\n');
    text
}

/// The document as one line of JSON, ending with a line feed.
pub fn line(document: &Document) -> String {
    let mut text = serde_json::to_string(document).expect("plain data with text keys");
    text.push('\n');
    text
}

/// Parses a document. The error is one line.
pub fn parse(text: &str) -> Result<Document, String> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let head: Head = serde_json::from_str(text).map_err(|e| format!("not a report: {e}"))?;
    if head.schema != SCHEMA {
        return Err(format!("report of schema {}, this program reads schema {SCHEMA}", head.schema));
    }
    serde_json::from_str(text).map_err(|e| format!("torn report: {e}"))
}
