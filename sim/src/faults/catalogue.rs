//! The families of faults, with what each does.

use super::{
    client_death, clock_skew, clog, contract, departure, dropped_operation, family::FaultFamily, kill,
    lagging_storage, latency, locked, loss, move_shard, partition, pause, reboot, short_lifetime,
    slow_log_sync, slow_storage, swizzle, window_edge,
};

/// The families with their own files: those with timed strikes, one that is applied by the runners of
/// clients, and one that is limited to a few per run.
const IN_FILES: &[&dyn FaultFamily] = &[
    &kill::Kill,
    &reboot::Reboot,
    &pause::Pause,
    &client_death::ClientDeath,
    &dropped_operation::DroppedOperation,
    &clog::Clog,
    &partition::Partition,
    &swizzle::Swizzle,
    &loss::Loss,
    &latency::Latency,
    &slow_storage::SlowStorage,
    &lagging_storage::LaggingStorage,
    &slow_log_sync::SlowLogSync,
    &clock_skew::ClockSkew,
    &move_shard::MoveShard,
    &locked::Locked,
    &short_lifetime::ShortLifetime,
    &window_edge::WindowEdge,
    &departure::Departure,
];

/// Every family, starting with those that have their own files.
pub fn catalogue() -> impl Iterator<Item = &'static dyn FaultFamily> {
    IN_FILES.iter().chain(contract::ALL).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Family;

    #[test]
    fn every_family_is_in_the_catalogue_and_documented() {
        let mut listed: Vec<Family> = catalogue().map(FaultFamily::family).collect();
        listed.sort();
        assert_eq!(listed, Family::ALL);
        for family in catalogue() {
            assert!(family.promise().ends_with('.') && family.budget().ends_with('.'));
        }
    }
}
