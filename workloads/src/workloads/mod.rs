//! The workloads that come with the `shaketable` command, one file each.

/// Declares a workload's planted bugs: an enum for its code to ask about, and `BUGS` for the command.
macro_rules! flaws {
    ($($flaw:ident = $name:expr, $about:literal, $source:literal;)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Flaw { $(#[doc = $about] $flaw),+ }

        const BUGS: &[$crate::workload::Bug] =
            &[$($crate::workload::Bug { name: $name, about: $about, source: $source }),+];

        impl Flaw {
            /// The bug of this name.
            fn named(name: &str) -> Option<Flaw> {
                [$(($name, Flaw::$flaw)),+].into_iter().find(|(known, _)| *known == name).map(|(_, flaw)| flaw)
            }
        }
    };
}

pub mod api;
pub mod array;
pub mod blob;
pub mod bulk;
pub mod counter;
pub mod cycle;
pub mod directory;
pub mod document;
pub mod encoding;
pub mod entity;
pub mod graph;
pub mod hierarchy;
pub mod index;
pub mod leased_queue;
pub mod list;
pub mod log;
pub mod multimap;
pub mod priority_queue;
pub mod queue;
pub mod session;
pub mod signup;
pub mod staged_queue;
pub mod table;
pub mod upload;
pub mod vector;
