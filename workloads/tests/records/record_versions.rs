//! The versions of records: incomplete in their transaction, complete afterwards, one's own.

use crate::{
    fixture::{commit, open, stores},
    on_cluster,
    schema::{build, builder, meta_data, save, simple, with},
};
use shaketable_record::{
    error::Error,
    metadata::RecordMetaData,
    store::{RecordContext, RecordExistenceCheck, SaveVersion, suffix},
    value::Tuple,
    version::RecordVersion,
};
use shaketable_tx::{Isolation::Serializable, Transaction};
use std::sync::Arc;

fn versioned() -> Arc<RecordMetaData> {
    let mut builder = builder();
    builder.set_store_record_versions(true).unwrap();
    build(&builder)
}

#[test]
fn a_version_is_incomplete_until_its_transaction_commits() {
    on_cluster(|db| async move {
        let meta_data = versioned();
        let stores = stores("s", meta_data.clone());
        let mut last = None;
        for round in 0..3 {
            let store = open(&stores, &db).await;
            let mut saved = Vec::new();
            for rec_no in 1..=3 {
                let record = store.save_record(&simple(&meta_data, rec_no, [])).await.unwrap();
                let version = record.version.clone().expect("a version");
                assert_eq!((version.is_complete(), version.local()), (false, rec_no as u16 - 1));
                let primary_key = &Tuple::from(rec_no);
                assert_eq!(store.load_record_version(primary_key).await, Ok(Some(version.clone())));
                assert_eq!(store.load_record(primary_key).await, Ok(Some(record)));
                assert_eq!(store.record_exists(primary_key, Serializable).await, Ok(true));
                saved.push(version);
            }
            store.context().commit().await.unwrap();
            let stamp = store.context().versionstamp().await.unwrap().expect("a versionstamp");
            assert_eq!(store.context().versionstamp().await, Ok(None), "{round}");
            let store = open(&stores, &db).await;
            for (rec_no, version) in (1..).zip(saved) {
                let complete = version.completed(stamp);
                assert!(complete.is_complete());
                let primary_key = Tuple::from(rec_no);
                assert_eq!(store.load_record_version(&primary_key).await, Ok(Some(complete.clone())));
                let record = store.load_record(&primary_key).await.unwrap().unwrap();
                assert_eq!((record.version.as_ref(), record.rows), (Some(&complete), 2));
                // Each update is later, also one that changes nothing.
                assert!(last.as_ref() < Some(&complete));
                last = Some(complete);
            }
        }
    });
}

#[test]
fn the_version_of_the_last_save_in_a_transaction_is_the_records() {
    on_cluster(|db| async move {
        let meta_data = versioned();
        let stores = stores("s", meta_data.clone());
        let one = &Tuple::from(1);
        let store = open(&stores, &db).await;
        store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        commit(store).await;
        let version =
            with(&stores, &db, async |store| store.load_record_version(one).await.unwrap().unwrap()).await;
        assert_eq!(version.local(), 1);

        // Saved and deleted: neither a record nor a version is left.
        let store = open(&stores, &db).await;
        store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        assert_eq!(store.delete_record(one).await, Ok(true));
        assert_eq!(store.load_record(one).await, Ok(None));
        assert_eq!(store.load_record_version(one).await, Ok(None));
        assert_eq!(store.record_exists(one, Serializable).await, Ok(false));
        commit(store).await;
        assert_eq!(crate::schema::rows(&db).await.len(), 1, "the header");

        // And saved again after that.
        let store = open(&stores, &db).await;
        store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        store.delete_all_records().await.unwrap();
        assert_eq!(store.load_record_version(one).await, Ok(None));
        let saved = store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        assert_eq!(store.load_record(one).await, Ok(Some(saved)));
        commit(store).await;
        let version =
            with(&stores, &db, async |store| store.load_record_version(one).await.unwrap().unwrap()).await;
        assert_eq!((version.is_complete(), version.local()), (true, 1));
    });
}

#[test]
fn two_stores_in_one_context_keep_their_versions_apart() {
    on_cluster(|db| async move {
        let meta_data = versioned();
        let (a, b) = (stores("a", meta_data.clone()), stores("b", meta_data.clone()));
        let context = RecordContext::open(&db).unwrap();
        let (a, b) = (a.create(&context).await.unwrap(), b.create(&context).await.unwrap());
        let one = &Tuple::from(1);
        let in_a = a.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        assert_eq!(b.load_record_version(one).await, Ok(None));
        let in_b = b.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        assert_ne!(in_a.version, in_b.version);
        assert_eq!(b.delete_record(one).await, Ok(true));
        assert_eq!(a.load_record(one).await, Ok(Some(in_a)));
        assert_eq!(b.load_record(one).await, Ok(None));
        context.commit().await.unwrap();
    });
}

#[test]
fn a_version_of_ones_own_is_kept_if_it_is_complete() {
    on_cluster(|db| async move {
        let meta_data = versioned();
        let stores = stores("s", meta_data.clone());
        let record = simple(&meta_data, 1, []);
        let own = RecordVersion::complete([0; 10], 9);
        let with_own = |version: &RecordVersion| SaveVersion::Own(version.clone());
        let store = open(&stores, &db).await;
        let check = RecordExistenceCheck::None;
        let incomplete =
            store.save_record_with(&record, check, with_own(&RecordVersion::incomplete(1))).await;
        assert!(matches!(incomplete, Err(Error::Version(_))), "{incomplete:?}");
        assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(None));
        let saved = store.save_record_with(&record, check, with_own(&own)).await.unwrap();
        assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(Some(saved)));
        commit(store).await;
        let one = &Tuple::from(1);
        // Over a version of this transaction, and under one.
        let store = open(&stores, &db).await;
        assert_eq!(store.load_record_version(one).await, Ok(Some(own.clone())));
        store.save_record(&record).await.unwrap();
        let saved = store.save_record_with(&record, check, with_own(&own)).await.unwrap();
        assert_eq!(store.load_record(one).await, Ok(Some(saved)));
        commit(store).await;
        let store = open(&stores, &db).await;
        assert_eq!(store.load_record_version(one).await, Ok(Some(own.clone())));
        store.save_record_with(&record, check, with_own(&own)).await.unwrap();
        store.save_record(&record).await.unwrap();
        commit(store).await;
        let last = with(&stores, &db, async |store| store.load_record_version(one).await.unwrap()).await;
        assert!(last > Some(own.clone()));

        let unversioned = crate::fixture::stores("u", meta_data_without());
        let store = open(&unversioned, &db).await;
        let refused = store.save_record_with(&record, check, with_own(&own)).await;
        assert!(matches!(refused, Err(Error::Version(_))), "{refused:?}");
    });
}

fn meta_data_without() -> Arc<RecordMetaData> {
    meta_data()
}

#[test]
fn records_from_before_the_option_have_no_version_until_they_are_saved() {
    on_cluster(|db| async move {
        let before = meta_data();
        let (old, new) = (stores("s", before.clone()), stores("s", versioned()));
        save(&old, &db, &[simple(&before, 1, []), simple(&before, 2, [])]).await;
        let store = open(&new, &db).await;
        assert_eq!(store.load_record_version(&Tuple::from(1)).await, Ok(None));
        store.save_record(&simple(&before, 2, [])).await.unwrap();
        commit(store).await;
        let store = open(&new, &db).await;
        assert_eq!(store.load_record(&Tuple::from(1)).await.unwrap().unwrap().version, None);
        assert!(store.load_record_version(&Tuple::from(2)).await.unwrap().is_some());
    });
}

#[test]
fn a_store_that_stops_keeping_versions_removes_them_with_the_next_save() {
    on_cluster(|db| async move {
        let mut meta_data_builder = builder();
        meta_data_builder.set_store_record_versions(true).unwrap();
        let with_versions = build(&meta_data_builder);
        meta_data_builder.set_store_record_versions(false).unwrap();
        let without = build(&meta_data_builder);
        save(&stores("s", with_versions.clone()), &db, &[simple(&with_versions, 1, [])]).await;
        let stores = stores("s", without.clone());
        let store = open(&stores, &db).await;
        assert!(store.load_record_version(&Tuple::from(1)).await.unwrap().is_some());
        store.save_record(&simple(&without, 1, [])).await.unwrap();
        let key = store.keyspace().record(&Tuple::from(1)).pack(&(suffix::VERSION,));
        assert_eq!(store.context().transaction().unwrap().get(&key, Serializable).await, Ok(None));
        commit(store).await;
    });
}
