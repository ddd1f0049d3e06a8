//! The command from a user's point of view: its output, its errors and its exit codes; what CI uses of it;
//! the files that it keeps; the book about it.

mod book;
mod failures;
mod merging;
#[path = "../process/mod.rs"]
mod process;
mod recordings;
mod regressions;
mod reports;
#[path = "../../../reports/tests/rendering/schema/mod.rs"]
mod schema;
mod scripts;
#[cfg(unix)]
mod serving;
mod sweeps;
mod usage;
#[cfg(unix)]
mod watching;
#[cfg(unix)]
#[path = "../../../reports/tests/rendering/webdriver/mod.rs"]
#[allow(dead_code, reason = "the tests of the reports use all of it")]
mod webdriver;
