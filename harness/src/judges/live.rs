//! Live: after faults have ended, every pending operation finishes within a time limit.

use crate::workload::Operation;
use shaketable_sim::rt::Nanos;

/// The time limit after faults have ended, nanoseconds of virtual time.
pub const BOUND: Nanos = 60 * shaketable_sim::rt::SECOND;

/// Claims that no client waits. The error lists what each waiting client waits for. `lengths` is the number of
/// operations of each client.
pub fn judge<A>(operations: &[Vec<Operation<A>>], lengths: &[usize], now: Nanos) -> Result<(), String> {
    let mut waiting = Vec::new();
    for (client, (list, length)) in operations.iter().zip(lengths).enumerate() {
        match list.last() {
            Some(op) if op.outcome.is_none() => waiting.push(format!(
                "client {client} has waited for its operation {} for {:.3} s",
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
