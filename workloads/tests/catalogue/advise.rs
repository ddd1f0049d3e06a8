//! Advice on workloads of the catalogue: known hot spots are found, and the advice is that of the seeds
//! alone.

use shaketable::{
    advice::{Asked, advise},
    plan::Demands,
};
use shaketable_reports::{AdviceEntry, Severity, WorkloadAdvice};
use shaketable_sim::faults::Profile;
use shaketable_workloads::catalogue::find;
use std::ops::Range;

fn advised(workload: &str, bug: Option<&str>, seeds: Range<u64>, jobs: usize) -> WorkloadAdvice {
    let entry = find(workload).expect("a workload");
    let demands = Demands { profile: Profile::Calm, bug: bug.map(str::to_owned), ..Demands::default() };
    let asked = Asked { seeds, demands: &demands, jobs, stop: &|| false };
    advise(entry.as_ref(), &asked, &mut |_| ())
}

/// Whether an entry of a topic deserves a look and contains this text.
fn notes(advice: &WorkloadAdvice, topic: &str, text: &str) -> bool {
    let is = |entry: &&AdviceEntry| entry.topic == topic && entry.measured.contains(text);
    advice.noted().any(|entry| is(&entry))
}

#[test]
fn known_hot_spots_are_found() {
    let cycle = advised("cycle", None, 0..8, 2);
    assert!(notes(&cycle, "conflicts", "read by rotate"), "{cycle:#?}");
    assert!(notes(&cycle, "round trips", "rotate does 3 reads in 3 round trips"), "{cycle:#?}");
    assert!(notes(&cycle, "small reads", "rotate reads 3 keys one by one, 12 bytes"), "{cycle:#?}");
    // Every dequeue reads from the head of the queue, and removes it.
    let queue = advised("queue", None, 0..8, 2);
    assert!(notes(&queue, "conflicts", "dequeue ("), "{queue:#?}");
    assert!(!notes(&queue, "snapshot reads", ""), "{queue:#?}");
    let counter = advised("counter", None, 0..20, 2);
    assert!(notes(&counter, "hot key", "(\"single\",): up to "), "{counter:#?}");
    // The counter of the window in which prefixes are allocated.
    let directory = advised("directory", None, 0..20, 2);
    assert!(notes(&directory, "hot key", ", *): up to "), "{directory:#?}");
}

#[test]
fn a_dequeue_that_reads_at_snapshot_is_found() {
    let queue = advised("queue", Some("snapshot-dequeue"), 0..8, 2);
    assert_eq!(queue.bug.as_deref(), Some("snapshot-dequeue"));
    assert!(notes(&queue, "snapshot reads", "dequeue sets or clears a key"), "{queue:#?}");
}

#[test]
fn the_advice_is_that_of_the_seeds() {
    let one = advised("index", None, 2..6, 1);
    assert_eq!(one, advised("index", None, 2..6, 3));
    assert_eq!((one.runs, one.failed), (4, 0));
    assert!(one.entries.iter().all(|entry| !entry.guideline.is_empty() && !entry.source.is_empty()));
    assert!(one.entries.is_sorted_by_key(|entry| std::cmp::Reverse(entry.severity)));
    assert!(one.entries.iter().any(|entry| entry.severity == Severity::Fine));
}
