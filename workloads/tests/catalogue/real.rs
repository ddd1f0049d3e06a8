//! Runs that can observe only their own client, with the simulated cluster in place of a real one.

use bytes::Bytes;
use shaketable::{Workload, finding::Verdict};
use shaketable::{
    plan::{Demands, Plan},
    real::{Conditions, RunError, Site, perform},
    runner::RunResult,
    specimen::Mounted,
};
use shaketable_sim::{
    client::SimDatabase,
    faults::{Family, FaultPlan, Profile},
    rt::SECOND,
    seed::Seed,
};
use shaketable_tx::{Database, Db, Error, Isolation, RangeOption, Transaction};
use shaketable_workloads::catalogue::*;
use shaketable_workloads_queues::queue;
use shaketable_workloads_shared::cluster::{self, Machine};
use shaketable_workloads_tables::index;
use std::time::Duration;

fn site() -> Site {
    Site::new("runs/").expect("a prefix")
}

fn plan<W: Workload>(seed: u64, bug: Option<&str>) -> Plan {
    let demands = Demands { bug: bug.map(str::to_owned), ..Demands::default() };
    site().drawn(|| Plan::draw::<W>(Seed(seed), &demands))
}

type Index = Mounted<index::Index>;
type Queue = Mounted<queue::Queue>;

/// A plan whose clients take long.
fn long() -> Plan {
    Plan { pause: SECOND, ..plan::<Queue>(1, None) }
}

async fn under(machine: &Machine, plan: &Plan, conditions: Conditions<'_>) -> Result<RunResult, RunError> {
    perform(plan, &|| Ok(Db::new(machine.open())), &site(), conditions).await
}

async fn run(machine: &Machine, plan: &Plan) -> Result<RunResult, RunError> {
    under(machine, plan, Conditions::new(false, &|| false)).await
}

/// All keys except the system's.
async fn keys(db: &SimDatabase) -> Vec<Bytes> {
    let all = RangeOption::new(&b""[..], &b"\xff"[..]);
    let all = &all;
    let rows = db.run(|tx, _| async move { tx.get_range_all(all.clone(), Isolation::Serializable).await });
    rows.await.expect("a look").into_iter().map(|row| row.key).collect()
}

async fn put(db: &SimDatabase, key: &'static str) {
    let put = db.run(|tx, _| async move {
        tx.set(key.as_bytes(), b"");
        Ok::<_, Error>(())
    });
    put.await.expect("a commit");
}

/// Runs seeds of a workload, each on the cluster in the state left by the previous one.
fn passes(name: &'static str, faults: FaultPlan) {
    cluster::under(faults, move |machine| async move {
        let (db, entry) = (machine.open(), find(name).expect("a workload"));
        // Keys directly before and after the prefix of the runs, which belong to no run.
        for neighbour in ["runs", "runs0"] {
            put(&db, neighbour).await;
        }
        let (site, open) = (site(), || Ok(Db::new(machine.open())));
        for seed in 0..4 {
            let conditions = Conditions::new(false, &|| false);
            let run = entry.run_on(&open, &site, Seed(seed), &Demands::default(), conditions);
            let result = run.await.expect("a cluster that answers");
            assert!(result.findings.is_empty(), "{name} {seed}: {:?}", result.findings);
            assert!(result.counters.committed > 0 && result.counters.audits > 0);
            assert_eq!(keys(&db).await, ["runs", "runs0"]);
        }
    });
}

/// Unknown results, which the client of a real cluster can inject as well.
fn unknown_results() -> FaultPlan {
    let rates = [(Family::UnknownCommitted, 0.05), (Family::UnknownNotCommitted, 0.05)];
    FaultPlan { rates: rates.into(), ..FaultPlan::default() }
}

#[test]
fn workloads_pass_and_leave_nothing_behind() {
    catalogue().iter().for_each(|entry| passes(entry.name(), FaultPlan::default()));
}

#[test]
fn workloads_pass_while_results_are_unknown() {
    catalogue().iter().for_each(|entry| passes(entry.name(), unknown_results()));
}

/// The prefix of a run is longer than most of its keys. Seeds 16 and others build in transactions that have
/// room for one record.
#[test]
fn what_a_run_adds_to_transactions_does_not_count_against_their_limits() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let entry = find("record_build").expect("a workload");
        let open = || Ok(Db::new(machine.open()));
        for seed in 12..20 {
            let site = Site::new(format!("shaketable-01234567/record_build/{seed}/")).expect("a prefix");
            let (demands, conditions) = (Demands::default(), Conditions::new(false, &|| false));
            let run = entry.run_on(&open, &site, Seed(seed), &demands, conditions);
            let result = run.await.expect("a cluster that answers");
            assert!(result.findings.is_empty(), "{seed}: {:?}", result.findings);
        }
    });
}

/// The times of the second run count from its own beginning.
#[test]
fn what_happened_is_told_if_it_is_asked_for() {
    cluster::under(FaultPlan::default(), |machine| async move {
        assert!(run(&machine, &plan::<Queue>(0, None)).await.expect("an answer").history.is_none());
        machine.open().env().sleep(Duration::from_secs(200)).await;
        let conditions = Conditions { tell: true, ..Conditions::new(false, &|| false) };
        let told = under(&machine, &plan::<Queue>(0, None), conditions).await.expect("an answer").history;
        let told = told.expect("a history");
        assert!(!told.operations.is_empty() && !told.transactions.is_empty());
        let calls: Vec<_> = told.operations.iter().map(|operation| operation.called).collect();
        assert!(calls.iter().all(|at| (1..100 * SECOND).contains(at)), "{calls:?}");
        assert!((1..200 * SECOND).contains(&told.ended));
    });
}

#[test]
fn a_planted_bug_is_caught_by_what_the_clients_saw() {
    cluster::under(unknown_results(), |machine| async move {
        for seed in 0..40 {
            let result = run(&machine, &plan::<Index>(seed, Some("as-printed"))).await.expect("an answer");
            assert!(result.verdict() != Verdict::Harness, "{:?}", result.findings);
            if !result.findings.is_empty() {
                return;
            }
        }
        panic!("40 seeds and no finding");
    });
}

#[test]
fn clients_that_die_come_back() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let mut deaths = 0;
        for seed in 0..30 {
            let mut plan = plan::<Queue>(seed, None);
            plan.faults = FaultPlan::draw(Seed(seed), Profile::Storm, plan.hurt, &[]);
            let result = run(&machine, &plan).await.expect("an answer");
            assert!(result.findings.is_empty(), "{seed}: {:?}", result.findings);
            deaths += result.faults.get(&Family::ClientDeath).copied().unwrap_or(0);
        }
        assert!(deaths > 0);
    });
}

#[test]
fn a_prefix_that_is_not_empty_is_refused_and_left_alone() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let db = machine.open();
        put(&db, "runs/x").await;
        let refused = run(&machine, &plan::<Queue>(0, None)).await.expect_err("a refusal");
        assert_eq!(
            refused,
            RunError::NotEmpty { prefix: "\"runs/\"".to_owned(), key: "\"runs/x\"".to_owned() }
        );
        assert_eq!(keys(&db).await, ["runs/x"]);
    });
}

#[test]
fn what_is_kept_stays_below_the_prefix() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let db = machine.open();
        let kept = under(&machine, &plan::<Queue>(0, None), Conditions::new(true, &|| false)).await;
        assert!(kept.expect("an answer").findings.is_empty());
        let keys = keys(&db).await;
        assert!(keys.len() > 2 && keys.iter().all(|key| key.starts_with(b"runs/")), "{keys:?}");
        site().clear(&db).await.expect("cleared");
        assert_eq!(site().first_key(&db).await, Ok(None));
    });
}

#[test]
fn an_interrupted_run_ends_and_clears() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let db = machine.open();
        let ended = under(&machine, &long(), Conditions::new(false, &|| true)).await;
        assert_eq!(ended.expect_err("interrupted"), RunError::Interrupted);
        assert_eq!(keys(&db).await, Vec::<Bytes>::new());
    });
}

#[test]
fn a_cluster_that_is_lost_ends_the_run_within_a_bound() {
    cluster::under(FaultPlan::default(), |machine| async move {
        let db = machine.open();
        let lose = || {
            machine.cut_off();
            false
        };
        let conditions = Conditions { stop: &lose, ..Conditions::new(false, &|| false) };
        let before = db.env().now();
        // Without pauses, there is always an operation in progress.
        let plan = Plan { pause: 0, ..plan::<cycle::Cycle>(1, None) };
        let lost = under(&machine, &plan, conditions).await;
        let Err(RunError::Lost { doing, unknown, prefix, .. }) = lost else { panic!("{lost:?}") };
        assert_eq!((doing, prefix.as_str()), ("waiting for its clients", "\"runs/\""));
        assert!(unknown > 0);
        assert!(db.env().now() - before < Duration::from_secs(240));
    });
}
