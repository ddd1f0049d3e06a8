//! Tuples in the order of containment: county populations by state.

use crate::shared::cluster::{begin, on_cluster};
use foundationdb_tuple::Subspace;
use shaketable_layers::encoding::{Collation, Column, Distinguishes, Error, Ordered, Part};
use shaketable_tx::{Database, Isolation::Serializable, Transaction, Tx};

fn populations() -> Result<Ordered, Error> {
    let name = || Ok::<_, Error>(Column::Collated(Collation::new("en", Distinguishes::Case)?));
    Ordered::new(Subspace::from("population"), vec![name()?, name()?])
}

async fn set_county_population(tx: &Tx, state: &str, county: &str, n: u32) -> Result<(), Error> {
    populations()?.set(tx, &[state.into(), county.into()], n.to_string().as_bytes()).await
}

async fn get_county_populations_in_state(tx: &Tx, state: &str) -> Result<Vec<(Vec<Part>, String)>, Error> {
    let rows = populations()?.under(tx, &[state.into()], Serializable).await?;
    Ok(rows.into_iter().map(|(key, n)| (key, String::from_utf8_lossy(&n).into_owned())).collect())
}

#[test]
fn the_counties_of_a_state_are_adjacent_and_in_the_order_of_their_names() {
    on_cluster(|db| async move {
        let set = db.run(|tx, _| async move {
            for (state, county, n) in [
                ("New Mexico", "Doña Ana", 219_561),
                ("New Mexico", "De Baca", 1_698),
                ("New Mexico", "doña ana", 0),
                ("New Mexico", "Donegal", 1),
                ("New", "Mexico", 2),
                // A name that would be ambiguous if parts were separated by a tab.
                ("New Mexico\tDoña Ana", "", 3),
            ] {
                set_county_population(&tx, state, county, n).await?;
            }
            Ok::<_, Error>(())
        });
        set.await.expect("populations");
        let read = db.run(|tx, _| async move { get_county_populations_in_state(&tx, "New Mexico").await });
        let counties: Vec<_> = read.await.expect("a look");
        let names = ["De Baca", "doña ana", "Doña Ana", "Donegal"];
        let found: Vec<Part> = counties.iter().map(|(key, _)| key[1].clone()).collect();
        assert_eq!(found, names.map(Part::from));
        assert_eq!(counties[2].1, "219561");
    });
}

#[test]
fn keys_that_the_columns_do_not_write_are_refused() {
    on_cluster(|db| async move {
        let map = Ordered::new(Subspace::from("m"), vec![Column::Unsigned(3), Column::Text]);
        let map = map.expect("widths that integers have");
        for rest in [&b""[..], b"\x01", b"\0\0\x01", b"\0\0\x01\x02", b"\0\0\x01\x02\xff\0\0", &[5; 5_000]] {
            let tx = begin(&db);
            tx.set(&[Subspace::from("m").bytes(), rest].concat(), b"");
            let rows = map.under(&tx, &[], Serializable).await;
            assert!(matches!(rows, Err(Error::Foreign(_))), "{rows:?}");
            let rows = map.page(&tx, &[], None, 1, Serializable).await;
            assert!(matches!(rows, Err(Error::Foreign(_))), "{rows:?}");
        }
    });
}
