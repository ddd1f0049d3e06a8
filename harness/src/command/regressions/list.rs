//! `shaketable regressions list`: the regressions of a folder, without replaying them.

use super::{FOLDER, select};
use crate::{
    command::{Refusal, output},
    run::regressions::Kept,
};
use clap::Args;
use shaketable_reports::{
    Conclusion,
    text::{Align, COLUMNS, Table, count, fill},
};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsListArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
}

/// The number of lines of the table's headings.
const HEAD: usize = 3;

/// Prints the regressions.
pub(super) fn list(arguments: &RegressionsListArguments) -> Result<Conclusion, Refusal> {
    let (folder, _, files) = select(arguments.regressions.as_deref(), &arguments.workloads)?;
    let shown = folder.as_ref().map_or(FOLDER.to_owned(), |folder| folder.shown());
    let files: Vec<&Path> = files.iter().flatten().map(|path| path.as_path()).collect();
    if files.is_empty() {
        output::print(&format!("There are no regressions in {shown}.\n"))?;
    } else {
        output::print(&format!("regressions in {shown}\n\n{}", table(&files, Path::new(&shown))))?;
    }
    Ok(Conclusion::Passed)
}

/// A line for each file, and below it what it broke.
fn table(files: &[&Path], folder: &Path) -> String {
    let mut table = Table::new(&[
        ("file", Align::Left),
        ("operations/\nclients/\nfaults", Align::Left),
        ("since", Align::Left),
    ]);
    let mut below = Vec::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(file).display().to_string();
        let (row, what) = match Kept::read(file) {
            Ok(kept) => {
                let once = kept.regression.unwrap_or_default();
                let since = match (once.version.as_str(), once.commit.as_str()) {
                    ("", "") => String::new(),
                    (version, commit) => format!("{version}, {commit}"),
                };
                let size = [kept.size.operations, kept.size.clients, kept.size.faults].map(count).join("/");
                ([size, since], once.what())
            }
            Err(error) => (Default::default(), format!("cannot be replayed: {error}")),
        };
        table.row(std::iter::once(name).chain(row).collect());
        below.push(fill(&what, COLUMNS - 2, "  "));
    }
    let rendered = table.render();
    let mut lines = rendered.lines().map(|line| format!("{line}\n"));
    let head: String = lines.by_ref().take(HEAD).collect();
    head + &lines.zip(below).map(|(line, below)| line + &below).collect::<String>()
}
