//! Entities and relationships done wrong, one bug at a time.

use crate::{
    specimen::Content,
    workloads::entity::{Answer, Flaw, Op, RELATIONSHIPS, layer, space},
};
use shaketable_layers::{
    entity::{Cardinality, Direction, Error},
    id::Id,
    tx::{
        Isolation::{self, Serializable, Snapshot},
        RangeOption, Transaction,
    },
};

const SIDES: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// Does a call that the bug touches; `None` when it leaves this one as it is.
pub async fn perform<T: Transaction>(flaw: Flaw, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    Some(match (flaw, op) {
        (Flaw::SharedSpace, Op::AddAttribute(id, name, byte, length)) if *length <= 2_000 => {
            tx.set(&space().pack(&("relationship", id, name)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Flaw::SharedSpace, Op::Attribute(id, name)) => {
            let value = tx.get(&space().pack(&("relationship", id, name)), Serializable).await;
            value.map(|value| Answer::Value(value.as_ref().map(Content::from))).map_err(Error::Fdb)
        }
        (Flaw::InverseStays, Op::Part(name, primary, foreign)) if of(name).is_some() => {
            tx.clear(&space().pack(&("relationship", name, primary, foreign)));
            Ok(Answer::Written)
        }
        (Flaw::RelationsStay, Op::Delete(id)) => {
            let counted = delete(tx, id, &[], Serializable).await;
            counted.map(Answer::Deleted)
        }
        (Flaw::InverseDangles, Op::Delete(id)) => {
            delete(tx, id, &SIDES[..1], Serializable).await.map(Answer::Deleted)
        }
        (Flaw::SnapshotDeletion, Op::Delete(id)) => {
            delete(tx, id, &SIDES, Snapshot).await.map(Answer::Deleted)
        }
        (
            Flaw::SnapshotCardinality | Flaw::OtherSide | Flaw::Uncounted,
            Op::Relate(name, primary, foreign),
        ) => {
            let cardinality = of(name)?;
            relate(flaw, tx, (name, cardinality), primary, foreign).await.map(|()| Answer::Written)
        }
        _ => return None,
    })
}

fn of(relationship: &str) -> Option<Cardinality> {
    RELATIONSHIPS.iter().find(|(name, _)| *name == relationship).map(|(_, of)| *of)
}

/// Deletes the attributes, and the pairs that are found from these sides. Counts them all.
async fn delete<T: Transaction>(
    tx: &T,
    id: &Id,
    sides: &[Direction],
    isolation: Isolation,
) -> Result<u64, Error> {
    let mut pairs = 0;
    for (name, _) in RELATIONSHIPS {
        for side in SIDES {
            for other in layer().get_related_entities(tx, name, side, id, isolation).await? {
                pairs += u64::from(other != *id || side == Direction::Forward);
                if sides.contains(&side) {
                    let (primary, foreign) = match side {
                        Direction::Forward => (id, &other),
                        Direction::Inverse => (&other, id),
                    };
                    layer().remove_relationship(tx, name, primary, foreign).await?;
                }
            }
        }
    }
    let (begin, end) = space().subspace(&("attribute", id)).range();
    tx.clear_range(&begin, &end);
    Ok(pairs)
}

async fn relate<T: Transaction>(
    flaw: Flaw,
    tx: &T,
    (name, cardinality): (&str, Cardinality),
    primary: &Id,
    foreign: &Id,
) -> Result<(), Error> {
    let checked = match (flaw, cardinality) {
        (Flaw::Uncounted, _) => Cardinality::ManyToMany,
        (Flaw::OtherSide, Cardinality::OneToMany) => Cardinality::ManyToOne,
        (_, right) => right,
    };
    let isolation = if flaw == Flaw::SnapshotCardinality { Snapshot } else { Serializable };
    for (side, part, entity, other) in
        [(SIDES[0], "relationship", primary, foreign), (SIDES[1], "inverse", foreign, primary)]
    {
        let of = space().subspace(&(part, name, entity));
        let rows = tx.get_range_all(RangeOption::from(of.range()), isolation).await?;
        let related = rows.iter().filter_map(|row| of.unpack::<(Id,)>(&row.key).ok()).map(|(id,)| id);
        if let (true, Some(related)) = (checked.limits(side), related.into_iter().find(|id| id != other)) {
            let entity = entity.clone();
            return Err(Error::Cardinality { relationship: name.into(), cardinality, entity, related });
        }
    }
    tx.set(&space().pack(&("relationship", name, primary, foreign)), b"");
    tx.set(&space().pack(&("inverse", name, foreign, primary)), b"");
    Ok(())
}
