//! What running costs: CPU time, time on the wall, memory. Nothing here reaches a run; it must not
//! be asked inside of one, where madsim answers for the clocks.

use rustix::time::{ClockId, clock_gettime};
use shaketable_reports::Cost;
use std::time::Duration;

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread, nanoseconds.
pub fn thread_cpu() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Time on the wall since some moment, nanoseconds.
pub fn wall() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The moment on the wall at which a budget that begins now is used up.
pub fn deadline(budget: Duration) -> u64 {
    wall().saturating_add(u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX))
}

/// Whether such a moment has come.
pub fn is_past(deadline: u64) -> bool {
    wall() >= deadline
}

/// The process's greatest resident size so far, bytes; 0 where the system does not say.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().strip_suffix("kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Where a measurement began.
pub struct Meter {
    cpu: u64,
    wall: u64,
}

impl Meter {
    /// Begins to measure the whole process.
    pub fn start() -> Meter {
        Meter { cpu: nanoseconds(ClockId::ProcessCPUTime), wall: wall() }
    }

    /// What was used since.
    pub fn cost(&self) -> Cost {
        Cost {
            cpu_ns: nanoseconds(ClockId::ProcessCPUTime) - self.cpu,
            wall_ns: wall() - self.wall,
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
