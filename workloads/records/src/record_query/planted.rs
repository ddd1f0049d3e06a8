//! Planted bugs: queries, plans and continuations that are easily made wrong. Queries and plans are plain
//! data, which are changed before they are used; the layer itself is not.

use super::{
    client::{self, ranks, steps},
    misplanned::{first_is_of_types, skipped, ties},
    operations::{Change, Row},
};
use foundationdb_tuple::Element;
use shaketable_record::{
    cursor::{Continuation, Cursor, CursorExt, Limits, Next, Page, Stop},
    error::Error,
    expression::{FanType, KeyExpression, NullStandin},
    index::IndexState,
    metadata::{Index, RecordMetaData, index_types},
    query::{
        Bound, Bounds, Comparison, EmptyList, Operand, Plan, QueriedRecord, QueryComponent, QueryError,
        RecordQuery, RecordQueryPlan,
    },
    store::{Part, RecordStore},
    value::Value,
};
use shaketable_tx::Transaction;

shaketable::planted_bugs! {
    FilterLost = "filter-lost", "what an index does not decide is not checked on the records", "a residual condition that is dropped";
    NotUnknown = "not-unknown", "a comparison of an absent field that is not true is taken for false, and its negation for true", "R7: NOT UNKNOWN is TRUE";
    EqualsNull = "equals-null", "a comparison with null is true for what is null", "R7: x = null is TRUE";
    NullsInRange = "nulls-in-range", "a range without a lower bound begins before the nulls", "R7: x < 1 is TRUE for null";
    EmptyIsFalse = "empty-is-false", "a comparison with the elements of an empty list is false instead of unknown", "R16: NOT one of them";
    EmptyLeftOut = "empty-left-out", "an index on the elements of lists is scanned for all records", "R10: an empty list has no entry";
    DuplicatesKept = "duplicates-kept", "a record is returned for each of its entries", "R-18: duplicates within a continuation";
    PlainResume = "plain-resume", "a page ends after its last row, before the duplicates that follow it", "R-18: the duplicates of a finished page come again";
    UnionInTurn = "union-in-turn", "the scans of a union are read one after another", "a record of two branches is found twice";
    BranchLost = "branch-lost", "the last branch of an or is not scanned", "a union that is too small";
    IntersectionOfOne = "intersection-of-one", "the first scan of an intersection is taken for all of them", "an intersection that is too large";
    OtherTypes = "other-types", "an index of several types is scanned for one of them, and its entries are not told apart", "R35: an index of another set of types";
    Unbuilt = "unbuilt", "an index becomes readable without being built", "R26, R35: an index that misses records";
    BoundsIncluded = "bounds-included", "ranges include their ends", "R36: the bounds of a range";
    Unreversed = "unreversed", "the order is descending for the keys of one scan, but not for those of merged or joined ones", "R15: reverse order";
    CoveredInPart = "covered-in-part", "a record is made of an entry that does not have all required columns", "a covering plan without the column";
    CoveredShifted = "covered-shifted", "the columns of the primary key are taken for those of an entry's key", "R36: a covering plan with columns mixed up";
    NullStands = "null-stands", "a field that stands for its default value when it is absent is compared as null", "R9: NOT_NULL is ignored";
    TypeCode = "type-code", "a float is looked up in an index as a double", "R36: type codes that differ from those of the entries";
    LookAhead = "look-ahead", "a page reads one row more than it returns, and the next one begins after that", "a limit that counts other rows than the position";
    PlannedEarly = "planned-early", "a query is planned before its transaction writes, and its plan is executed after that", "R20: entries of versions that the transaction itself cannot read";
    EitherTwice = "either-twice", "the records of an earlier branch come again in the next one", "an or whose branches overlap";
    ValueLost = "value-lost", "the last value of a list is not looked up", "the last element of a list";
    FirstConjunct = "first-conjunct", "of several conditions that remain the first one is checked", "several conditions";
    LastConjunct = "last-conjunct", "of several conditions that remain the last one is not checked", "the last element of a list";
    TypesCut = "types-cut", "of several types of records the first one is returned", "several types";
    UpperLost = "upper-lost", "a range with two ends has no upper one", "half of a range";
    LowerLost = "lower-lost", "a range with two ends has no lower one", "half of a range";
    PrefixEnds = "prefix-ends", "a scan of strings with a prefix ends at U+FFFF", "characters beyond the basic plane";
    ColumnLost = "column-lost", "the last of several columns that are bound to one value is not bound", "several columns";
    BranchEnds = "branch-ends", "a union ends with the first of its branches that ends", "branches of different lengths";
    IntersectionAny = "intersection-any", "an intersection is taken for a union", "an and that is an or";
    ScannedRows = "scanned-rows", "a limit of what is read counts rows", "a limit of another kind";
    LastRow = "last-row", "of more than six rows the last one is lost", "the last element of a batch";
    CutAtLimit = "cut-at-limit", "the rows of a query end after eight", "a limit that tests never reach";
    RankFromOne = "rank-from-one", "ranks are counted from one", "an index off by one";
    RankEndLost = "rank-end-lost", "the records with the ranks at the ends of a scan by rank are left out", "records with one rank at the end of a range";
    OneRank = "one-rank", "a record with several scores is taken for one with one rank: it is found for each of them, and none of them is the opposite of one", "several keys a record";
    RankAsWritten = "rank-as-written", "an index has ranks only as its expression is written, with the same nulls unique", "two expressions that mean the same";
    SkipAlike = "skip-alike", "a page leaves out records whose number begins with the digits of the last one of the page before", "a continuation that skips keys which begin with the last one";
    TieIncluded = "tie-included", "of two bounds with one value, one of which excludes it, the one that includes it is taken", "x >= 5 and x > 5";
    ColumnSkipped = "column-skipped", "an index that has another column between those of the order is taken for one in the order", "R15: IN on the first column, an order on the first and the third";
    TypesByFirst = "types-by-first", "the first of the scans that are merged says whether records of other types are among them", "an or over an index of one type and one of several";
    LowerOfAscii = "lower-of-ascii", "a function of texts changes the letters of ASCII only", "text that is not English";
    StateUnwatched = "state-unwatched", "a scan goes on in an index that its transaction has made unreadable", "a state that is checked when a cursor is opened";
    FromTheRow = "from-the-row", "a page begins with the last row of the page before it", "a continuation that is not after its row";
}

/// The plan of a query, with the bug. The query is planned with the indexes that are readable.
pub(super) fn plan<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    query: &RecordQuery,
) -> Result<RecordQueryPlan, Error> {
    let mut query = query.clone();
    if planted == Planted::RankAsWritten {
        as_written(store.meta_data(), query.filter.as_ref())?;
    }
    query.filter = query.filter.map(|filter| asked(planted, filter));
    if planted == Planted::ColumnSkipped
        && let Some(plan) = skipped(store, &query)
    {
        return Ok(plan.into());
    }
    let plan = store.plan_query(&query)?;
    let root = map(plan.root().clone(), &|step| planned(planted, store, &query, step));
    Ok(root.into())
}

/// Refuses a condition on a rank, unless an index has it with the same expression.
fn as_written(meta_data: &RecordMetaData, filter: Option<&QueryComponent>) -> Result<(), Error> {
    let columns = |of: &KeyExpression| (of.column_expressions(), of.grouping_columns());
    let is_of = |index: &Index, rank: &KeyExpression| {
        index.kind == index_types::RANK && columns(&index.expression) == columns(rank)
    };
    for rank in filter.map(ranks).unwrap_or_default() {
        if !meta_data.indexes().any(|index| is_of(index, rank)) {
            return Err(QueryError::NoRankIndex(rank.to_string()).into());
        }
    }
    Ok(())
}

/// The opposite of a comparison with one value.
fn opposite(comparison: Comparison) -> Option<Comparison> {
    Some(match comparison {
        Comparison::Equals(value) => Comparison::NotEquals(value),
        Comparison::Less(value) => Comparison::GreaterOrEqual(value),
        Comparison::GreaterOrEqual(value) => Comparison::Less(value),
        _ => return None,
    })
}

/// A condition as it is asked with the bug.
fn asked(planted: Planted, condition: QueryComponent) -> QueryComponent {
    let again = |part| asked(planted, part);
    match condition {
        QueryComponent::And(parts) => QueryComponent::And(parts.into_iter().map(again).collect()),
        QueryComponent::Or(parts) => QueryComponent::Or(parts.into_iter().map(again).collect()),
        QueryComponent::Not(inner) => match (planted, *inner) {
            (Planted::NotUnknown, inner @ QueryComponent::Compare { operand: Operand::Field(_), .. }) => {
                let QueryComponent::Compare { operand, .. } = &inner else { return inner };
                let null =
                    QueryComponent::Compare { operand: operand.clone(), comparison: Comparison::IsNull };
                QueryComponent::Or(vec![QueryComponent::Not(Box::new(inner)), null])
            }
            (
                Planted::OneRank,
                QueryComponent::Compare { operand: operand @ Operand::Rank(_), comparison },
            ) => match opposite(comparison.clone()) {
                Some(comparison) => QueryComponent::Compare { operand, comparison },
                None => QueryComponent::Not(Box::new(QueryComponent::Compare { operand, comparison })),
            },
            (_, inner) => QueryComponent::Not(Box::new(again(inner))),
        },
        QueryComponent::Matches { field, component } => {
            QueryComponent::Matches { field, component: Box::new(again(*component)) }
        }
        QueryComponent::OneMatches { field, empty, component } => {
            let component = Box::new(again(*component));
            QueryComponent::OneMatches { field, empty: of_empty(planted, empty), component }
        }
        QueryComponent::Compare { operand: Operand::OneOf { field, empty }, comparison } => {
            let operand = Operand::OneOf { field, empty: of_empty(planted, empty) };
            QueryComponent::Compare { operand, comparison }
        }
        QueryComponent::Compare { operand: Operand::Field(field), comparison }
            if planted == Planted::NullStands =>
        {
            QueryComponent::Compare { operand: Operand::Field(field.null(NullStandin::Null)), comparison }
        }
        QueryComponent::Compare { operand: operand @ Operand::Field(_), comparison } => {
            let nulls = |value: &Value| matches!(value, Element::Nil);
            let comparison = match comparison {
                Comparison::Equals(value) if planted == Planted::EqualsNull && nulls(&value) => {
                    Comparison::IsNull
                }
                other => other,
            };
            QueryComponent::Compare { operand, comparison }
        }
        other => other,
    }
}

fn of_empty(planted: Planted, empty: EmptyList) -> EmptyList {
    if planted == Planted::EmptyIsFalse { EmptyList::NoMatches } else { empty }
}

/// The plan with each step changed, those below it first.
fn map(plan: Plan, change: &dyn Fn(Plan) -> Plan) -> Plan {
    let all = |plans: Vec<Plan>| plans.into_iter().map(|plan| map(plan, change)).collect();
    let boxed = |plan: Box<Plan>| Box::new(map(*plan, change));
    change(match plan {
        Plan::Nothing | Plan::Records { .. } | Plan::Index { .. } => plan,
        Plan::InJoin { column, values, inner } => Plan::InJoin { column, values, inner: boxed(inner) },
        Plan::Union { children, order, reverse } => Plan::Union { children: all(children), order, reverse },
        Plan::Intersection { children, order, reverse } => {
            Plan::Intersection { children: all(children), order, reverse }
        }
        Plan::Either { branches } => {
            let branch = |(condition, plan)| (condition, map(plan, change));
            Plan::Either { branches: branches.into_iter().map(branch).collect() }
        }
        Plan::Distinct(inner) => Plan::Distinct(boxed(inner)),
        Plan::Load(inner) => Plan::Load(boxed(inner)),
        Plan::Partial { record_type, columns, inner } => {
            Plan::Partial { record_type, columns, inner: boxed(inner) }
        }
        Plan::Types { types, inner } => Plan::Types { types, inner: boxed(inner) },
        Plan::Filter { condition, inner } => Plan::Filter { condition, inner: boxed(inner) },
    })
}

/// A step of a plan with the bug.
fn planned<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    query: &RecordQuery,
    mut step: Plan,
) -> Plan {
    let nothing = QueryComponent::Or(Vec::new());
    match (planted, &mut step) {
        (Planted::BranchLost, Plan::Union { children, .. }) => drop(children.pop()),
        (Planted::BranchLost, Plan::Either { branches }) => drop(branches.pop()),
        (Planted::EitherTwice, Plan::Either { branches }) => {
            branches.iter_mut().for_each(|(condition, _)| condition.clone_from(&nothing));
        }
        (Planted::ValueLost, Plan::InJoin { values, .. }) => drop(values.pop()),
        (Planted::FirstConjunct, Plan::Filter { condition: QueryComponent::And(parts), .. }) => {
            parts.truncate(1);
        }
        (Planted::LastConjunct, Plan::Filter { condition: QueryComponent::And(parts), .. })
            if parts.len() > 1 =>
        {
            parts.pop();
        }
        (Planted::TypesCut, Plan::Types { types, .. }) => types.truncate(1),
        (Planted::ColumnLost, Plan::Index { bounds, .. })
            if bounds.equal.len() > 1 && bounds.range.is_none() =>
        {
            bounds.equal.pop();
        }
        (Planted::Unreversed, Plan::Union { reverse, .. }) => *reverse = false,
        (Planted::Unreversed, Plan::InJoin { values, .. }) if query.reverse => values.reverse(),
        (
            Planted::BoundsIncluded
            | Planted::NullsInRange
            | Planted::TypeCode
            | Planted::UpperLost
            | Planted::LowerLost
            | Planted::PrefixEnds
            | Planted::RankFromOne
            | Planted::RankEndLost,
            Plan::Index { bounds, .. },
        ) => change_bounds(planted, bounds),
        (Planted::CoveredShifted, Plan::Partial { columns, .. }) => shift(columns),
        (Planted::TieIncluded, Plan::Index { bounds: Bounds { range: Some((_, range)), .. }, .. }) => {
            let ties = query.filter.as_ref().map(ties).unwrap_or_default();
            for (value, inclusive) in range.low.iter_mut().chain(&mut range.high) {
                *inclusive |= ties.contains(value);
            }
        }
        _ => {}
    }
    match (planted, step) {
        (Planted::TypesByFirst, Plan::Types { inner, .. })
            if first_is_of_types(store.meta_data(), query, &inner) =>
        {
            *inner
        }
        (Planted::FilterLost, Plan::Filter { inner, .. })
        | (Planted::DuplicatesKept, Plan::Distinct(inner))
        | (Planted::OtherTypes, Plan::Types { inner, .. }) => *inner,
        (Planted::OneRank, Plan::Distinct(inner)) if matches!(*inner, Plan::Index { by_rank: true, .. }) => {
            *inner
        }
        (Planted::EmptyLeftOut, Plan::Records { bounds, reverse })
            if bounds.is_all() && query.record_types == ["Item"] && query.sort.is_none() =>
        {
            let tags = ["tags", "nums", "inner_reps"];
            match tags.into_iter().find(|name| store.is_readable(name) == Ok(true)) {
                None => Plan::Records { bounds, reverse },
                Some(index) => {
                    let index = index.to_owned();
                    let scan = Plan::Index { index, by_rank: false, bounds, skip: 0, reverse };
                    Plan::Load(Box::new(Plan::Distinct(Box::new(scan))))
                }
            }
        }
        (Planted::UnionInTurn, Plan::Union { children, .. }) => {
            Plan::Either { branches: children.into_iter().map(|child| (nothing.clone(), child)).collect() }
        }
        (Planted::IntersectionAny, Plan::Intersection { children, order, reverse }) => {
            Plan::Union { children, order, reverse }
        }
        (Planted::IntersectionOfOne, Plan::Intersection { mut children, .. }) => children.swap_remove(0),
        (Planted::CoveredInPart, Plan::Load(inner)) => in_part(store, query, inner),
        (_, step) => step,
    }
}

fn change_bounds(planted: Planted, bounds: &mut Bounds) {
    match (planted, bounds.equal.last_mut()) {
        (Planted::TypeCode, _) => {
            for (_, bound) in &mut bounds.equal {
                if let Bound::To(Element::Float(number)) = bound {
                    *bound = Bound::To(Element::Double(f64::from(*number)));
                }
            }
        }
        (Planted::RankFromOne, Some((_, Bound::To(Element::Int(rank))))) if bounds.of_ranks => {
            *rank = rank.saturating_add(1);
        }
        _ => {}
    }
    let Some((_, range)) = &mut bounds.range else { return };
    match (planted, &range.prefix, range.low.is_some(), range.high.is_some()) {
        (Planted::PrefixEnds, Some(Element::String(prefix)), ..) => {
            range.low = Some((Element::String(prefix.clone()), true));
            range.high = Some((Element::String(format!("{prefix}\u{ffff}").into()), true));
            range.prefix = None;
        }
        (Planted::UpperLost, _, true, true) => range.high = None,
        (Planted::LowerLost, _, true, true) => range.low = None,
        (Planted::RankEndLost, ..) if bounds.of_ranks => {
            let ends = range.low.iter_mut().chain(&mut range.high);
            ends.for_each(|(_, inclusive)| *inclusive = false);
        }
        (Planted::BoundsIncluded, ..) => {
            let ends = range.low.iter_mut().chain(&mut range.high);
            ends.for_each(|(_, inclusive)| *inclusive = true);
        }
        (Planted::NullsInRange, _, false, true) if !bounds.of_ranks => range.low = Some((Element::Nil, true)),
        _ => {}
    }
}

/// The records made of the entries, if some columns are required, whichever the entries have.
fn in_part<T: Transaction>(store: &RecordStore<T>, query: &RecordQuery, inner: Box<Plan>) -> Plan {
    let scan = match &*inner {
        Plan::Distinct(scan) => &**scan,
        scan => scan,
    };
    let meta_data = store.meta_data();
    let ([record_type], Some(_), Plan::Index { index, .. }) =
        (&query.record_types[..], &query.required_results, scan)
    else {
        return Plan::Load(inner);
    };
    let (Some(index), Some(found)) = (meta_data.index(index), meta_data.record_type(record_type)) else {
        return Plan::Load(inner);
    };
    let columns =
        index.expression.column_expressions().into_iter().chain(found.primary_key.column_expressions());
    let plain = |column: KeyExpression| match &column {
        KeyExpression::Field(field) if field.fan == FanType::None => Some(column),
        _ => None,
    };
    Plan::Partial { record_type: record_type.clone(), columns: columns.map(plain).collect(), inner }
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
pub(super) async fn page<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    plan: &RecordQueryPlan,
    from: Continuation,
    limits: Limits,
) -> Result<Option<Page<QueriedRecord>>, Error> {
    if let (Planted::ScannedRows, Some(scanned)) = (planted, limits.scanned) {
        return Ok(Some(plan.execute(store, from, Limits::rows(scanned))?.to_list().await?));
    }
    let Some(most) = limits.rows else { return Ok(None) };
    match planted {
        Planted::SkipAlike => {
            let begins = from != Continuation::Start;
            let mut page = plan.execute(store, from, limits)?.to_list().await?;
            if begins && page.rows.len() > 1 && page.rows[1..].iter().any(|row| is_alike(&page.rows[0], row))
            {
                let first = page.rows[0].clone();
                page.rows.retain(|row| *row == first || !is_alike(&first, row));
            }
            Ok(Some(page))
        }
        Planted::LookAhead => {
            let limits = Limits { rows: Some(most + 1), ..limits };
            let mut page = plan.execute(store, from, limits)?.to_list().await?;
            page.rows.truncate(most);
            Ok(Some(page))
        }
        // The last row comes again, unless there would be no progress.
        Planted::FromTheRow => {
            Ok(Some(counted(plan, store, from, (most, most.saturating_sub(1).max(1)), false).await?))
        }
        Planted::PlainResume if has_distinct(plan.root()) => {
            let plain = |step| if let Plan::Distinct(inner) = step { *inner } else { step };
            let plan = map(plan.root().clone(), &plain).into();
            Ok(Some(counted(&plan, store, from, (most, most), true).await?))
        }
        _ => Ok(None),
    }
}

/// Whether the number of one record begins with the digits of the other.
fn is_alike(first: &QueriedRecord, row: &QueriedRecord) -> bool {
    let number = |row: &QueriedRecord| match row.primary_key().elements().last() {
        Some(Element::Int(id)) => id.to_string(),
        _ => String::new(),
    };
    number(row) != number(first) && number(row).starts_with(&number(first))
}

/// All rows of a plan, with the bug.
pub(super) async fn whole<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    plan: &RecordQueryPlan,
    required: &[KeyExpression],
) -> Result<Vec<Row>, Error> {
    let mut rows = client::whole(store, plan, required).await?;
    match planted {
        Planted::LastRow if rows.len() > 6 => drop(rows.pop()),
        Planted::CutAtLimit => rows.truncate(8),
        Planted::BranchEnds => {
            let Some(Plan::Union { children, .. }) =
                steps(plan.root()).into_iter().find(|step| matches!(step, Plan::Union { .. }))
            else {
                return Ok(rows);
            };
            let mut ends = rows.len();
            for child in children {
                let alone = match child {
                    Plan::Index { .. } => Plan::Load(Box::new(child.clone())),
                    child => child.clone(),
                };
                let of_child = client::whole(store, &alone.into(), &[]).await?;
                let last = rows.iter().rposition(|row| of_child.iter().any(|other| other.id == row.id));
                ends = ends.min(last.map_or(0, |last| last + 1));
            }
            rows.truncate(ends);
        }
        _ => {}
    }
    Ok(rows)
}

fn has_distinct(plan: &Plan) -> bool {
    steps(plan).iter().any(|step| matches!(step, Plan::Distinct(_)))
}

/// A page of this number of rows, or of records, each once; the next page continues after the row with the
/// number `position` of them.
async fn counted<T: Transaction>(
    plan: &RecordQueryPlan,
    store: &RecordStore<T>,
    from: Continuation,
    (most, position): (usize, usize),
    once: bool,
) -> Result<Page<QueriedRecord>, Error> {
    let (mut rows, mut next): (Vec<QueriedRecord>, _) = (Vec::new(), from.clone());
    let mut cursor = plan.execute(store, from, Limits::default())?;
    while rows.len() < most {
        match cursor.next().await? {
            Next::Row(row, _) if once && rows.iter().any(|seen| seen.primary_key() == row.primary_key()) => {}
            Next::Row(row, after) => {
                rows.push(row);
                if rows.len() == position {
                    next = after;
                }
            }
            Next::Stopped(stop, continuation) => return Ok(Page { rows, stop, continuation }),
        }
    }
    Ok(Page { rows, stop: Stop::Rows, continuation: next })
}

/// Makes an index readable without building it; `false` if the bug does not change this.
pub(super) async fn unbuilt<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    name: &str,
    change: Change,
) -> Result<bool, Error> {
    let builds = matches!(change, Change::Build(_)) && store.index_state(name)? != IndexState::Readable;
    if planted == Planted::Unbuilt && builds {
        store.begin_index_builds(&[name]).await?;
        store.context().transaction()?.clear(&store.keyspace().part(Part::States).pack(&(name,)));
    }
    Ok(planted == Planted::Unbuilt && builds)
}
