//! Answers as sessions record them, damaged at every place. A session reads one only if its operation is
//! repeated, which no operation on foreign bytes is.

use crate::allocations::MEMORY;
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Subspace, Versionstamp, pack};
use shaketable_layers::{
    blob::Generation,
    directory::{CandidateSeed, Directories, Directory, Error, PARTITION},
    document,
    id::Id,
    index::{Old, users::User},
    leased_queue::{Claim, Hold},
    log::Appended,
    priority_queue::{self, Place},
    queue::{self, ItemId, Position},
    scheduling::Change,
    staged_queue::{Registered, RequestState, Taken},
};
use shaketable_tx::{
    Database,
    Isolation::Serializable,
    RetryError,
    once::{Answer, Packed},
};
use std::{any::type_name, fmt::Debug};

/// The recorded answer cut off everywhere, with every byte changed, and with bytes inserted everywhere.
fn damaged(recorded: &[u8]) -> impl Iterator<Item = Bytes> {
    // The codes of integers, tuples and versionstamps among them.
    const CODES: [u8; 8] = [0, 1, 5, 0x0b, 0x1d, 0x33, 0x80, 0xff];
    let cut = (0..=recorded.len()).map(|end| recorded[..end].to_vec());
    let places = move || (0..recorded.len()).flat_map(|at| CODES.map(|code| (at, code)));
    let with = move |(at, instead, code, many)| {
        let mut bytes = recorded.to_vec();
        bytes.splice(at..at + instead, vec![code; many]);
        bytes
    };
    let changed = places().map(move |(at, code)| with((at, 1, code, 1)));
    let inserted = places().flat_map(move |(at, code)| [1, 4, 9_000].map(|many| with((at, 0, code, many))));
    cut.chain(changed).chain(inserted).map(Bytes::from)
}

/// Decodes an answer from damaged bytes, and returns those that could be.
fn decoded<A: Answer + Debug>(recorded: &[u8]) -> Vec<A> {
    let decode = |bytes: Bytes| {
        (MEMORY.begin)(type_name::<A>());
        let answer = A::decode(bytes);
        drop(format!("{answer:?}"));
        let most = (MEMORY.most)();
        assert!(most < 1 << 20, "{}: {most} bytes for {recorded:?}", type_name::<A>());
        answer
    };
    damaged(recorded).filter_map(decode).collect()
}

fn recorded(answer: &impl Answer) -> BytesMut {
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes).expect("it is short");
    bytes
}

/// Decodes the answer from damaged bytes of its own.
fn check<A: Answer + Debug>(answer: A) {
    assert!(!decoded::<A>(&recorded(&answer)).is_empty(), "{answer:?}");
}

#[test]
fn answers_are_decoded_from_any_bytes() {
    let position = Position::Commit { stamp: [1; 10], rank: 300, id: ItemId([0; 16]) };
    let hold = Hold { position, token: 7 };
    let item = || queue::Item { position, value: Bytes::from_static(b"value") };
    let place = Place { priority: -1, count: 2, id: ItemId([3; 16]) };
    check(Some(Id::from("answer")));
    check(vec![String::from("a"), String::new()]);
    check(Packed((7i64, vec![u64::MAX, 0])));
    check(Versionstamp::complete([1; 10], 0));
    check(Generation { version: 1, step: 300 });
    check(document::Id::Number(u64::MAX));
    check(Old(User { id: "u".into(), name: "".into(), zipcode: None }));
    check(Claim { hold, value: Bytes::from_static(b"value") });
    check(hold);
    check(place);
    check(Some(priority_queue::Item { place, value: Bytes::new() }));
    check(item());
    check(Change::Made);
    check(RequestState::Given(Some(item())));
    check(Taken::Now(Some(item())));
    check(true);
    check(Bytes::from_static(b"\0\xff"));
    assert!(!decoded::<Appended>(&pack(&(Versionstamp::complete([1; 10], 0), 300))).is_empty());
    assert!(!decoded::<Registered>(&recorded(&position)).is_empty());
}

/// A directory is the one answer with functions of its own that read.
#[test]
fn directories_of_any_bytes_can_be_asked() {
    shaketable::calm::simulate(|db| async move {
        let made = db.run(|tx, _| async move {
            let all = Directories::new(Subspace::from("nodes"), Subspace::from("content"));
            all.create(&tx, &["partition"], PARTITION, CandidateSeed(1)).await?;
            all.create(&tx, &["partition", "a"], b"tag", CandidateSeed(2)).await
        });
        let made: Directory = made.await.expect("a calm cluster takes directories");
        let found = decoded::<Directory>(&recorded(&made));
        assert!(found.len() > 50, "{}", found.len());
        let asked = db.run(|tx, _| {
            let found = found.clone();
            async move {
                for directory in found {
                    let exists = directory.exists(&tx, Serializable).await;
                    let below = directory.below().list(&tx, &[], Serializable).await;
                    let errors = [exists.err(), below.err()];
                    errors.into_iter().flatten().find(|e| e.fdb().is_some()).map_or(Ok(()), Err)?;
                }
                Ok::<_, Error>(())
            }
        });
        asked.await.expect("what is stored is not asked of FoundationDB");
    });
}
