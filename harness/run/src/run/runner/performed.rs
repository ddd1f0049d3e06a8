//! What the operations of a run took: for distributions over many runs.

use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
};
use shaketable_sim::{history::History, rt::Nanos};

/// What the operations of a run took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Performed {
    /// The time from the call to the answer of each operation that was answered.
    pub latencies: Vec<Nanos>,
    /// The number of attempts at transactions of each operation.
    pub attempts: Vec<u32>,
}

/// Collects what the operations of the clients took.
pub(super) fn performed(history: &History, operations: &[Vec<Operation<AnyValue>>]) -> Performed {
    let all = || operations.iter().flatten();
    let answered = all().filter(|operation| matches!(operation.outcome, Some(Outcome::Answered(_))));
    let latencies = answered.map(|operation| operation.returned.saturating_sub(operation.called)).collect();
    let mut firsts = Vec::with_capacity(operations.len());
    let mut attempts = Vec::with_capacity(all().count());
    for client in operations {
        firsts.push(attempts.len()..attempts.len() + client.len());
        attempts.resize(attempts.len() + client.len(), 0);
    }
    for attempt in history.attempts.iter().flatten() {
        let places = firsts.get(usize::from(attempt.client.0));
        let of_client = places.and_then(|places| attempts.get_mut(places.clone()));
        let operation = attempt.operation.map(|operation| operation as usize);
        if let Some(count) =
            of_client.zip(operation).and_then(|(counts, operation)| counts.get_mut(operation))
        {
            *count += 1;
        }
    }
    Performed { latencies, attempts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;
    use shaketable_sim::ids::ClientId;
    use shaketable_tx::Error;

    #[test]
    fn attempts_belong_to_their_operations_and_answers_to_their_calls() {
        let mut story = Story::default();
        // Clients take turns; attempts of the setup, of an unknown operation and of none do not count.
        for (client, operation) in [
            (0, Some(0)),
            (1, Some(0)),
            (0, Some(0)),
            (1, Some(1)),
            (0, Some(0)),
            (1, None),
            (1, Some(9)),
            (1_001, Some(0)),
        ] {
            let (_, attempt) = story.attempt(0, Vec::new());
            (attempt.client, attempt.operation) = (ClientId(client), operation);
        }
        let operation = |called, returned, outcome| Operation { called, returned, outcome };
        let operations = [
            vec![operation(3, 10, Some(Outcome::Answered(AnyValue::new(())))), operation(11, 12, None)],
            vec![
                operation(5, 5, Some(Outcome::Answered(AnyValue::new(())))),
                operation(6, 9, Some(Outcome::Unknown(Error::TRANSACTION_TIMED_OUT))),
            ],
        ];
        let expected = Performed { latencies: vec![7, 0], attempts: vec![3, 0, 1, 1] };
        assert_eq!(performed(&story.history, &operations), expected);
    }
}
