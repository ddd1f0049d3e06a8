//! `shaketable completions` and `shaketable man`: what an installed command comes with.

use super::{Refusal, output, program, refuse};
use clap::Args;
use shaketable_reports::Conclusion;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ManArguments {
    /// The folder for the pages, which exists
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Prints the completions of a shell.
pub(super) fn completions(
    arguments: &CompletionsArguments,
    mut command: clap::Command,
) -> Result<Conclusion, Refusal> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, program().name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Conclusion::Passed)
}

/// Writes a page for the command and one for each subcommand.
pub(super) fn man(arguments: &ManArguments, command: clap::Command) -> Result<Conclusion, Refusal> {
    match clap_mangen::generate_to(command, &arguments.folder) {
        Ok(()) => Ok(Conclusion::Passed),
        Err(error) => refuse!("cannot write manual pages to {}: {error}", arguments.folder.display()),
    }
}
