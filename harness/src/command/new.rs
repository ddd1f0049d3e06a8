//! `shaketable new`: a crate to begin with, which the package `shaketable-new` writes.

use super::{Refusal, output};
use clap::Args;
use shaketable_new::{Source, create};
use shaketable_reports::Conclusion;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(super) struct NewArguments {
    /// The name of the crate and of its folder
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of shaketable's sources [default: those that this program was built from]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Depend on released versions instead of sources
    #[arg(long, conflicts_with = "path")]
    pub released: bool,
}

/// Writes the crate.
pub(super) fn new(arguments: &NewArguments) -> Result<Conclusion, Refusal> {
    let NewArguments { name, path, released } = arguments;
    let text = Source::chosen(path.clone(), *released, env!("CARGO_MANIFEST_DIR"), 1)
        .and_then(|source| create(name, &source))
        .map_err(Refusal::Usage)?;
    output::print(&text)?;
    Ok(Conclusion::Passed)
}
