//! Ordered keys.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::encoding::{Collation, Column, Distinguishes, Ordered, Part};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Encodings {
    maps: Vec<(Ordered, Vec<Part>)>,
}

impl Layer for Encodings {
    const NAME: &'static str = "encoding";

    fn new() -> Encodings {
        let collation = Collation::new("sv", Distinguishes::Accents).expect("Swedish is known");
        let map = |number: i64, columns, parts: Vec<Part>| {
            let map = Ordered::new(space().subspace(&number), columns).expect("columns of up to 8 bytes");
            (map, parts)
        };
        let (unsigned, signed) = (Column::Unsigned(3), Column::Signed(8));
        Encodings {
            maps: vec![
                map(0, vec![unsigned, signed], vec![Part::Unsigned(7), Part::Signed(-1)]),
                map(
                    1,
                    vec![Column::Text, Column::Unsigned(8)],
                    vec!["a\0b".into(), Part::Unsigned(u64::MAX)],
                ),
                map(2, vec![Column::Collated(collation), Column::Text], vec!["Åse".into(), "".into()]),
                map(
                    3,
                    vec![Column::Single, Column::Double],
                    vec![Part::Single(-0.0), Part::Double(f64::NAN)],
                ),
            ],
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            for (map, parts) in &self.maps {
                map.set(&tx, parts, b"value").await?;
            }
            Ok::<_, shaketable_layers::encoding::Error>(())
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        for (map, parts) in &self.maps {
            for parts in [&parts[..], &parts[..1], &[], &[Part::Signed(i64::MIN), "x".into()]] {
                calls.tx("Ordered::get", |tx| async move { map.get(&tx, parts, Serializable).await }).await;
                calls.tx("Ordered::set", |tx| async move { map.set(&tx, parts, b"new").await }).await;
                calls.tx("Ordered::delete", |tx| async move { map.delete(&tx, parts).await }).await;
                calls
                    .tx("Ordered::under", |tx| async move { map.under(&tx, parts, Serializable).await })
                    .await;
                let between = |tx| async move { map.between(&tx, &[], parts, Serializable).await };
                calls.tx("Ordered::between", between).await;
            }
            calls
                .pages("Ordered::page", async |tx, after: Option<Vec<Part>>| {
                    let page = map.page(&tx, &[], after.as_deref(), 1, Serializable).await;
                    page.map(|page| page.into_iter().next().map(|(parts, _)| parts))
                })
                .await;
        }
        for width in [0, 1, 8, 9, 255] {
            for column in [Column::Unsigned(width), Column::Signed(width)] {
                for part in [Part::Unsigned(u64::MAX), Part::Signed(i64::MIN)] {
                    let encoded = async { column.encode(&part, &mut Vec::new()) };
                    calls.call("Column::encode", encoded).await;
                }
            }
        }
    }
}
