//! The built library, as programs in C use it: its symbols, its header, its contract, its determinism,
//! servers.

mod build;
#[cfg(target_os = "linux")]
mod chance;
#[cfg(target_os = "linux")]
mod clock;
mod contract;
mod exports;
mod header;
mod orders;
mod published;
mod runs;
mod served;
