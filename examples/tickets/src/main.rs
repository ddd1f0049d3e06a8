//! The command around the workloads of this crate: `cargo run --release -- run`.

use tickets::{election::Election, fenced::Fenced, register::Register, sale::Sale};

shaketable::main!(Sale, Election, Register, Fenced);
