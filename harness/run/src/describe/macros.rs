//! Macros for workloads.

/// Declares a workload's planted bugs: the enum `Planted` for the workload's code, and the list `BUGS` for
/// the command. Each bug has a name, a description of what is wrong, and a source: where such a bug comes
/// from. A bug that no run on a real cluster can show says in a fourth text what it takes.
///
/// ```
/// shaketable::planted_bugs! {
///     ReadAtSnapshot = "read-at-snapshot", "the old value is read at snapshot isolation", "a missing conflict range";
///     LocalDeadline = "local-deadline", "a deadline is stored by one clock", "a lock", "clocks that differ";
/// }
/// assert_eq!(Planted::named("read-at-snapshot"), Some(Planted::ReadAtSnapshot));
/// assert_eq!(BUGS[0].name, "read-at-snapshot");
/// ```
#[macro_export]
macro_rules! planted_bugs {
    ($($bug:ident = $name:expr, $about:literal, $source:literal $(, $only_simulated:literal)?;)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Planted { $(#[doc = $about] $bug),+ }

        /// The planted bugs, for the command.
        pub const BUGS: &[$crate::Bug] =
            &[$({
                #[allow(unused_mut, unused_assignments)]
                let mut only_simulated = None;
                $(only_simulated = Some($only_simulated);)?
                $crate::Bug { name: $name, about: $about, source: $source, only_simulated }
            }),+];

        impl Planted {
            /// The bug of this name.
            pub fn named(name: &str) -> Option<Planted> {
                [$(($name, Planted::$bug)),+].into_iter().find(|(known, _)| *known == name).map(|(_, bug)| bug)
            }
        }
    };
}
