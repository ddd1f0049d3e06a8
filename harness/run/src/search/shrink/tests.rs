//! Tests the search with a subject that decides by a rule of its own which sketches fail.

use super::{Progress, Reduced, Sketch, Subject, schedules, search::SearchResult, shrink};
use crate::{
    judge::finding::{Finding, Kind, Witness},
    run::runner::RunResult,
};
use serde_json::{Value, json};
use shaketable_sim::{
    config::ClusterConfig,
    faults::{Decision, Family, FaultPlan, Profile, Request, Step},
    ids::ClientId,
    seed::Seed,
    trace::hash_bytes,
};
use std::{cell::RefCell, collections::BTreeSet};

/// Four clients with ten operations each, of which the last one of each has a fault.
struct Fake {
    fails: Box<dyn Fn(&Sketch) -> bool>,
    witness: Vec<(usize, usize)>,
    ran: RefCell<Vec<u64>>,
    /// Whether a value can become simpler, but not become again what it was.
    forgets: bool,
    is_simpler: bool,
    kept: Option<(Sketch, bool)>,
}

impl Fake {
    fn new(fails: impl Fn(&Sketch) -> bool + 'static) -> Fake {
        let (witness, ran) = Default::default();
        Fake { fails: Box::new(fails), witness, ran, forgets: false, is_simpler: false, kept: None }
    }

    fn shrunk(&mut self) -> SearchResult {
        shrink(self, &mut |_: &Progress| true).expect("it fails")
    }
}

fn has(sketch: &Sketch, client: usize, index: usize) -> bool {
    sketch.operations[client].contains(&index)
}

fn hit(client: u16) -> Decision {
    Decision {
        client: ClientId(client),
        operation: Some(9),
        family: Family::UnknownCommitted,
        opportunity: 1,
        draws: Vec::new(),
    }
}

impl Subject for Fake {
    fn whole(&self) -> Sketch {
        Sketch {
            operations: vec![(0..10).collect(); 4],
            faults: FaultPlan { decisions: (0..4).map(hit).collect(), ..FaultPlan::default() },
            cluster: ClusterConfig::draw(Seed(1), &[]),
            pause: 7,
            schedule: 1,
            configuration: None,
        }
    }
    fn profile(&self) -> Profile {
        Profile::Standard
    }
    fn run(&self, sketch: &Sketch) -> RunResult {
        self.ran.borrow_mut().push(self.key(sketch));
        let witness = Witness { operations: self.witness.clone(), ..Witness::default() };
        let fails = !self.is_simpler && (self.fails)(sketch);
        let finding = fails.then(|| Finding::new(Kind::Model, "it").with(witness));
        RunResult {
            findings: finding.into_iter().collect(),
            decisions: sketch.faults.decisions.clone(),
            ..RunResult::default()
        }
    }
    fn key(&self, sketch: &Sketch) -> u64 {
        hash_bytes(self.is_simpler.into(), format!("{sketch:?}").as_bytes())
    }
    fn requests(&self, sketch: &Sketch) -> Vec<Step> {
        let step = |client: usize, operation: usize, request| Step {
            client: ClientId(client as u16),
            operation: operation as u32,
            request,
            index: 0,
        };
        let of = |(number, client): (usize, usize)| -> Vec<Step> {
            let both = |n| [Request::ReadVersion, Request::Commit].map(|request| step(number, n, request));
            (0..sketch.operations[client].len()).flat_map(both).collect()
        };
        sketch.clients().into_iter().enumerate().flat_map(of).collect()
    }
    fn configurations(&self) -> (Value, Vec<Value>) {
        let drawn = |clients, rows| json!({ "clients": clients, "rows": rows });
        (drawn(4, 9), vec![drawn(2, 0), drawn(3, 4), drawn(5, 2)])
    }
    fn configured(&self, sketch: &Sketch, value: Value) -> Option<Sketch> {
        assert_ne!(value["rows"], json!(0), "no rows are possible");
        let clients = sketch.fewer_clients(value["clients"].as_u64()? as usize)?;
        Some(Sketch { configuration: Some(Reduced { value, clients }), ..sketch.clone() })
    }
    fn keep(&mut self, sketch: &Sketch) {
        self.kept = Some((sketch.clone(), self.is_simpler));
    }
    fn simplify(&mut self, _client: usize, _remaining: &[usize]) -> bool {
        let changes = self.forgets && !self.is_simpler;
        self.is_simpler |= changes;
        changes
    }
    fn complicate(&mut self, _client: usize) -> bool {
        false
    }
}

/// Claims that need some operations, faults and schedules.
fn claims() -> Vec<fn(&Sketch) -> bool> {
    vec![
        |_| true,
        |sketch| has(sketch, 2, 5),
        |sketch| has(sketch, 0, 3) && has(sketch, 3, 9),
        |sketch| sketch.faults.decisions.iter().any(|decision| decision.client == ClientId(1)),
        |sketch| has(sketch, 0, 0) && sketch.faults.decisions.len() > 1,
        // Some schedules, as with a race.
        |sketch| has(sketch, 1, 2) && has(sketch, 2, 2) && (sketch.schedule == 1 || sketch.schedule % 3 == 0),
        // Not at every size.
        |sketch| sketch.size().operations % 3 != 2,
        |sketch| sketch.size().operations >= 7 && sketch.pause == 7,
    ]
}

#[test]
fn what_remains_is_what_has_failed() {
    for forgets in [false, true] {
        let mut subject = Fake { forgets, ..Fake::new(|sketch| has(sketch, 1, 3)) };
        let found = subject.shrunk();
        assert_eq!(subject.kept, Some((found.sketch, false)));
    }
}

#[test]
fn nothing_can_be_taken_from_what_remains() {
    for (number, claim) in claims().into_iter().enumerate() {
        let mut subject = Fake::new(claim);
        let found = subject.shrunk();
        assert!(claim(&found.sketch) && found.is_minimal, "claim {number}");
        let elements = found.sketch.operations().into_iter().chain(found.sketch.faults());
        for element in elements {
            let less = found.sketch.without(&[element]);
            let fails = schedules(less.schedule, less.size())
                .filter(|_| less.size().operations > 0)
                .any(|schedule| claim(&Sketch { schedule, ..less.clone() }));
            assert!(!fails, "claim {number}: {:?}", found.sketch);
        }
    }
}

#[test]
fn no_candidate_is_run_twice() {
    for (number, claim) in claims().into_iter().enumerate() {
        let mut subject = Fake::new(claim);
        let found = subject.shrunk();
        let ran = subject.ran.borrow();
        let different: BTreeSet<u64> = ran.iter().copied().collect();
        assert_eq!((ran.len(), found.replays), (different.len(), ran.len() as u64), "claim {number}");
    }
}

#[test]
fn what_the_judge_has_named_is_kept_first() {
    let claim = |sketch: &Sketch| has(sketch, 1, 4) && has(sketch, 3, 7);
    let without = Fake::new(claim).shrunk();
    let mut named = Fake { witness: vec![(1, 4), (3, 7)], ..Fake::new(claim) };
    let with = named.shrunk();
    assert_eq!(with.sketch.operations, without.sketch.operations);
    assert!(with.replays < without.replays, "{} and {}", with.replays, without.replays);
}

#[test]
fn a_fault_at_a_later_opportunity_comes_at_the_first_one_of_an_operation_alone() {
    let found = Fake::new(|sketch| {
        let decisions = &sketch.faults.decisions;
        has(sketch, 2, 9)
            && decisions.iter().any(|decision| decision.opportunity == 0 || decisions.len() == 4)
    })
    .shrunk();
    assert_eq!((found.sketch.size().operations, found.sketch.size().faults), (1, 1));
}

#[test]
fn conditions_become_simple() {
    let found = Fake::new(|sketch| has(sketch, 3, 1)).shrunk();
    let configuration = found.sketch.configuration.as_ref().expect("a simpler one");
    // No rows are impossible, and one client was never drawn.
    assert_eq!(configuration.value, json!({"clients": 2, "rows": 2}));
    assert_eq!(configuration.clients, [0, 3]);
    assert_eq!(found.sketch.what_decides(), super::Schedule::Even);
    assert_eq!((found.sketch.pause, found.sketch.schedule, found.sketch.cluster.logs), (0, 1, 1));
}

#[test]
fn an_order_takes_the_place_of_delays_that_matter() {
    let is_even = |sketch: &Sketch| sketch.cluster.net.latency.end - sketch.cluster.net.latency.start == 1;
    let found = Fake::new(move |sketch| {
        let last = |step: &Step| step.client == ClientId(2) && step.request == Request::Commit;
        has(sketch, 2, 3) && (!is_even(sketch) || sketch.faults.order.iter().any(last))
    })
    .shrunk();
    assert_eq!(found.sketch.what_decides(), super::Schedule::Ordered);
    assert_eq!(found.sketch.faults.order.len(), 1, "the other requests may come when they like");
    let drawn = Fake::new(move |sketch| has(sketch, 2, 3) && !is_even(sketch)).shrunk();
    assert_eq!(drawn.sketch.what_decides(), super::Schedule::Drawn);
    assert_eq!(drawn.sketch.cluster.log_sync.end - drawn.sketch.cluster.log_sync.start, 1);
}
