//! The data of a cluster outlive it.

use super::support::{serve, settings};
use bytes::Bytes;
use shaketable_session::{Action, settings::Settings, snapshot};
use shaketable_sim::faults::Profile;
use shaketable_tx::KeyValue;
use std::sync::Arc;

fn key(number: i64) -> String {
    format!("key {number:05}")
}

#[test]
fn a_cluster_begins_with_the_data_of_another() {
    // More than one transaction takes, of rows and of bytes.
    let row = |(number, value): (i64, Vec<u8>)| KeyValue { key: key(number).into(), value: value.into() };
    let rows = (0..12_000).map(|number: i64| (number, number.to_le_bytes().to_vec()));
    let large = (20_000..20_110).map(|number| (number, vec![7; 99_000]));
    let rows: Vec<KeyValue> = rows.chain(large).map(row).collect();
    for faults in [Profile::Calm, Profile::Storm] {
        let settings = Settings { restored: Arc::new(rows.clone()), keeps_rows: true, ..settings(3, faults) };
        let served = serve(settings);
        let program = served.program();
        let read = program.transact(|tx| {
            let read = [program.number(tx, &key(4_999))?, program.number(tx, &key(11_999))?];
            program.set(tx, "new", read[0]);
            program.act(tx, Action::Clear(key(5_000).into()));
            Ok(read)
        });
        assert_eq!(read, Ok([4_999, 11_999]), "{faults:?}");
        program.stop();
        let (_, report) = served.stop();
        let report = report.expect("it ran");
        assert!(report.objections.is_empty(), "{:?}", report.objections);
        if faults == Profile::Calm {
            assert_eq!((report.attempts, report.committed), (1, 1), "only the program counts");
        }
        assert!(report.to_string().ends_with(", with the 12110 rows that were restored\n"), "{report}");
        let mut expected = rows.clone();
        expected.remove(5_000);
        expected.push(KeyValue {
            key: Bytes::from("new"),
            value: Bytes::copy_from_slice(&4_999i64.to_le_bytes()),
        });
        assert!(report.rows == expected, "{} rows", report.rows.len());
        assert_eq!(snapshot::read(&snapshot::write(&report.rows)), Ok(report.rows));
    }
}
