//! The command around the workloads of this crate: `cargo run --release -- run`.

use ledger::{guarded::Sums, modelled::Accounts, vouchers::Vouchers};
use shaketable::prelude::{Guarded, Mounted};

shaketable::main!(Guarded<Sums>, Mounted<Accounts>, Mounted<Vouchers>);
