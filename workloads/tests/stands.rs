//! Every workload stands: the layers that come with the command pass their judges, a few seeds of each, calm and
//! under faults. `shaketable run` shakes longer.

use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_workloads::{
    catalogue::{Entry, catalogue},
    plan::Demands,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something has fallen. What is left then need not be waited for.
static FALLEN: AtomicBool = AtomicBool::new(false);

/// What the first seed of this entry that falls has found.
fn found(entry: &dyn Entry, profile: Profile, seeds: u64) -> Vec<String> {
    let demands = Demands { profile, ..Demands::default() };
    for seed in (0..seeds).take_while(|_| !FALLEN.load(Ordering::Relaxed)) {
        let findings = entry.run(Seed(seed), &demands, false).findings;
        if !findings.is_empty() {
            FALLEN.store(true, Ordering::Relaxed);
            let told = |finding: &shaketable_workloads::judges::Finding| {
                format!("{} {seed}: {}: {}", entry.name(), finding.judge, finding.message)
            };
            return findings.iter().map(told).collect();
        }
    }
    Vec::new()
}

fn stands(profile: Profile, seeds: u64) {
    let catalogue = catalogue();
    let found: Vec<String> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = catalogue
            .iter()
            .map(|entry| scope.spawn(move || found(entry.as_ref(), profile, seeds)))
            .collect();
        sweeps.into_iter().flat_map(|sweep| sweep.join().expect("a sweep ends")).collect()
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn calm() {
    stands(Profile::Calm, 5);
}

#[test]
fn standard_faults() {
    stands(Profile::Standard, 20);
}

#[test]
fn a_storm() {
    stands(Profile::Storm, 10);
}
