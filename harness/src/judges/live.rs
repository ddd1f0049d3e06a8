//! Live: once faults have ended, every pending operation finishes within a bound of virtual time.

use crate::workload::Operation;
use shaketable_sim::rt::Nanos;

/// How long after the faults' end everything must have finished, nanoseconds of virtual time.
pub const BOUND: Nanos = 60 * shaketable_sim::rt::SECOND;

/// Says who waits for what, or nothing when nobody does. `lengths` is how many operations each
/// client has to do.
pub fn judge<A>(operations: &[Vec<Operation<A>>], lengths: &[usize], now: Nanos) -> Result<(), String> {
    let mut waiting = Vec::new();
    for (client, (list, length)) in operations.iter().zip(lengths).enumerate() {
        match list.last() {
            Some(op) if op.outcome.is_none() => waiting.push(format!(
                "client {client} waits for its operation {} since {:.3} s",
                list.len() - 1,
                now.saturating_sub(op.called) as f64 / 1e9
            )),
            _ if list.len() < *length => {
                waiting.push(format!(
                    "client {client} waits to open its session after {} operations",
                    list.len()
                ));
            }
            _ => {}
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(waiting.join("; ")) }
}
