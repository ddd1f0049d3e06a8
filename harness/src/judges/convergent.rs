//! Convergent: all replicas of a shard are identical.

use super::{Evidence, show};

/// Claims that all replicas of a shard are identical.
pub fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
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
            return Err(format!(
                "{} and {} differ at {} in the shard that begins at {}",
                one.server,
                other.server,
                key.map_or_else(String::new, |key| show(key)),
                show(&one.range.begin)
            ));
        }
    }
    Ok(())
}
