//! What is written wrongly is refused at its place, in words.

use std::{
    env::{current_exe, var_os},
    process::Command,
};

/// The compiler's flags, which take the place of those that the cases would be compiled with.
const FLAGS: (&str, &str) = (
    "CARGO_ENCODED_RUSTFLAGS",
    "--cfg\x1fmadsim\x1f--diagnostic-width=140\x1f-Adead_code\x1f-Aunused_imports",
);

#[test]
fn a_workload_that_is_written_wrongly_is_refused_at_its_place() {
    if var_os(FLAGS.0).is_some_and(|flags| flags == FLAGS.1) {
        return trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
    }
    let again = Command::new(current_exe().expect("this test")).env(FLAGS.0, FLAGS.1).status();
    assert!(again.expect("this test is started once more").success());
}
