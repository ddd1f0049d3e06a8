//! The command around the workload of this crate: `cargo run --release -- run`.

shaketable::main!(mailbox::workload::Mail);
