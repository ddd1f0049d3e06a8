//! The contract of the C interface, and what stays the program's own.

use super::build::Program;
use std::os::unix::process::ExitStatusExt;

#[test]
fn a_program_in_c_gets_what_the_header_promises() {
    assert_eq!(Program::compile("contract").run::<&str>(&[], &[]), "passed\n");
}

#[test]
fn a_program_of_the_oldest_version_of_the_api_runs() {
    assert_eq!(Program::compile("oldest").run::<&str>(&[], &[]), "passed\n");
}

#[test]
fn each_version_of_the_api_has_its_own_behaviour() {
    for version in ["630", "699", "700", "710", "719", "720", "730", "740", "800"] {
        let program = Program::compile_with("versions", &[&format!("-DFDB_API_VERSION={version}")]);
        assert_eq!(program.run::<&str>(&[], &[]), "passed\n", "{version}");
    }
}

#[test]
fn a_program_of_version_800_has_what_is_new_and_ends_with_what_is_removed() {
    let program = Program::compile("changes");
    for seed in ["1", "2", "3"] {
        assert_eq!(program.run::<&str>(&[], &[("SHAKETABLE_SEED", seed)]), "passed\n", "{seed}");
    }
    for removed in [
        "fdb_database_open_tenant",
        "fdb_tenant_get_id",
        "fdb_tenant_create_transaction",
        "fdb_tenant_destroy",
        "fdb_database_blobbify_range",
        "fdb_readbg_parse_delta_file",
        "fdb_future_get_granule_summary_array",
    ] {
        let output = program.output(&[removed], &[]);
        let said = format!("shaketable: {removed} was removed from the API in version 800\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{removed}: {}", output.status);
    }
}

#[test]
fn clock_randomness_and_threads_are_the_programs() {
    let program = Program::compile("host");
    let seed = [("SHAKETABLE_SEED", "1")];
    let (first, second) = (program.run::<&str>(&[], &seed), program.run::<&str>(&[], &seed));
    let lines: Vec<_> = first.lines().chain(second.lines()).collect();
    assert_eq!(lines.len(), 4, "one on the program's thread and one in a callback");
    let mut different = lines.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 4, "the seed decides nothing of the program's: {lines:?}");
}

#[test]
fn threads_cancel_and_destroy_in_any_order_and_each_callback_is_called_once() {
    let program = Program::compile("threads");
    for (seed, faults) in [("1", "calm"), ("2", "standard"), ("3", "storm"), ("4", "storm")] {
        program.run::<&str>(&[], &[("SHAKETABLE_SEED", seed), ("SHAKETABLE_FAULTS", faults)]);
    }
}

#[test]
fn a_future_may_be_destroyed_as_soon_as_its_callback_can_be_called() {
    assert_eq!(Program::compile("callbacks").run::<&str>(&[], &[("SHAKETABLE_SEED", "1")]), "passed\n");
}

#[test]
fn a_versionstamp_is_ready_before_its_commit_and_waits_for_nothing_without_one() {
    let program = Program::compile("stamps");
    for seed in ["1", "2", "3"] {
        assert_eq!(program.run::<&str>(&[], &[("SHAKETABLE_SEED", seed)]), "passed\n");
    }
}

#[test]
fn a_child_of_a_program_has_no_network_and_knows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let reports = [("SHAKETABLE_REPORT", folder.path().to_str().expect("the path is text"))];
    assert_eq!(Program::compile("forked").run::<&str>(&[], &reports), "passed\n");
    let written = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(written, 1, "the cluster has one report, that of the process that has it");
}

#[test]
fn timeouts_end_calls_while_the_program_sleeps_and_without_a_server() {
    let program = Program::compile("timeouts");
    let folder = tempfile::tempdir().expect("a folder");
    let lost = folder.path().join("lost.cluster");
    // Nobody listens there.
    std::fs::write(&lost, "shaketable:serve@127.0.0.1:1\n").expect("it can be written");
    let lost = lost.to_str().expect("the path is text");
    for arguments in [["alone", "/none"], ["lost", lost]] {
        assert_eq!(program.run(&arguments, &[("SHAKETABLE_SEED", "1")]), "passed\n", "{arguments:?}");
    }
}

#[test]
fn old_versions_of_the_api_have_their_functions_and_their_behaviour() {
    for version in ["200", "299", "300", "409", "410", "519", "520", "609", "610", "619", "620"] {
        let program = Program::compile_with("old", &[&format!("-DFDB_API_VERSION={version}")]);
        assert_eq!(program.run::<&str>(&[], &[]), "passed\n", "{version}");
    }
}
