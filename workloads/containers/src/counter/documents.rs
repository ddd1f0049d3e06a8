//! Counters split into several keys, each changed at random.

use crate::shared::cluster::on_cluster;
use foundationdb_tuple::Subspace;
use shaketable_layers::counter::{Error, Part, SplitCounter};
use shaketable_tx::{Database, Isolation::Serializable, RangeOption, Transaction};

#[test]
fn a_split_counter_is_the_sum_of_its_parts_whoever_made_them() {
    on_cluster(|db| async move {
        let space = || Subspace::from("hits");
        let parts = [(); 40].map(|()| Part::draw(db.env()));
        let added = db.run(|tx, _| async move {
            for part in parts {
                SplitCounter::new(space(), 8).add(&tx, part, 1).await?;
            }
            Ok::<_, Error>(())
        });
        added.await.expect("additions");
        let read = db.run(|tx, _| async move {
            let keys = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?.len();
            Ok::<_, Error>((keys, SplitCounter::new(space(), 2).get(&tx, Serializable).await?))
        });
        let (keys, sum) = read.await.expect("a look");
        assert!((2..=8).contains(&keys), "{keys} keys");
        assert_eq!(sum, 40);
    });
}
