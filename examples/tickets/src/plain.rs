//! What the two recipes of `foundationdb` do without a fault, one call after the other, where their
//! documentation says something else or nothing. The caller of the recipe gives the time, so each test
//! chooses it.

use crate::{election, register};
use foundationdb::{
    Database as Fdb, FdbBindingError,
    recipes::{
        leader_election::{ElectionConfig, ElectionResult, LeaderElection, LeaderElectionError, LeaderState},
        ranked_register::{Rank, RankedRegister, RankedRegisterError},
    },
};
use shaketable::{calm::simulate, foundationdb::database};
use std::{future::Future, marker::PhantomData, sync::Arc, time::Duration};

/// An election that is initialized as the documentation has it: leases of 10 seconds, candidates dead after
/// 15. Processes a and b are registered at second 100.
struct Election {
    db: Arc<Fdb>,
}

const fn at(tenths: u64) -> Duration {
    Duration::from_millis(100 * tenths)
}

fn recipe() -> LeaderElection {
    LeaderElection::new(election::space())
}

/// Whoever leads is told so.
fn leads(result: ElectionResult) -> LeaderState {
    match result {
        ElectionResult::Leader(state) => state,
        ElectionResult::Follower(_) => panic!("it follows"),
    }
}

/// Runs on a calm cluster, with an election in which priorities do not matter, or do.
fn elected<F: Future<Output = Result<(), FdbBindingError>> + 'static>(
    preempts: bool,
    job: fn(Election) -> F,
) {
    simulate(move |db| async move {
        let election = Election { db: database(&db) };
        let config = ElectionConfig { allow_preemption: preempts, ..ElectionConfig::default() };
        election.configure(config).await.expect("it is initialized");
        for process in ["a", "b"] {
            election.register(process, 0).await.expect("it is registered");
        }
        job(election).await.expect("no call fails");
    });
}

impl Election {
    async fn configure(&self, config: ElectionConfig) -> Result<(), FdbBindingError> {
        let config = &config;
        self.db.run(|tx, _| async move { Ok(recipe().write_config(&tx, config).await?) }).await
    }

    async fn register(&self, process: &str, priority: i32) -> Result<(), FdbBindingError> {
        let registered = self.db.run(|tx, _| async move {
            Ok(recipe().register_candidate(&tx, process, priority, at(1000)).await?)
        });
        registered.await
    }

    async fn cycle(
        &self,
        process: &str,
        priority: i32,
        now: Duration,
    ) -> Result<ElectionResult, FdbBindingError> {
        let cycle = self
            .db
            .run(|tx, _| async move { Ok(recipe().run_election_cycle(&tx, process, priority, now).await?) });
        cycle.await
    }

    async fn refresh(&self, process: &str, now: Duration) -> Result<Option<LeaderState>, FdbBindingError> {
        self.db.run(|tx, _| async move { Ok(recipe().refresh_lease(&tx, process, now).await?) }).await
    }

    async fn leader(&self, now: Duration) -> Result<Option<LeaderState>, FdbBindingError> {
        self.db.run(|tx, _| async move { Ok(recipe().get_leader(&tx, now).await?) }).await
    }

    async fn resign(&self, process: &str) -> Result<bool, FdbBindingError> {
        self.db.run(|tx, _| async move { Ok(recipe().resign_leadership(&tx, process).await?) }).await
    }

    async fn evict(&self, now: Duration) -> Result<usize, FdbBindingError> {
        self.db.run(|tx, _| async move { Ok(recipe().evict_dead_candidates(&tx, now).await?) }).await
    }

    /// A leader reads the register and writes it, and is told whether it has.
    async fn write(&self, leader: &LeaderState) -> Result<bool, FdbBindingError> {
        let rank = leader.ballot;
        let written = self.db.run(|tx, _| async move {
            let register = RankedRegister::new(register::space());
            register.read(&tx, Rank::from(rank)).await.map_err(register::retried)?;
            register::write_in(&tx, rank).await
        });
        written.await
    }
}

#[test]
fn after_a_resignation_the_ballot_is_1_and_the_register_refuses_the_leader() {
    elected(false, |election| async move {
        for second in 0..3 {
            let leader = leads(election.cycle("a", 0, at(1000 + 10 * second)).await?);
            assert!(leader.ballot == second + 1 && election.write(&leader).await?);
        }
        assert!(election.resign("a").await?);
        let leader = leads(election.cycle("b", 0, at(1030)).await?);
        assert_eq!(leader.ballot, 1);
        assert!(!election.write(&leader).await?);
        Ok(())
    });
}

#[test]
fn two_lead_for_4_seconds_with_clocks_2_seconds_early_and_late() {
    elected(false, |election| async move {
        // At second 100, which a's clock shows as 98, and at 106.1, which b's clock shows as 108.1.
        let a = leads(election.cycle("a", 0, at(980)).await?);
        let b = leads(election.cycle("b", 0, at(1081)).await?);
        // Now a's clock shows 104.1. Its lease ends when it shows 108, at second 110.
        assert!(a.is_lease_valid(at(1041)) && b.is_lease_valid(at(1081)));
        assert_eq!(a.remaining_lease(at(1041)), Some(Duration::from_millis(3900)));
        Ok(())
    });
}

#[test]
fn two_lead_after_a_preemption_until_the_first_one_asks() {
    elected(true, |election| async move {
        let a = leads(election.cycle("a", 0, at(1000)).await?);
        let b = leads(election.cycle("b", 1, at(1010)).await?);
        assert!(a.is_lease_valid(at(1010)) && b.is_lease_valid(at(1010)));
        assert!(!election.cycle("a", 0, at(1010)).await?.is_leader());
        Ok(())
    });
}

#[test]
fn a_lease_that_has_expired_is_refreshed() {
    elected(false, |election| async move {
        leads(election.cycle("a", 0, at(1000)).await?);
        assert!(election.leader(at(2000)).await?.is_none());
        let refreshed = election.refresh("a", at(2000)).await?;
        assert_eq!(refreshed.map(|state| state.ballot), Some(2));
        Ok(())
    });
}

#[test]
fn a_leader_refreshes_its_lease_while_elections_are_disabled() {
    elected(false, |election| async move {
        leads(election.cycle("a", 0, at(1000)).await?);
        election.configure(ElectionConfig { election_enabled: false, ..ElectionConfig::default() }).await?;
        let cycle = election.cycle("a", 0, at(1030)).await;
        let disabled = LeaderElectionError::ElectionDisabled;
        assert_eq!(
            format!("{:?}", cycle.map(|_| ())),
            format!("{:?}", Err::<(), _>(FdbBindingError::from(disabled)))
        );
        for tenths in [1090, 1180, 1270] {
            assert!(election.refresh("a", at(tenths)).await?.is_some());
        }
        let leader = election.leader(at(1360)).await?.expect("its lease lasts");
        assert_eq!((&*leader.leader_id, leader.ballot), ("a", 4));
        Ok(())
    });
}

#[test]
fn a_process_that_was_evicted_is_never_elected_again() {
    elected(false, |election| async move {
        leads(election.cycle("a", 0, at(1000)).await?);
        leads(election.cycle("a", 0, at(1150)).await?);
        assert_eq!(election.evict(at(1151)).await?, 1);
        // The lease of a has ended, and b is back.
        for tenths in [1300, 2000, 9000] {
            let failed = election.cycle("b", 0, at(tenths)).await.expect_err("it is evicted");
            let FdbBindingError::LeaderElectionError(LeaderElectionError::ProcessNotFound(process)) = failed
            else {
                panic!("{failed:?}");
            };
            assert_eq!(process, "b");
        }
        assert!(election.leader(at(9000)).await?.is_none());
        Ok(())
    });
}

#[test]
fn a_leader_that_only_refreshes_evicts_itself() {
    elected(false, |election| async move {
        leads(election.cycle("a", 0, at(1000)).await?);
        for tenths in [1050, 1100, 1150] {
            assert!(election.refresh("a", at(tenths)).await?.is_some());
        }
        assert_eq!(election.evict(at(1151)).await?, 2);
        assert!(election.cycle("a", 0, at(1160)).await.is_err());
        Ok(())
    });
}

#[test]
fn the_priority_of_the_registration_does_not_count() {
    elected(true, |election| async move {
        leads(election.cycle("a", 1, at(1000)).await?);
        election.register("b", 2).await?;
        assert!(!election.cycle("b", 0, at(1010)).await?.is_leader());
        Ok(())
    });
}

/// Whether `?` turns this error into one of `run`.
struct Turns<T>(PhantomData<T>);

impl<T: Into<FdbBindingError>> Turns<T> {
    const ITSELF: bool = true;
}

trait Otherwise {
    const ITSELF: bool = false;
}

impl<T> Otherwise for Turns<T> {}

#[test]
fn an_error_of_the_register_is_none_of_the_retry_loop() {
    const { assert!(Turns::<LeaderElectionError>::ITSELF && !Turns::<RankedRegisterError>::ITSELF) }
}
