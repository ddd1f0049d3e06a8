//! Random conditions and queries. The values are few, so that conditions hold for some records.

use super::{
    records::value,
    schema::{COMMON, FieldOf, ITEM, Kind, PART, TYPES},
};
use foundationdb_tuple::Element;
use shaketable_record::{
    expression::{FanType, KeyExpression, NullStandin, concat, field, function},
    metadata::{Index, RecordMetaData},
    query::{Comparison, EmptyList, Operand, Query, QueryComponent, QueryElements, RecordQuery},
    value::{IntoValue, Value},
    version::RecordVersion,
};
use shaketable_sim::seed::Stream;
use shaketable_tx::nesting::MAX_DEPTH;
use std::{collections::BTreeSet, sync::Arc};

/// Fields that have an index of their own.
const ALONE: [&str; 8] = ["num", "big", "name", "score", "ratio", "tags", "nums", "token"];

/// What queries are made of.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a> {
    /// The meta-data.
    pub meta_data: &'a RecordMetaData,
    /// Versions that records have.
    pub versions: &'a [RecordVersion],
}

impl Maker<'_> {
    /// A query that fits the schema. Perhaps no index has its order.
    pub fn query(&self, rng: &mut Stream) -> RecordQuery {
        let of_items = rng.chance(0.75);
        let mut query = match of_items {
            true => RecordQuery::of("Item"),
            false => match rng.below(4) {
                0 => RecordQuery::all(),
                1 => RecordQuery::of("Other"),
                2 => RecordQuery::of_types(["Other", "More"]),
                _ => RecordQuery::of_types(["Other", "Item"]),
            },
        };
        let fields = if of_items { ITEM } else { COMMON };
        if of_items && rng.chance(0.6) {
            query = self.by_index(query, rng);
        } else {
            if rng.chance(0.9) {
                query = query.filter(self.condition(fields, of_items, 3, rng));
            }
            if rng.chance(0.5) {
                query = query.sort(self.sort(fields, of_items, rng));
            }
        }
        if rng.chance(0.3) {
            query = query.reverse();
        }
        if rng.chance(0.2) {
            query = query.remove_duplicates(false);
        }
        if of_items && rng.chance(0.3) {
            query = query.required_results(self.required(rng));
        }
        query
    }

    /// With conditions on the first columns of one or two indexes, perhaps in the order of the other columns.
    fn by_index(&self, query: RecordQuery, rng: &mut Stream) -> RecordQuery {
        let kind = rng.below(24);
        if kind < 6 {
            return self.by_any_columns(query, rng);
        }
        if kind < 13 {
            // Each of them has an index, and what they find can be intersected or merged. That of names is on
            // more types than the others.
            let count = rng.range(2..4) as usize;
            let mut names: Vec<_> = (0..count).map(|_| *rng.pick(&ALONE)).collect();
            if rng.chance(0.7) {
                names[1 + rng.index(count - 1)] = "name";
            }
            let some: Vec<_> =
                names.into_iter().filter_map(|name| bound_to(&field(name).into(), true, rng)).collect();
            return query.filter(if rng.chance(0.3) { Query::and(some) } else { Query::or(some) });
        }
        if kind < 17 {
            let one = *rng.pick(&ALONE);
            return query.filter(around(&field(one).into(), rng));
        }
        if kind < 19 {
            return query.filter(of_rank(rng));
        }
        if kind < 21 {
            let begins = |rng: &mut Stream| Comparison::StartsWith((*rng.pick(&["", "a", "b"])).into_value());
            let (operand, comparison) = match rng.below(3) {
                0 => {
                    let name = *rng.pick(&["lower", "words"]);
                    (Operand::Key(function(name, "name")), comparison(Kind::Text, rng))
                }
                _ => (Operand::Field(field("name")), begins(rng)),
            };
            return query.filter(QueryComponent::Compare { operand, comparison });
        }
        let indexes: Vec<_> = self.meta_data.indexes().collect();
        let columns = rng.pick(&indexes).expression.column_expressions();
        let query = match rng.chance(0.4) {
            true => query.required_results(columns.iter().filter(|column| is_plain(column)).cloned()),
            false => query,
        };
        let bound = rng.index(columns.len() + 1);
        let (first, rest) = columns.split_at(bound);
        let mut parts: Vec<_> = first.iter().filter_map(|column| bound_to(column, false, rng)).collect();
        if rng.chance(0.4) {
            let other = rng.pick(&indexes).expression.column_expressions();
            parts.extend(other.first().and_then(|column| bound_to(column, false, rng)));
        }
        let query = if parts.is_empty() { query } else { query.filter(Query::and(parts)) };
        match rest {
            [] => query.sort(self.primary_key()),
            rest if rng.chance(0.6) => query.sort(concat(rest.iter().cloned())),
            _ => query,
        }
    }

    /// The first column of an index has one of a few values, or any of its columns are bound, and any are in
    /// the order: also those with another one between them.
    fn by_any_columns(&self, query: RecordQuery, rng: &mut Stream) -> RecordQuery {
        let listed = rng.chance(0.8);
        // The order leaves out the column after the first one, and has those that follow.
        let gap = listed && rng.chance(0.5);
        let columns = |index: &Arc<Index>| index.expression.column_expressions();
        let fits = |columns: &Vec<KeyExpression>| !listed || columns.len() > 1 && is_plain(&columns[0]);
        let all: Vec<_> = self.meta_data.indexes().map(columns).filter(fits).collect();
        let (mut parts, mut order) = (Vec::new(), Vec::new());
        let last = self.primary_key().column_expressions();
        for (place, column) in rng.pick(&all).iter().chain(&last).enumerate() {
            if place == 0 && listed {
                parts.extend(one_of(column, rng));
                order.push(column.clone());
                continue;
            }
            let (bound, sorted) = match gap {
                true => (false, place > 1),
                false => (rng.chance(0.2), rng.chance(if place == 1 { 0.3 } else { 0.7 })),
            };
            parts.extend(bound.then(|| bound_to(column, false, rng)).flatten());
            order.extend(sorted.then(|| column.clone()));
        }
        let query = if parts.is_empty() { query } else { query.filter(Query::and(parts)) };
        if order.is_empty() { query } else { query.sort(concat(order)) }
    }

    fn primary_key(&self) -> KeyExpression {
        self.meta_data.record_type("Item").expect("the type").primary_key.clone()
    }

    /// The first columns of an index or of the primary key, or some fields.
    fn sort(&self, fields: &[FieldOf], of_items: bool, rng: &mut Stream) -> KeyExpression {
        let on_types = |index: &str| {
            of_items || ["name", "name_num", "num_of_all", "number", "version"].contains(&index)
        };
        let indexes: Vec<_> = self.meta_data.indexes().filter(|index| on_types(&index.name)).collect();
        let whole = match rng.below(12) {
            0 | 11 => field("id").into(),
            1 => self.primary_key(),
            2 if rng.chance(0.5) => {
                let scalars: Vec<_> =
                    fields.iter().filter(|one| !one.repeated && one.kind.fields().is_none()).collect();
                concat([rng.pick(&scalars).name, rng.pick(&scalars).name])
            }
            _ => rng.pick(&indexes).expression.clone(),
        };
        match rng.below(4) {
            // An expression cut after some columns no longer says which of them are of one element.
            0 => {
                let columns = whole.column_expressions();
                let kept = 1 + rng.index(columns.len());
                concat(columns.into_iter().take(kept))
            }
            1 => match &whole {
                KeyExpression::Concat(parts) => concat(parts.iter().skip(1).cloned()),
                _ => whole,
            },
            _ => whole,
        }
    }

    fn required(&self, rng: &mut Stream) -> Vec<KeyExpression> {
        let some = [
            field("num").into(),
            field("name").into(),
            field("id").into(),
            field("big").into(),
            field("blob").into(),
            field("score").into(),
            field("ratio").into(),
            field("kind").into(),
            field("inner").nest("a"),
            field("token").into(),
            field("price").into(),
            field("alias").into(),
            KeyExpression::Version,
        ];
        (0..1 + rng.below(2)).map(|_| rng.pick(&some).clone()).collect()
    }

    fn condition(&self, fields: &[FieldOf], of_items: bool, depth: u64, rng: &mut Stream) -> QueryComponent {
        let inner = |rng: &mut Stream| self.condition(fields, of_items, depth - 1, rng);
        match if depth == 0 { 0 } else { rng.below(10) } {
            1..=3 => Query::and((0..2 + rng.below(2)).map(|_| inner(rng)).collect::<Vec<_>>()),
            4 | 5 => Query::or((0..2 + rng.below(2)).map(|_| inner(rng)).collect::<Vec<_>>()),
            6 => Query::not(inner(rng)),
            7 => {
                // Two conditions on one field, which are easily taken for one.
                let of = [pick(fields, rng)];
                if rng.chance(0.3) && of[0].kind.fields().is_none() {
                    return around(&field(of[0].name).into(), rng);
                }
                let two = [one_field(&of, rng), one_field(&of, rng)];
                if rng.chance(0.6) { Query::and(two) } else { Query::or(two) }
            }
            _ => self.leaf(fields, of_items, rng),
        }
    }

    fn leaf(&self, fields: &[FieldOf], of_items: bool, rng: &mut Stream) -> QueryComponent {
        match rng.below(24) {
            0 if !self.versions.is_empty() => {
                let version = rng.pick(self.versions).clone();
                let pick = rng.below(3);
                let one = Query::version();
                match pick {
                    0 => one.greater_than(version),
                    1 => one.less_or_equal(version),
                    _ => one.equals(version),
                }
            }
            1 => Query::record_type().equals(*rng.pick(&TYPES)),
            2 => {
                let comparison = comparison(Kind::Text, rng);
                QueryComponent::Compare { operand: Operand::Key(function("lower", "name")), comparison }
            }
            3 if of_items => of_rank(rng),
            4 => {
                let one = Query::field("id");
                let id = rng.below(20) as i64;
                if rng.chance(0.5) { one.equals(id) } else { one.greater_than(id) }
            }
            5 => QueryComponent::Compare {
                operand: Operand::Field(field("num").not_null()),
                comparison: comparison(Kind::Int, rng),
            },
            _ => one_field(fields, rng),
        }
    }
}

/// A condition on a rank, of one score or of several ones. Whether a null is unique does not matter to a
/// rank, so that it need not be written as in the index.
fn of_rank(rng: &mut Stream) -> QueryComponent {
    let null = *rng.pick(&[NullStandin::Null, NullStandin::NullUnique]);
    let score = field("big").null(null);
    let expression: KeyExpression = match rng.below(4) {
        0 => score.ungrouped(),
        1 => score.group_by("kind"),
        _ => field("nums").fan_out().ungrouped(),
    };
    let rank = Query::rank(expression);
    let number = rng.below(6) as i64;
    let condition = match rng.below(6) {
        0 => rank.equals(number),
        4 => rank.less_or_equal(number),
        5 => rank.greater_than(number),
        1 => rank.less_than(number),
        2 => rank.greater_or_equal(number),
        _ => rank.is_in([number, number + 2]),
    };
    if rng.chance(0.3) { Query::not(condition) } else { condition }
}

/// A column of an index of items has one of a few values.
fn one_of(column: &KeyExpression, rng: &mut Stream) -> Option<QueryComponent> {
    let value = |condition: &QueryComponent| match condition {
        QueryComponent::Compare { comparison: Comparison::Equals(value), .. } => Some(value.clone()),
        _ => None,
    };
    let all: Vec<_> = (0..4).filter_map(|_| bound_to(column, true, rng)).collect();
    let values = all.iter().filter_map(value).collect();
    match all.into_iter().next()? {
        QueryComponent::Compare { operand, .. } => {
            Some(QueryComponent::Compare { operand, comparison: Comparison::In(values) })
        }
        _ => None,
    }
}

/// Two comparisons of a field with one value, of which what the one allows the other may not, or with two
/// values, which are often the ends of a range.
fn around(column: &KeyExpression, rng: &mut Stream) -> QueryComponent {
    let below: [fn(_) -> _; 2] = [Comparison::Less, Comparison::LessOrEqual];
    let above: [fn(_) -> _; 2] = [Comparison::Greater, Comparison::GreaterOrEqual];
    let is_tie = rng.chance(0.5);
    let of = if rng.chance(0.5) { [below, above] } else { [above, below] };
    let mut both = match is_tie && rng.chance(0.7) {
        true => of[0],
        false => of.map(|of| of[rng.index(2)]),
    };
    if rng.chance(0.5) {
        both.reverse();
    }
    let mut drawn = || match bound_to(column, true, rng) {
        Some(QueryComponent::Compare { operand, comparison: Comparison::Equals(value) }) => {
            Some((operand, value))
        }
        _ => None,
    };
    let (Some((operand, one)), Some((_, other))) = (drawn(), drawn()) else { return Query::and([]) };
    let other = if is_tie { one.clone() } else { other };
    let with = |(comparison, value): (fn(_) -> _, Value)| QueryComponent::Compare {
        operand: operand.clone(),
        comparison: comparison(value),
    };
    Query::and([(both[0], one), (both[1], other)].map(with))
}

/// Whether a column is a field that is not repeated.
fn is_plain(column: &KeyExpression) -> bool {
    matches!(column, KeyExpression::Field(field) if field.fan == FanType::None)
}

/// A condition on a column of an index of items: one value or none, if `one` is set, or perhaps one of
/// several, or any other.
fn bound_to(column: &KeyExpression, one: bool, rng: &mut Stream) -> Option<QueryComponent> {
    let KeyExpression::Field(named) = column else { return None };
    let kind = ITEM.iter().find(|field| field.name == named.name && field.kind.fields().is_none())?;
    let mut value = || value(kind.kind, rng);
    let values = [value(), value(), value()];
    let comparison = match if one { 0 } else { rng.below(5) } {
        0 if one && !kind.repeated && rng.chance(0.3) => Comparison::IsNull,
        0 | 1 => Comparison::Equals(values[0].clone()),
        2 | 3 => Comparison::In(values.to_vec()),
        _ => comparison(kind.kind, rng),
    };
    let operand = match kind.repeated {
        true => Operand::OneOf { field: field(named.name.clone()), empty: EmptyList::Unknown },
        false => Operand::Field(named.clone()),
    };
    Some(QueryComponent::Compare { operand, comparison })
}

/// One of the fields that a condition can be on: not a map.
fn pick(fields: &[FieldOf], rng: &mut Stream) -> FieldOf {
    let fields: Vec<_> = fields.iter().filter(|one| one.kind != Kind::Entry).collect();
    **rng.pick(&fields)
}

/// A condition on one field.
fn one_field(fields: &[FieldOf], rng: &mut Stream) -> QueryComponent {
    let one = pick(fields, rng);
    let empty = if rng.chance(0.5) { EmptyList::Unknown } else { EmptyList::NoMatches };
    match (one.kind, one.repeated) {
        (Kind::Part, false) => Query::field(one.name).matches(of_part(rng)),
        (Kind::Part, true) => Query::field(one.name).one_of_them_with(empty).matches(of_part(rng)),
        (kind, repeated) => {
            let operand = match repeated {
                true => Operand::OneOf { field: field(one.name), empty },
                false => Operand::Field(field(one.name)),
            };
            let one = QueryComponent::Compare { operand, comparison: comparison(kind, rng) };
            // What an empty list is matters to a negation.
            if repeated && rng.chance(0.2) { Query::not(one) } else { one }
        }
    }
}

/// A condition on a part.
fn of_part(rng: &mut Stream) -> QueryComponent {
    match rng.below(6) {
        0 | 1 => Query::and([one_field(PART, rng), one_field(PART, rng)]),
        2 => Query::or([one_field(PART, rng), one_field(PART, rng)]),
        3 => Query::not(one_field(PART, rng)),
        _ => one_field(PART, rng),
    }
}

fn comparison(kind: Kind, rng: &mut Stream) -> Comparison {
    let mut one = || match rng.chance(0.1) {
        true => None::<i64>.into_value(),
        false => value(kind, rng),
    };
    let (first, second) = (one(), one());
    match rng.below(15) {
        0..=4 => Comparison::Equals(first),
        5 => Comparison::NotEquals(first),
        6 => Comparison::Less(first),
        7 => Comparison::LessOrEqual(first),
        8 => Comparison::Greater(first),
        9 => Comparison::GreaterOrEqual(first),
        10 => Comparison::IsNull,
        11 => Comparison::NotNull,
        12 if matches!(kind, Kind::Text | Kind::WrappedText | Kind::Bytes) => Comparison::StartsWith(first),
        _ => Comparison::In(vec![first, second, value(kind, rng)]),
    }
}

/// The only values that a condition allows in some fields, if that is all that it says.
pub(super) fn pinned(condition: &QueryComponent) -> Option<Vec<(&str, Value)>> {
    fn one(part: &QueryComponent) -> Option<(&str, Value)> {
        match part {
            QueryComponent::Compare {
                operand: Operand::Field(field),
                comparison: Comparison::Equals(value),
            } if field.null == NullStandin::Null && *value != Element::Nil => {
                Some((&field.name, value.clone()))
            }
            _ => None,
        }
    }
    let values: Vec<_> = match condition {
        QueryComponent::And(parts) => parts.iter().map(one).collect::<Option<_>>()?,
        condition => vec![one(condition)?],
    };
    let names: BTreeSet<&str> = values.iter().map(|(name, _)| *name).collect();
    (!values.is_empty() && names.len() == values.len()).then_some(values)
}

/// The values that a condition allows, each with the index of its field, of which one is enough to find what
/// the condition finds; `None` if they are not known or some have no such index.
pub(super) fn bounded(condition: &QueryComponent) -> Option<Vec<(&str, Value)>> {
    match condition {
        QueryComponent::And(parts) => {
            let is_alone = |part: &QueryComponent| match part {
                QueryComponent::Compare { operand, .. } => alone(operand).is_some(),
                _ => false,
            };
            if !parts.iter().all(is_alone) {
                return None;
            }
            let values: Vec<_> = parts.iter().filter_map(bounded).flatten().collect();
            (!values.is_empty()).then_some(values)
        }
        QueryComponent::Or(parts) => {
            let values: Option<Vec<_>> = parts.iter().map(bounded).collect();
            values.map(|values| values.concat())
        }
        QueryComponent::Compare { operand, comparison } => {
            let index = alone(operand)?;
            let values = match comparison {
                Comparison::Equals(value) => vec![value.clone()],
                Comparison::In(values) => values.clone(),
                Comparison::IsNull if matches!(operand, Operand::Field(_)) => vec![Element::Nil],
                _ => return None,
            };
            Some(values.into_iter().map(|value| (index, value)).collect())
        }
        _ => None,
    }
}

/// The name of a field that has an index of its own.
fn alone(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Field(field) | Operand::OneOf { field, .. }
            if field.null == NullStandin::Null && ALONE.contains(&&*field.name) =>
        {
            Some(&field.name)
        }
        _ => None,
    }
}

/// The query with one thing changed.
pub fn other(query: &RecordQuery, rng: &mut Stream) -> RecordQuery {
    let mut other = query.clone();
    match (rng.below(8), &mut other.filter) {
        (0, _) => other.reverse = !other.reverse,
        (1, _) => other.remove_duplicates = !other.remove_duplicates,
        (2, _) => other.sort = None,
        (3, _) => other.required_results = None,
        (4, _) if query.record_types.len() != 1 => other.record_types = vec!["Other".into()],
        (5, filter @ Some(_)) => *filter = None,
        (6, Some(filter)) => *filter = Query::not(filter.clone()),
        (_, Some(filter)) => {
            let count = comparisons(filter).len();
            if count > 0 {
                let place = rng.index(count);
                change(comparisons(filter).swap_remove(place), rng);
            }
        }
        (_, None) => other.filter = Some(Query::field("num").equals(1)),
    }
    other
}

/// The comparisons of a condition.
fn comparisons(condition: &mut QueryComponent) -> Vec<&mut Comparison> {
    match condition {
        QueryComponent::And(parts) | QueryComponent::Or(parts) => {
            parts.iter_mut().flat_map(comparisons).collect()
        }
        QueryComponent::Not(inner)
        | QueryComponent::Matches { component: inner, .. }
        | QueryComponent::OneMatches { component: inner, .. } => comparisons(inner),
        QueryComponent::Compare { comparison, .. } => vec![comparison],
    }
}

/// Compares in another way, or with one value more or less.
fn change(comparison: &mut Comparison, rng: &mut Stream) {
    *comparison = match std::mem::replace(comparison, Comparison::IsNull) {
        Comparison::Less(value) => Comparison::LessOrEqual(value),
        Comparison::LessOrEqual(value) => Comparison::Less(value),
        Comparison::Greater(value) => Comparison::GreaterOrEqual(value),
        Comparison::GreaterOrEqual(value) => Comparison::Greater(value),
        Comparison::Equals(value) if rng.chance(0.5) => Comparison::In(vec![value, None::<i64>.into_value()]),
        Comparison::Equals(value) => Comparison::NotEquals(value),
        Comparison::NotEquals(value) | Comparison::StartsWith(value) => Comparison::Equals(value),
        Comparison::In(mut values) if values.len() > 1 => {
            values.pop();
            Comparison::In(values)
        }
        Comparison::In(_) | Comparison::NotNull => Comparison::IsNull,
        Comparison::IsNull => Comparison::NotNull,
    };
}

/// The query with one thing that does not fit the meta-data: in its condition, its order, its types or what
/// it asks for. Indexes do not matter to it.
pub fn misfit(query: &RecordQuery, rng: &mut Stream) -> RecordQuery {
    let mut query = RecordQuery { sort: None, ..query.clone() };
    match rng.below(12) {
        0 => query.record_types.push("Nothing".into()),
        1 => query.sort = Some(concat([field("num"), field("nothing")])),
        2 => query.required_results = Some(vec![field("num").into(), field("name").nest("a")]),
        3 => {
            let deep = (0..MAX_DEPTH).fold(Query::field("num").is_null(), |inner, _| Query::not(inner));
            query.filter = Some(deep);
        }
        _ => {
            let of_items = query.record_types == ["Item"];
            let wrong = match of_items && rng.chance(0.6) {
                true => misfit_of_items(rng),
                false => misfit_of_all(rng),
            };
            let right = query.filter.take().unwrap_or_else(|| Query::field("num").equals(1));
            query.filter = Some(match rng.below(3) {
                0 => Query::and([right, wrong]),
                1 => Query::or([right, Query::not(wrong)]),
                _ => wrong,
            });
        }
    }
    query
}

/// A condition that fits no type of records.
fn misfit_of_all(rng: &mut Stream) -> QueryComponent {
    let (num, name) = (|| Query::field("num"), || Query::field("name"));
    let (any, version) = (|| Query::field("nothing").is_null(), RecordVersion::incomplete(1));
    match rng.below(15) {
        0 => num().equals("1"),
        1 => name().is_in([Element::String("a".into()), Element::Int(1)]),
        2 => num().less_than(1.5),
        3 => name().greater_than(vec![97u8]),
        4 => num().starts_with("1"),
        5 => any(),
        6 => num().one_of_them().equals(1),
        7 => num().matches(any()),
        8 => Query::record_type().equals("Nothing"),
        9 => Query::record_type().less_than("Other"),
        10 => Query::record_type().is_in(["Other", "Nothing"]),
        11 => Query::version().equals(version.into_value()),
        12 => Query::key(concat(["num", "name"])).equals(1),
        13 => Query::rank(field("nothing").ungrouped()).equals(1),
        _ => Query::key(field("name")).equals(1),
    }
}

/// A condition that does not fit items.
fn misfit_of_items(rng: &mut Stream) -> QueryComponent {
    let in_part = |condition| Query::field("inner").matches(condition);
    let any = || Query::field("num").is_null();
    let is_one = |of: QueryElements| of.equals(1);
    match rng.below(14) {
        0 => Query::field("tags").equals("a"),
        1 => Query::field("inner").is_null(),
        2 => is_one(Query::field("parts").one_of_them()),
        3 => Query::field("parts").matches(Query::field("a").equals(1)),
        4 => Query::field("inner").one_of_them().matches(Query::field("a").equals(1)),
        5 => Query::field("token").matches(any()),
        6 => in_part(Query::field("s").equals(1)),
        7 => in_part(any()),
        8 => in_part(Query::rank(field("big").ungrouped()).equals(1)),
        9 => in_part(Query::record_type().equals("Item")),
        10 => Query::field("score").equals(1),
        11 => Query::field("ratio").less_or_equal(1.5),
        12 => is_one(Query::field("tags").one_of_them()),
        _ => in_part(Query::and([Query::field("a").equals(1), Query::version().not_null()])),
    }
}
