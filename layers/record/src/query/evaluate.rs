//! Evaluating conditions on records, in the logic of three values: `None` is unknown.

use super::{
    comparison::{Comparison, any},
    component::{EmptyList, Operand, QueryComponent},
};
use crate::{
    expression::{EvaluateError, Evaluated, KeyExpression, Subject, field_of},
    value::{IntoValue, Value},
};
use prost_reflect::{DynamicMessage, ReflectMessage, Value as ProtoValue};
use shaketable_tx::nesting::MAX_DEPTH;

/// The ranks of a record's scores in each rank index that a condition compares with, `None` for a score that
/// is not in the index.
pub(super) type Ranks = Vec<(KeyExpression, Vec<Option<i64>>)>;

impl QueryComponent {
    /// Whether the condition holds for a record, `None` if that is unknown. The rank of the record is unknown
    /// here: use a query.
    ///
    /// Fails if the record is not of a type for which the condition was made, or if the condition is nested
    /// too deeply.
    pub fn evaluate(&self, subject: Subject<'_>) -> Result<Option<bool>, EvaluateError> {
        match self.is_deeper_than(MAX_DEPTH) {
            true => Err(EvaluateError::Depth { limit: MAX_DEPTH }),
            false => self.holds(subject, &Ranks::new()),
        }
    }

    pub(super) fn holds(&self, subject: Subject<'_>, ranks: &Ranks) -> Result<Option<bool>, EvaluateError> {
        match self {
            QueryComponent::And(parts) => {
                let not = |part: &QueryComponent| Ok(part.holds(subject, ranks)?.map(|holds| !holds));
                Ok(try_any(parts.iter().map(not))?.map(|holds| !holds))
            }
            QueryComponent::Or(parts) => try_any(parts.iter().map(|part| part.holds(subject, ranks))),
            QueryComponent::Not(inner) => Ok(inner.holds(subject, ranks)?.map(|holds| !holds)),
            QueryComponent::Compare { operand, comparison } => operand.holds(comparison, subject, ranks),
            QueryComponent::Matches { field, component } => {
                let Some(message) = subject.message else { return component.holds(subject, ranks) };
                match field_of(message, field)?.1.as_deref() {
                    None => component.holds(Subject { message: None, ..subject }, ranks),
                    Some(ProtoValue::Message(inner)) => {
                        component.holds(Subject { message: Some(inner), ..subject }, ranks)
                    }
                    Some(_) => Err(wrong(message, field)),
                }
            }
            QueryComponent::OneMatches { field, empty, component } => {
                let Some(message) = subject.message else { return Ok(None) };
                let (_, value) = field_of(message, field)?;
                let elements = match value.as_deref() {
                    None => return Ok(empty.holds()),
                    Some(ProtoValue::List(elements)) if elements.is_empty() => return Ok(empty.holds()),
                    Some(ProtoValue::List(elements)) => elements,
                    Some(_) => return Err(wrong(message, field)),
                };
                try_any(elements.iter().map(|element| match element {
                    ProtoValue::Message(inner) => {
                        component.holds(Subject { message: Some(inner), ..subject }, ranks)
                    }
                    _ => Err(wrong(message, field)),
                }))
            }
        }
    }

    /// Whether it compares with versions.
    pub fn compares_versions(&self) -> bool {
        match self {
            QueryComponent::And(parts) | QueryComponent::Or(parts) => {
                parts.iter().any(QueryComponent::compares_versions)
            }
            QueryComponent::Not(inner) => inner.compares_versions(),
            QueryComponent::Compare { operand: Operand::Version, .. } => true,
            QueryComponent::Compare { operand: Operand::Key(expression), .. } => {
                expression.version_columns() > 0
            }
            _ => false,
        }
    }

    /// The expressions of the ranks that it compares with.
    pub(super) fn ranks(&self) -> Vec<&KeyExpression> {
        match self {
            QueryComponent::And(parts) | QueryComponent::Or(parts) => {
                parts.iter().flat_map(QueryComponent::ranks).collect()
            }
            QueryComponent::Not(inner) => inner.ranks(),
            QueryComponent::Compare { operand: Operand::Rank(expression), .. } => vec![expression],
            _ => Vec::new(),
        }
    }
}

impl EmptyList {
    fn holds(self) -> Option<bool> {
        match self {
            EmptyList::Unknown => None,
            EmptyList::NoMatches => Some(false),
        }
    }
}

impl Operand {
    fn holds(
        &self,
        comparison: &Comparison,
        subject: Subject<'_>,
        ranks: &Ranks,
    ) -> Result<Option<bool>, EvaluateError> {
        match self {
            Operand::Field(field) => {
                of_one(&KeyExpression::Field(field.clone()).evaluate(subject)?, comparison)
            }
            Operand::OneOf { .. } if subject.message.is_none() => Ok(None),
            Operand::OneOf { field, empty } => {
                let elements = KeyExpression::Field(field.clone().fan_out()).evaluate(subject)?;
                match elements.is_empty() {
                    true => Ok(empty.holds()),
                    false => of_one(&elements, comparison),
                }
            }
            Operand::Key(expression) => {
                let keys = expression.evaluate(subject)?;
                match keys.is_empty() {
                    true => Ok(None),
                    false => of_one(&keys, comparison),
                }
            }
            Operand::Version => {
                Ok(comparison.holds(subject.version.cloned().map(IntoValue::into_value).as_ref()))
            }
            Operand::RecordType => Ok(comparison.holds(Some(subject.record_type))),
            Operand::Rank(expression) => {
                let of = ranks.iter().find(|(of, _)| of == expression).map_or(&[][..], |(_, ranks)| ranks);
                match of.is_empty() {
                    true => Ok(comparison.holds(None)),
                    false => {
                        Ok(any(of.iter().map(|rank| comparison.holds(rank.map(i64::into_value).as_ref()))))
                    }
                }
            }
        }
    }
}

/// Whether a comparison holds for the first column of one of the keys.
fn of_one(keys: &[Evaluated], comparison: &Comparison) -> Result<Option<bool>, EvaluateError> {
    let first = |key: &Evaluated| key.columns().first().map(|column| column.value());
    Ok(any(keys.iter().map(|key| comparison.holds(first(key).as_ref() as Option<&Value>))))
}

fn try_any(
    values: impl IntoIterator<Item = Result<Option<bool>, EvaluateError>>,
) -> Result<Option<bool>, EvaluateError> {
    let mut all = Some(false);
    for value in values {
        match value? {
            Some(true) => return Ok(Some(true)),
            None => all = None,
            Some(false) => {}
        }
    }
    Ok(all)
}

fn wrong(message: &DynamicMessage, field: &str) -> EvaluateError {
    EvaluateError::Field { message: message.descriptor().full_name().into(), field: field.into() }
}
