//! The command around the workloads of this crate: `cargo run -- run`, or for long sweeps
//! `cargo run --release -- run`.

use {{crate}}::workload::Stock;
use shaketable::prelude::Mounted;

shaketable::main!(Mounted<Stock>);
