//! Convergent: all replicas of a shard are identical.

use super::{Evidence, Judgement, Replica};
use super::{Objection, Witness};
use bytes::Bytes;
use shaketable_tx::show;

/// Claims that all replicas of a shard are identical.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut replicas = evidence.replicas;
    while let [one, others @ ..] = replicas {
        replicas = others;
        for other in others {
            if one.range != other.range || one.rows == other.rows {
                continue;
            }
            let differs = one.rows.iter().zip(&other.rows).find(|(a, b)| a != b).map(|(a, _)| &a.0);
            let key = differs.or_else(|| {
                let shorter = one.rows.len().min(other.rows.len());
                one.rows.get(shorter).or(other.rows.get(shorter)).map(|row| &row.0)
            });
            let message = format!(
                "{} and {} differ at {} in the shard that begins at {}",
                one.server,
                other.server,
                key.map_or_else(String::new, |key| show::key(key)),
                show::key(&one.range.begin)
            );
            let witness = Witness {
                keys: key.into_iter().cloned().collect(),
                expected: key.map(|key| held(one, key)),
                found: key.map(|key| held(other, key)),
                ..Witness::default()
            };
            return Err(Box::new(Objection { message, witness, ..Objection::default() }));
        }
    }
    Ok(())
}

/// What a server has at a key.
fn held(replica: &Replica, key: &Bytes) -> String {
    let value = replica.rows.iter().find(|(one, _)| one == key).map(|(_, value)| show::value(value));
    format!("{} has {}", replica.server, value.unwrap_or_else(|| "nothing".to_owned()))
}
