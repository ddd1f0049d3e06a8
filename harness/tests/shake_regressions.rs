//! `Shake` replays regressions before its seeds.

use shaketable::{Guarded, Shake, Workload, plan::Demands, plan::Plan};
use shaketable_sim::seed::Seed;
use std::{
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

mod counted {
    use shaketable::prelude::*;

    shaketable_tx::refusals! {
        /// Why a write is refused.
        pub enum Refusal { TooLarge = "the number is too large" }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Counted;

    /// A number that is never five.
    #[shaketable::workload(name = "counted")]
    impl Counted {
        async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
            tx.set(b"n", b"0");
            Ok(())
        }

        #[write]
        async fn write(&self, tx: &Tx, #[draw(0..4u32)] value: u32) -> Result<(), Refusal> {
            if value > 5 {
                return Err(Refusal::TooLarge);
            }
            tx.get(b"n", Serializable).await?;
            tx.set(b"n", value.to_string().as_bytes());
            Ok(())
        }

        #[invariant("it is not five")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            Ok(tx.get(b"n", Serializable).await?.is_none_or(|n| n != b"5"[..]))
        }
    }
}

type Counted = Guarded<counted::Counted>;

/// The plan of a seed, which passes; and the same plan with operations that no strategy draws, and that fail.
fn plans() -> (String, String) {
    let good = Plan::draw::<Counted>(Seed(1), &Demands::default()).to_json();
    let bad = good.replace("\"value\": 3", "\"value\": 5");
    assert_ne!(good, bad, "some operation writes 3");
    (good, bad)
}

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("written");
    }
    folder
}

/// What the test would end with: nothing, or the message of its panic.
fn message(folder: PathBuf) -> Option<String> {
    let shake = Shake::<Counted>::new().seeds(0..3).regressions(folder);
    let panic = catch_unwind(move || shake.assert()).err()?;
    Some(panic.downcast_ref::<String>().expect("a message").clone())
}

#[test]
fn a_regression_that_fails_again_fails_the_test() {
    let (good, bad) = plans();
    let passing = [
        ("a.json", good.as_str()),
        ("version.json", &bad.replace("\"schema\": 3", "\"schema\": 1")),
        ("notes.txt", "not one"),
    ];
    assert_eq!(message(folder("passing", &passing)), None);
    let torn = [("a.json", good.as_str()), ("torn.json", &bad[..bad.len() / 2])];
    let said = message(folder("torn", &torn)).expect("what was kept is lost");
    assert!(said.contains("torn.json is damaged: not a complete repro file: "), "{said}");
    let failing = folder("failing", &[("a.json", &good), ("b.json", &bad)]);
    let said = message(failing.clone()).expect("it fails");
    let place = failing.join("b.json").display().to_string();
    assert!(said.starts_with(&format!("{place} failed again, Violated\n  audit: ")), "{said}");
    let missing = message(failing.join("missing")).expect("a folder that is set must exist");
    assert!(missing.starts_with("the regressions in "), "{missing}");

    // The usual folder is used if none is set, and need not exist.
    let package = folder("package", &[]);
    std::env::set_current_dir(&package).expect("entered");
    let shake = Shake::<Counted>::new().seeds(0..3);
    shake.assert();
    let usual = package.join("tests/regressions").join(Counted::NAME);
    fs::create_dir_all(&usual).expect("created");
    fs::write(usual.join("bad.json"), bad).expect("written");
    assert!(catch_unwind(move || shake.assert()).is_err());
}
