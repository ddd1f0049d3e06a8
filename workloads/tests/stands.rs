//! Every workload stands: the layers that come with the command pass their judges, a few seeds of each, calm and
//! under faults. `shaketable run` shakes longer.

use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_workloads::{
    catalogue::{Entry, catalogue},
    plan::Demands,
};

/// What a few seeds of this entry have found.
fn found(entry: &dyn Entry, profile: Profile, seeds: u64) -> Vec<String> {
    let demands = Demands { profile, ..Demands::default() };
    let runs = (0..seeds).map(|seed| (seed, entry.run(Seed(seed), &demands, false)));
    runs.flat_map(|(seed, run)| {
        let told = move |finding: &shaketable_workloads::judges::Finding| {
            format!("{} {seed}: {}: {}", entry.name(), finding.judge, finding.message)
        };
        run.findings.iter().map(told).collect::<Vec<_>>()
    })
    .collect()
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
