//! The operations that a transaction has applied to one key, and their effect on its value.

use crate::atomic;
use bytes::Bytes;
use shaketable_tx::MutationType;

/// One operation on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the value, or clears the key.
    Set(Option<Bytes>),
    /// An atomic operation.
    Atomic(MutationType, Bytes),
}

impl Op {
    /// Whether the resulting value depends on the previous value.
    pub fn is_dependent(&self) -> bool {
        !matches!(
            self,
            Op::Set(_)
                | Op::Atomic(MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue, _)
        )
    }

    /// The resulting value, for the previous value `before`.
    fn value(&self, before: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Op::Set(value) => value.clone(),
            Op::Atomic(op, operand) => atomic::apply(*op, before, operand),
        }
    }
}

/// The operations on one key, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// None: the entry only begins a range.
    #[default]
    Empty,
    /// One operation.
    One(Op),
    /// Several operations.
    Many(Vec<Op>),
}

impl Stack {
    /// The operations.
    pub fn ops(&self) -> &[Op] {
        match self {
            Stack::Empty => &[],
            Stack::One(op) => std::slice::from_ref(op),
            Stack::Many(ops) => ops,
        }
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        matches!(self, Stack::Empty)
    }

    /// Whether the resulting value depends on the snapshot.
    pub fn is_dependent(&self) -> bool {
        self.ops().first().is_some_and(Op::is_dependent)
    }

    /// Adds an operation after the others.
    pub fn push(&mut self, op: Op) {
        *self = match std::mem::take(self) {
            Stack::Empty => Stack::One(op),
            Stack::One(first) => Stack::Many(vec![first, op]),
            Stack::Many(mut ops) => {
                ops.push(op);
                Stack::Many(ops)
            }
        };
    }

    /// Adds `op` after the newest operation, combining the two into one where possible.
    pub fn coalesce(&mut self, op: Op) {
        let top = match self {
            Stack::Empty => return self.push(op),
            Stack::One(top) => top,
            Stack::Many(ops) => match ops.last_mut() {
                Some(top) => top,
                None => return self.push(op),
            },
        };
        let merged = match (&*top, &op) {
            (Op::Set(value), Op::Atomic(..)) => Op::Set(op.value(value.as_ref())),
            (Op::Atomic(a, old), Op::Atomic(b, new)) if a == b && merges(*a, old.len(), new.len()) => {
                Op::Atomic(*a, atomic::apply(*a, Some(old), new).unwrap_or_default())
            }
            _ => return self.push(op),
        };
        *top = merged;
    }

    /// The resulting value if the snapshot's value is `below`.
    pub fn over(&self, below: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Stack::Empty => below.cloned(),
            Stack::One(Op::Atomic(_, placeholder)) if !self.is_dependent() => Some(placeholder.clone()),
            Stack::One(op) => op.value(below),
            Stack::Many(ops) => ops.iter().fold(below.cloned(), |value, op| op.value(value.as_ref())),
        }
    }
}

/// Whether two equal atomic operations in a row can be combined into one with a combined operand.
fn merges(op: MutationType, old: usize, new: usize) -> bool {
    use MutationType::*;
    match op {
        CompareAndClear => false,
        Add | BitOr | BitXor | Max | Min | SetVersionstampedKey | SetVersionstampedValue => old == new,
        BitAnd | AppendIfFits | ByteMin | ByteMax => true,
    }
}
