//! The command around the workloads of this crate: `cargo run --release -- run`.

shaketable::main!(tickets::sale::Sale, tickets::election::Election, tickets::register::Register);
