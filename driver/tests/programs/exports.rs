//! The symbols that leave the library: the functions of FoundationDB's, and nothing else, under its name.

use super::build::{HEADER, library};
use object::{Object, ObjectSymbol};
use std::{collections::BTreeSet, process::Command};

/// The functions that the header declares for a version of the API.
fn declared(version: u32) -> BTreeSet<String> {
    let header = Command::new("cc")
        .arg(format!("-DFDB_API_VERSION={version}"))
        .args(["-E", "-P"])
        .arg(HEADER.join("fdb_c.h"))
        .output()
        .expect("there is a C compiler");
    assert!(header.status.success(), "{}", String::from_utf8_lossy(&header.stderr));
    let text = String::from_utf8(header.stdout).expect("the header is text");
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut functions = BTreeSet::new();
    for (at, _) in text.match_indices('(') {
        let before = text[..at].trim_end();
        let name = &before[before.rfind(|c| !is_letter(c)).map_or(0, |end| end + 1)..];
        if name.starts_with("fdb_") {
            functions.insert(name.to_owned());
        }
    }
    functions
}

/// Functions that FoundationDB's library of 7.4 exports and its header does not declare for 630 to 740:
/// removed before, or for the use of one client library by another.
const UNDECLARED: [&str; 15] = [
    "fdb_cluster_create_database",
    "fdb_cluster_destroy",
    "fdb_cluster_set_option",
    "fdb_create_cluster",
    "fdb_database_create_shared_state",
    "fdb_database_set_shared_state",
    "fdb_future_get_cluster",
    "fdb_future_get_database",
    "fdb_future_get_shared_state",
    "fdb_future_get_version",
    "fdb_future_is_error",
    "fdb_transaction_get_range_selector",
    "fdb_transaction_read_blob_granules_finish",
    "fdb_transaction_read_blob_granules_start",
    "fdb_use_future_protocol_version",
];

#[test]
fn the_functions_of_the_header_leave_the_library_and_nothing_else() {
    let mut declared: BTreeSet<String> =
        [630, 700, 710, 720, 730, 740, 800].into_iter().flat_map(declared).collect();
    assert!(declared.len() >= 96 && declared.contains("fdb_transaction_commit"), "{}", declared.len());
    declared.extend(UNDECLARED.map(str::to_owned));
    assert_eq!(
        declared.len(),
        111 + 13,
        "as many as FoundationDB's library of 7.4 exports, and those new in 8.0"
    );
    let bytes = std::fs::read(library()).expect("it is there");
    let file = object::File::parse(&*bytes).expect("it is a library");
    let leaving = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let exported: BTreeSet<String> =
        leaving.map(|symbol| symbol.name().expect("symbols have names").to_owned()).collect();
    assert_eq!(exported, declared);
    let name = b"libfdb_c.so\0";
    assert!(
        bytes.windows(name.len()).any(|window| window == name),
        "it has the name of FoundationDB's library"
    );
}
