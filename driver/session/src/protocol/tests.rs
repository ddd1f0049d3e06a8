//! Every message has an encoding that gives it back, and no bytes make a panic.

use super::*;
use proptest::prelude::*;
use shaketable_tx::{Error, Isolation, KeyValue, MappedBatch, MappedRow, RangeBatch, StreamingMode};
use std::time::Duration;

fn text(length: usize) -> Bytes {
    vec![7; length].into()
}

fn requests(length: usize) -> Vec<Request> {
    let (key, db, tx, isolation) = (text(length), DatabaseId(0), TransactionId(1), Isolation::Snapshot);
    let range = RangeOption::new(key.clone(), key.clone()).limit(5).mode(StreamingMode::Exact);
    let actions = [
        Action::SetOption { code: 1, value: Some(key.clone()) },
        Action::SetReadVersion(-1),
        Action::Set(key.clone(), key.clone()),
        Action::Clear(key.clone()),
        Action::ClearRange(key.clone(), key.clone()),
        Action::Atomic { key: key.clone(), operand: key.clone(), code: 2 },
        Action::AddConflictRange(key.clone(), key.clone(), shaketable_tx::ConflictRangeType::Write),
        Action::Reset,
        Action::Cancel,
        Action::Destroy,
    ];
    let calls = [
        Call::Get(key.clone(), isolation),
        Call::GetKey(KeySelector::last_less_than(key.clone()), isolation),
        Call::GetRange(range.clone(), 1, isolation),
        Call::GetMappedRange(range, key.clone(), 1, isolation),
        Call::GetReadVersion,
        Call::Commit,
        Call::OnError(Error::NOT_COMMITTED),
        Call::Watch(key.clone()),
        Call::GetVersionstamp,
        Call::GetApproximateSize,
        Call::GetEstimatedRangeSize(key.clone(), key.clone()),
        Call::GetRangeSplitPoints(key.clone(), key.clone(), 10),
        Call::GetAddresses(key.clone()),
        Call::GetTagThrottledDuration,
        Call::GetTotalCost,
        Call::Recover,
    ];
    let commands = actions.map(|action| Command::Transaction(tx, action)).into_iter();
    let options =
        [Command::Create(tx), Command::SetDatabaseOption { code: 2, value: Some(key) }, Command::Close];
    let commands = commands.chain(options).map(|command| Request::Command(db, command));
    let calls = calls.into_iter().map(|call| Request::Call(CallId(u64::MAX), db, tx, call));
    let others =
        [Request::Open(db, ClusterName::default()), Request::Want(CallId(3)), Request::Cancel(CallId(3))];
    commands.chain(calls).chain(others).collect()
}

fn responses() -> Vec<Response> {
    let row = KeyValue::new("key", "value");
    let mapped = MappedRow { parent: row.clone(), begin: text(1), end: text(2), rows: vec![row.clone()] };
    let replies = [
        Reply::Done,
        Reply::Committed(-1),
        Reply::Number(i64::MAX),
        Reply::Time(Duration::from_nanos(5)),
        Reply::Key(text(3)),
        Reply::Value(None),
        Reply::Value(Some(text(0))),
        Reply::Range(RangeBatch { rows: vec![row], more: true }),
        Reply::Mapped(MappedBatch { rows: vec![mapped], more: false }),
        Reply::Keys(vec![text(1), text(2)]),
        Reply::Addresses(vec!["10.0.0.1:4500".to_owned()]),
    ];
    let answers = replies.map(Ok).into_iter().chain([Err(Error::from_code(1020))]);
    let answers = answers.map(|answer| Response::Answer(CallId(9), answer));
    answers.chain([Response::Refused("why".to_owned())]).collect()
}

#[test]
fn every_message_is_given_back() {
    for request in requests(3) {
        assert_eq!(decode(&encode(&request).expect("an encoding")), Some(request));
    }
    for response in responses() {
        assert_eq!(decode(&encode(&response).expect("an encoding")), Some(response));
    }
}

#[test]
fn a_request_with_the_longest_texts_fits_a_frame() {
    for request in requests(LONGEST_TEXT + 1) {
        let cut = encode(&request.cut()).expect("an encoding");
        assert!(cut.len() <= LONGEST_REQUEST as usize, "{}", cut.len());
    }
}

#[test]
fn a_body_is_one_message_and_nothing_else() {
    for request in requests(3) {
        let body = encode(&request).expect("an encoding");
        assert_eq!(decode::<Request>(&[&body[..], &[0]].concat()), None, "{request:?} and a byte");
        for length in 0..body.len() {
            assert_eq!(decode::<Request>(&body[..length]), None, "{length} bytes of {request:?}");
        }
    }
}

/// The layout of this version. If this fails, change [`VERSION`].
#[test]
fn the_encoding_of_this_version_stays() {
    let body = |request: &Request| encode(request).expect("an encoding");
    assert_eq!(body(&Request::Open(DatabaseId(300), ClusterName::default())), [0, 172, 2, 0]);
    let set = Action::Set(Bytes::from_static(b"k"), Bytes::from_static(b"v"));
    let set = Request::Command(DatabaseId(0), Command::Transaction(TransactionId(1), set));
    assert_eq!(body(&set), [1, 0, 2, 1, 2, 1, b'k', 1, b'v']);
    let all: Vec<u8> = requests(3).iter().flat_map(body).collect();
    let answers = responses().into_iter().flat_map(|response| encode(&response).expect("an encoding"));
    let sum = |bytes: Vec<u8>| {
        bytes.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
    };
    assert_eq!((VERSION, sum(all), sum(answers.collect())), (4, 1_395_379_871, 365_218_658));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode::<Request>(&body);
        let _ = decode::<Response>(&body);
    }

    #[test]
    fn no_change_of_a_message_makes_a_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), to: u8) {
        let requests = requests(3);
        let mut body = encode(which.get(&requests)).expect("an encoding");
        let at = at.index(body.len());
        body[at] = to;
        if let Some(request) = decode::<Request>(&body) {
            prop_assert_eq!(decode(&encode(&request).expect("an encoding")), Some(request));
        }
    }
}
