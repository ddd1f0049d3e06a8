//! What people and CI systems read, rendered from made-up reports.

mod browser;
mod checks;
mod ci;
mod html;
mod junit;
mod machine;
mod planted_bugs;
mod regressions;
mod runs;
mod samples;
mod schema;
mod sweeps;
mod watching;
mod webdriver;
