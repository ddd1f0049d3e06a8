//! Files in FoundationDB through OpenDAL. Each program exits with 1 and one line if a claim does not hold.

mod held;
mod plain;
mod shaken;

use futures::FutureExt;
use opendal::{Operator, services::Foundationdb};
use std::{panic::AssertUnwindSafe, process::ExitCode};

/// A claim that does not hold says why in one line, the same in every run of a seed.
type Claim<T = String> = Result<T, String>;

fn claim(holds: bool, broken: impl FnOnce() -> String) -> Claim<()> {
    if holds { Ok(()) } else { Err(broken()) }
}

/// Files on the cluster.
fn open() -> Operator {
    Operator::new(Foundationdb::default()).expect("it opens")
}

/// Numbers that follow from the seed.
struct Chance(u64);

impl Chance {
    fn new(stream: u64) -> Self {
        let seed = std::env::var("SHAKETABLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
        Self(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) ^ (stream << 32) ^ 0x5851_f42d)
    }

    /// One below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

async fn run(program: &str) -> Claim {
    match program {
        "held" => held::held(false).await,
        "strict" => held::held(true).await,
        "unsupported" => plain::unsupported().await,
        "limits" => plain::limits().await,
        "second" => plain::second(false).await,
        "reopened" => plain::second(true).await,
        "torn" => plain::torn().await,
        "exists" => shaken::exists().await,
        "append" => shaken::append().await,
        "retry" => shaken::retry().await,
        _ => Err(format!("there is no program {program}")),
    }
}

fn main() -> ExitCode {
    // One thread: then the seed determines the order of all calls.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let program = std::env::args().nth(1).expect("the name of a program");
    // A panic has printed its message.
    match runtime.block_on(AssertUnwindSafe(run(&program)).catch_unwind()) {
        Ok(Ok(said)) => println!("{said}"),
        Ok(Err(broken)) => {
            eprintln!("{broken}");
            return ExitCode::FAILURE;
        }
        Err(_) => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}
