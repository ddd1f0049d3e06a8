//! Orders of calls: what FoundationDB's library refuses has the same error, and what crashes it is a sentence
//! and an abort.

use super::build::Program;
use std::os::unix::process::ExitStatusExt;

/// Orders that have an answer.
const ANSWERED: &[&str] = &[
    "only_numbers_and_names_come_first",
    "options_of_the_chooser_first",
    "network_before_the_version",
    "network_before_its_set_up",
    "version_twice",
    "set_up_twice",
    "options_after_the_set_up",
    "stop_before_run",
    "run_twice",
];

/// Orders that crash FoundationDB's library, and the function in which they do.
const CRASH: &[(&str, &str)] = &[
    ("client_version_first", "fdb_get_client_version"),
    ("protocol_first", "fdb_use_future_protocol_version"),
    ("set_up_first", "fdb_setup_network"),
    ("option_first", "fdb_network_set_option"),
];

#[test]
fn an_order_that_is_refused_has_the_same_error() {
    let program = Program::compile("orders");
    for order in ANSWERED {
        assert_eq!(program.run(&[order], &[]), "passed\n", "{order}");
    }
}

#[test]
fn an_order_that_crashes_ends_with_a_sentence() {
    let program = Program::compile("orders");
    for (order, function) in CRASH {
        let output = program.output(&[order], &[]);
        let said = format!(
            "shaketable: {function} is called before fdb_select_api_version, where FoundationDB's library crashes\n"
        );
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{order}: {}", output.status);
    }
}
