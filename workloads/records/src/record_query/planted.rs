//! Planted bugs: queries, plans and pages that are easily made wrong. Queries and plans are plain data, which
//! are changed before they are used; the layer itself is not.

use super::operations::Row;
use foundationdb_tuple::Element;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Page},
    error::Error,
    expression::KeyExpression,
    query::{
        Bound, Bounds, Comparison, Operand, Plan, QueriedRecord, QueryComponent, RecordQuery, RecordQueryPlan,
    },
    store::RecordStore,
};
use shaketable_tx::Tx;

shaketable::planted_bugs! {
    NotUnknown = "not-unknown", "a comparison of an absent field that is not true is taken for false, and its negation for true", "R7: NOT UNKNOWN is TRUE";
    NullsInRange = "nulls-in-range", "a range without a lower bound begins before the nulls", "R7: x < 1 is TRUE for null";
    CoveredShifted = "covered-shifted", "the columns of the primary key are taken for those of an entry's key", "R36: a covering plan with columns mixed up";
    TypeCode = "type-code", "a float is looked up in an index as a double", "R36: type codes that differ from those of the entries";
    LookAhead = "look-ahead", "a page reads one row more than it returns, and the next one begins after that", "a limit that counts other rows than the position";
    PlannedEarly = "planned-early", "a query is planned before its transaction writes, and its plan is executed after that", "R20: entries of versions that the transaction itself cannot read";
    TypesCut = "types-cut", "of several types of records the first one is returned", "several types";
    PrefixEnds = "prefix-ends", "a scan of strings with a prefix ends at U+FFFF", "characters beyond the basic plane";
    LastRow = "last-row", "of more than six rows the last one is lost", "the last element of a batch";
    CutAtLimit = "cut-at-limit", "the rows of a query end after eight", "a limit that tests never reach";
    SkipAlike = "skip-alike", "a page leaves out records whose number begins with the digits of the last one of the page before", "a continuation that skips keys which begin with the last one";
    LowerOfAscii = "lower-of-ascii", "a function of texts changes the letters of ASCII only", "text that is not English";
}

/// The plan of a query, with the bug. The query is planned with the indexes that are readable.
pub(super) fn plan(
    planted: Planted,
    store: &RecordStore<Tx>,
    query: &RecordQuery,
) -> Result<RecordQueryPlan, Error> {
    let mut query = query.clone();
    if planted == Planted::NotUnknown {
        query.filter.iter_mut().for_each(ask);
    }
    let mut root = store.plan_query(&query)?.root().clone();
    change(planted, &mut root);
    Ok(root.into())
}

/// Makes the negation of a comparison true if the field is absent.
fn ask(condition: &mut QueryComponent) {
    match condition {
        QueryComponent::And(parts) | QueryComponent::Or(parts) => parts.iter_mut().for_each(ask),
        QueryComponent::Not(inner) => match &mut **inner {
            QueryComponent::Compare { operand: operand @ Operand::Field(_), .. } => {
                let (operand, comparison) = (operand.clone(), Comparison::IsNull);
                let null = QueryComponent::Compare { operand, comparison };
                *condition = QueryComponent::Or(vec![condition.clone(), null]);
            }
            inner => ask(inner),
        },
        QueryComponent::Matches { component, .. } | QueryComponent::OneMatches { component, .. } => {
            ask(component);
        }
        QueryComponent::Compare { .. } => {}
    }
}

/// Changes the steps of a plan, those below each first.
fn change(planted: Planted, plan: &mut Plan) {
    match plan {
        Plan::Nothing | Plan::Records { .. } | Plan::Index { .. } => {}
        Plan::Union { children, .. } | Plan::Intersection { children, .. } => {
            children.iter_mut().for_each(|child| change(planted, child));
        }
        Plan::Either { branches } => branches.iter_mut().for_each(|(_, plan)| change(planted, plan)),
        Plan::Distinct(inner)
        | Plan::Load(inner)
        | Plan::InJoin { inner, .. }
        | Plan::Partial { inner, .. }
        | Plan::Types { inner, .. }
        | Plan::Filter { inner, .. } => change(planted, inner),
    }
    match (planted, plan) {
        (Planted::TypesCut, Plan::Types { types, .. }) => types.truncate(1),
        (Planted::CoveredShifted, Plan::Partial { columns, .. }) => shift(columns),
        (Planted::TypeCode, Plan::Index { bounds, .. }) => {
            for (_, bound) in &mut bounds.equal {
                if let Bound::To(Element::Float(number)) = bound {
                    *bound = Bound::To(Element::Double(f64::from(*number)));
                }
            }
        }
        (Planted::NullsInRange | Planted::PrefixEnds, Plan::Index { bounds, .. }) => widen(planted, bounds),
        _ => {}
    }
}

/// Changes the ends of a range.
fn widen(planted: Planted, bounds: &mut Bounds) {
    let Some((_, range)) = &mut bounds.range else { return };
    match (planted, &range.prefix, &range.low, &range.high) {
        (Planted::PrefixEnds, Some(Element::String(prefix)), ..) => {
            range.low = Some((Element::String(prefix.clone()), true));
            range.high = Some((Element::String(format!("{prefix}\u{ffff}").into()), true));
            range.prefix = None;
        }
        (Planted::NullsInRange, _, None, Some(_)) if !bounds.of_ranks => {
            range.low = Some((Element::Nil, true));
        }
        _ => {}
    }
}

/// Exchanges two of the columns that are fields of numbers.
fn shift(columns: &mut [Option<KeyExpression>]) {
    let numbers = ["id", "num", "big"];
    let is_number = |column: &Option<KeyExpression>| matches!(column, Some(KeyExpression::Field(field)) if numbers.contains(&&*field.name));
    let first = columns.iter().position(is_number);
    let last = columns.iter().rposition(is_number);
    if let (Some(first), Some(last)) = (first, last) {
        columns.swap(first, last);
    }
}

/// A page that is read with the bug; `None` if it does not change this.
pub(super) async fn page(
    planted: Planted,
    store: &RecordStore<Tx>,
    plan: &RecordQueryPlan,
    from: Continuation,
    limits: Limits,
) -> Result<Option<Page<QueriedRecord>>, Error> {
    let Some(most) = limits.rows else { return Ok(None) };
    match planted {
        Planted::SkipAlike if from != Continuation::Start => {
            let mut page = plan.execute(store, from, limits)?.to_list().await?;
            if let Some(first) = page.rows.first().map(number) {
                page.rows.retain(|row| number(row) == first || !number(row).starts_with(&first));
            }
            Ok(Some(page))
        }
        Planted::LookAhead => {
            let limits = Limits { rows: Some(most + 1), ..limits };
            let mut page = plan.execute(store, from, limits)?.to_list().await?;
            page.rows.truncate(most);
            Ok(Some(page))
        }
        _ => Ok(None),
    }
}

/// The digits of a record's number.
fn number(row: &QueriedRecord) -> String {
    match row.primary_key().elements().last() {
        Some(Element::Int(id)) => id.to_string(),
        _ => String::new(),
    }
}

/// The rows of a query, with the bug.
pub(super) fn cut(planted: Option<Planted>, mut rows: Vec<Row>) -> Vec<Row> {
    match planted {
        Some(Planted::LastRow) if rows.len() > 6 => drop(rows.pop()),
        Some(Planted::CutAtLimit) => rows.truncate(8),
        _ => {}
    }
    rows
}
