//! The cost of running: CPU time, real time, memory. These functions must not be called inside of a run,
//! where madsim replaces the clocks.

pub use crate::run::pool::cpu as thread_cpu;
use crate::run::pool::nanoseconds;
use rustix::time::ClockId;
use shaketable_reports::Cost;
use std::time::Duration;

/// Real time since an arbitrary start, nanoseconds.
pub(super) fn wall() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The time, as returned by [`wall`], at which a budget that starts now is used up.
pub(super) fn deadline(budget: Duration) -> u64 {
    wall().saturating_add(u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX))
}

/// Whether a deadline has passed.
pub(super) fn is_past(deadline: u64) -> bool {
    wall() >= deadline
}

/// The peak resident size of the process, bytes; 0 if the system does not report it.
pub(super) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().strip_suffix("kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// The start of a measurement.
pub(super) struct Meter {
    cpu: u64,
    wall: u64,
}

impl Meter {
    /// Starts a measurement of the whole process.
    pub(super) fn start() -> Meter {
        Meter { cpu: nanoseconds(ClockId::ProcessCPUTime), wall: wall() }
    }

    /// The real time since the start, nanoseconds.
    pub(super) fn wall(&self) -> u64 {
        wall() - self.wall
    }

    /// The cost since the start.
    pub(super) fn cost(&self) -> Cost {
        Cost {
            cpu_ns: nanoseconds(ClockId::ProcessCPUTime) - self.cpu,
            wall_ns: self.wall(),
            peak_memory: peak_memory(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_and_clocks_only_rise() {
        let (meter, before) = (Meter::start(), thread_cpu());
        let mut x = 0u64;
        while thread_cpu() - before < 2_000_000 {
            x = std::hint::black_box(x.wrapping_mul(31) + 1);
        }
        let cost = meter.cost();
        assert!(cost.cpu_ns >= 2_000_000, "{cost:?}");
        assert!(cost.wall_ns >= 1_000_000, "{cost:?}");
        assert!(cfg!(not(target_os = "linux")) || cost.peak_memory > 100_000, "{cost:?}");
    }
}
