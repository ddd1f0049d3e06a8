//! Plans as bytes: what a continuation says of the plan that it belongs to.
//!
//! Applications hold continuations for longer than a version of this crate lives. The bytes are therefore
//! written out here and pinned by a test: no name of a type or of a field of this crate is in them, nor what
//! only [`explain`](super::RecordQueryPlan::explain) shows. They have everything that decides which rows a
//! plan finds, in which order. Every step, condition and comparison has a number, which is never given to
//! another one. Lists begin with their length, 4 bytes, big-endian, and so do strings; values are packed
//! tuples, and key expressions are as they are in stored meta-data.

use super::{
    bounds::{Bound, Bounds, ValueRange},
    comparison::Comparison,
    component::{EmptyList, Operand, QueryComponent},
    plan::Plan,
};
use crate::{
    expression::{Field, KeyExpression},
    value::{Tuple, Value},
};

/// The version of the encoding. What belongs to another version is refused.
const VERSION: u8 = 1;

/// A plan as bytes.
pub(super) fn encoded(plan: &Plan) -> Vec<u8> {
    let mut bytes = Encoder(vec![VERSION]);
    bytes.plan(plan);
    bytes.0
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, number: u8) {
        self.0.push(number);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }

    fn list<I: Copy>(&mut self, items: impl IntoIterator<Item = I>, one: impl Fn(&mut Encoder, I)) {
        let items: Vec<_> = items.into_iter().collect();
        self.length(items.len());
        items.into_iter().for_each(|item| one(self, item));
    }

    fn option<I>(&mut self, item: Option<I>, one: impl FnOnce(&mut Encoder, I)) {
        self.number(u8::from(item.is_some()));
        if let Some(item) = item {
            one(self, item);
        }
    }

    fn value(&mut self, value: &Value) {
        self.bytes(&Tuple::from(value.clone()).pack());
    }

    fn expression(&mut self, expression: &KeyExpression) {
        // An expression that cannot be written is in no valid meta-data and in no plan that is executed.
        self.bytes(&expression.to_bytes().unwrap_or_default());
    }

    fn field(&mut self, field: &Field) {
        self.expression(&field.clone().into());
    }

    fn plan(&mut self, plan: &Plan) {
        match plan {
            Plan::Nothing => self.number(0),
            Plan::Records { bounds, reverse } => {
                self.number(1);
                self.bounds(bounds);
                self.number(u8::from(*reverse));
            }
            Plan::Index { index, by_rank, bounds, skip, reverse } => {
                self.number(2);
                self.bytes(index.as_bytes());
                self.number(u8::from(*by_rank));
                self.bounds(bounds);
                self.length(*skip);
                self.number(u8::from(*reverse));
            }
            Plan::InJoin { column: _, values, inner } => {
                self.number(3);
                self.list(values, Encoder::value);
                self.plan(inner);
            }
            Plan::Union { children, order: _, reverse } => {
                self.number(4);
                self.list(children, Encoder::plan);
                self.number(u8::from(*reverse));
            }
            Plan::Intersection { children, order: _, reverse } => {
                self.number(5);
                self.list(children, Encoder::plan);
                self.number(u8::from(*reverse));
            }
            Plan::Either { branches } => {
                self.number(6);
                self.list(branches, |bytes, (condition, plan)| {
                    bytes.condition(condition);
                    bytes.plan(plan);
                });
            }
            Plan::Distinct(inner) => {
                self.number(7);
                self.plan(inner);
            }
            Plan::Load(inner) => {
                self.number(8);
                self.plan(inner);
            }
            Plan::Partial { record_type, columns, inner } => {
                self.number(9);
                self.bytes(record_type.as_bytes());
                self.list(columns, |bytes, column| bytes.option(column.as_ref(), Encoder::expression));
                self.plan(inner);
            }
            Plan::Types { types, inner } => {
                self.number(10);
                self.list(types, |bytes, name| bytes.bytes(name.as_bytes()));
                self.plan(inner);
            }
            Plan::Filter { condition, inner } => {
                self.number(11);
                self.condition(condition);
                self.plan(inner);
            }
        }
    }

    fn bounds(&mut self, Bounds { equal, range, of_ranks }: &Bounds) {
        self.list(equal, |bytes, (_, bound)| match bound {
            Bound::To(value) => {
                bytes.number(0);
                bytes.value(value);
            }
            Bound::Each => bytes.number(1),
        });
        self.option(range.as_ref(), |bytes, (_, range)| bytes.range(range));
        self.number(u8::from(*of_ranks));
    }

    fn range(&mut self, ValueRange { low, high, prefix }: &ValueRange) {
        for end in [low, high] {
            self.option(end.as_ref(), |bytes, (value, inclusive)| {
                bytes.value(value);
                bytes.number(u8::from(*inclusive));
            });
        }
        self.option(prefix.as_ref(), Encoder::value);
    }

    fn condition(&mut self, condition: &QueryComponent) {
        match condition {
            QueryComponent::And(parts) => {
                self.number(0);
                self.list(parts, Encoder::condition);
            }
            QueryComponent::Or(parts) => {
                self.number(1);
                self.list(parts, Encoder::condition);
            }
            QueryComponent::Not(inner) => {
                self.number(2);
                self.condition(inner);
            }
            QueryComponent::Compare { operand, comparison } => {
                self.number(3);
                self.operand(operand);
                self.comparison(comparison);
            }
            QueryComponent::Matches { field, component } => {
                self.number(4);
                self.bytes(field.as_bytes());
                self.condition(component);
            }
            QueryComponent::OneMatches { field, empty, component } => {
                self.number(5);
                self.bytes(field.as_bytes());
                self.empty(*empty);
                self.condition(component);
            }
        }
    }

    fn empty(&mut self, empty: EmptyList) {
        self.number(match empty {
            EmptyList::Unknown => 0,
            EmptyList::NoMatches => 1,
        });
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Field(field) => {
                self.number(0);
                self.field(field);
            }
            Operand::OneOf { field, empty } => {
                self.number(1);
                self.field(field);
                self.empty(*empty);
            }
            Operand::Rank(expression) => {
                self.number(2);
                self.expression(expression);
            }
            Operand::Version => self.number(3),
            Operand::RecordType => self.number(4),
            Operand::Key(expression) => {
                self.number(5);
                self.expression(expression);
            }
        }
    }

    fn comparison(&mut self, comparison: &Comparison) {
        self.number(match comparison {
            Comparison::Equals(_) => 0,
            Comparison::NotEquals(_) => 1,
            Comparison::Less(_) => 2,
            Comparison::LessOrEqual(_) => 3,
            Comparison::Greater(_) => 4,
            Comparison::GreaterOrEqual(_) => 5,
            Comparison::StartsWith(_) => 6,
            Comparison::In(_) => 7,
            Comparison::IsNull => 8,
            Comparison::NotNull => 9,
        });
        self.list(comparison.comparands(), Encoder::value);
    }
}
