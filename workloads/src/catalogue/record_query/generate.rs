//! Random records, conditions and queries. The values are few, so that conditions hold for some records.

use super::{
    model::{Fields, Record, Slot},
    schema::{COMMON, FieldOf, ITEM, Kind, PART, fields_of},
};
use shaketable_record::{
    expression::{KeyExpression, concat, field, function},
    metadata::RecordMetaData,
    query::{Comparison, EmptyList, Operand, Query, QueryComponent, RecordQuery},
    value::{IntoValue, Value},
    version::RecordVersion,
};
use shaketable_sim::seed::Stream;

const TEXTS: [&str; 7] = ["", "a", "A", "ab", "aB", "b", "ba"];
const BYTES: [&[u8]; 6] = [&[], &[0], &[1], &[1, 255], &[255], &[255, 255]];
const INTS: [i64; 7] = [-300, -1, 0, 1, 2, 3, 255];

/// A value of a field of this type.
pub fn value(kind: Kind, rng: &mut Stream) -> Value {
    match kind {
        Kind::Int => (*rng.pick(&INTS)).into_value(),
        Kind::Enum => (rng.below(3) as i64).into_value(),
        Kind::Bool => rng.chance(0.5).into_value(),
        Kind::Text => (*rng.pick(&TEXTS)).into_value(),
        Kind::Bytes => (*rng.pick(&BYTES)).into_value(),
        Kind::Double => (*rng.pick(&[-1.5, 0.0, 0.5, 2.0])).into_value(),
        Kind::Float => (*rng.pick(&[-1.5f32, 0.0, 0.5, 2.0])).into_value(),
        Kind::Part => panic!("a message is no value"),
    }
}

fn is_default(value: &Value) -> bool {
    let defaults: [Value; 6] = [
        0.into_value(),
        "".into_value(),
        false.into_value(),
        (&[] as &[u8]).into_value(),
        0.0.into_value(),
        0.0f32.into_value(),
    ];
    defaults.contains(value)
}

fn fields(of: &[FieldOf], presence: bool, rng: &mut Stream) -> Fields {
    let mut fields = Fields::new();
    for FieldOf { name, kind, repeated } in of {
        if rng.chance(0.25) {
            continue;
        }
        let count = rng.below(4);
        let slot = match (kind, repeated) {
            (Kind::Part, false) => Slot::Part(self::fields(PART, presence, rng)),
            (Kind::Part, true) => {
                Slot::Parts((0..count).map(|_| self::fields(PART, presence, rng)).collect())
            }
            (kind, true) => Slot::Many((0..count).map(|_| value(*kind, rng)).collect()),
            (kind, false) => match value(*kind, rng) {
                value if !presence && is_default(&value) => continue,
                value => Slot::One(value),
            },
        };
        // A list without elements is not present.
        let is_empty = match &slot {
            Slot::Many(values) => values.is_empty(),
            Slot::Parts(parts) => parts.is_empty(),
            Slot::One(_) | Slot::Part(_) => false,
        };
        if !is_empty {
            fields.insert(name, slot);
        }
    }
    fields
}

/// A record with this number.
pub fn record(id: i64, presence: bool, rng: &mut Stream) -> Record {
    let record_type = if rng.chance(0.75) { "Item" } else { "Other" };
    Record { id, record_type, fields: fields(fields_of(record_type), presence, rng), version: None }
}

/// What queries are made of.
pub struct Maker<'a> {
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
            false => match rng.below(3) {
                0 => RecordQuery::all(),
                1 => RecordQuery::of("Other"),
                _ => RecordQuery::of_types(["Other", "Item"]),
            },
        };
        let fields = if of_items { ITEM } else { COMMON };
        if rng.chance(0.9) {
            query = query.filter(self.condition(fields, of_items, 3, rng));
        }
        if rng.chance(0.5) {
            query = query.sort(self.sort(fields, of_items, rng));
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

    /// The first columns of an index or of the primary key, or some fields.
    fn sort(&self, fields: &[FieldOf], of_items: bool, rng: &mut Stream) -> KeyExpression {
        let on_types =
            |index: &str| of_items || ["name", "name_num", "num_of_all", "version"].contains(&index);
        let indexes: Vec<_> = self.meta_data.indexes().filter(|index| on_types(&index.name)).collect();
        let whole = match rng.below(12) {
            0 | 11 => field("id").into(),
            1 => self.meta_data.record_type("Item").expect("the type").primary_key.clone(),
            2 if rng.chance(0.5) => {
                let scalars: Vec<_> =
                    fields.iter().filter(|one| !one.repeated && one.kind != Kind::Part).collect();
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
                let field = [*rng.pick(fields)];
                let two = [one_field(&field, rng), one_field(&field, rng)];
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
            1 => Query::record_type().equals(*rng.pick(&["Item", "Other"])),
            2 => {
                let comparison = comparison(Kind::Text, rng);
                QueryComponent::Compare { operand: Operand::Key(function("lower", "name")), comparison }
            }
            3 if of_items => {
                let expression: KeyExpression = match rng.chance(0.5) {
                    true => field("big").into(),
                    false => field("big").group_by("kind"),
                };
                let rank = Query::rank(expression);
                let number = rng.below(6) as i64;
                match rng.below(4) {
                    0 => rank.equals(number),
                    1 => rank.less_than(number),
                    2 => rank.greater_or_equal(number),
                    _ => rank.is_in([number, number + 2]),
                }
            }
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

/// A condition on one field.
fn one_field(fields: &[FieldOf], rng: &mut Stream) -> QueryComponent {
    let one = *rng.pick(fields);
    let empty = if rng.chance(0.5) { EmptyList::Unknown } else { EmptyList::NoMatches };
    match (one.kind, one.repeated) {
        (Kind::Part, false) => Query::field(one.name).matches(of_part(rng)),
        (Kind::Part, true) => Query::field(one.name).one_of_them_with(empty).matches(of_part(rng)),
        (kind, repeated) => {
            let operand = match repeated {
                true => Operand::OneOf { field: field(one.name), empty },
                false => Operand::Field(field(one.name)),
            };
            QueryComponent::Compare { operand, comparison: comparison(kind, rng) }
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
    let mut one = || match rng.chance(0.04) {
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
        12 if matches!(kind, Kind::Text | Kind::Bytes) => Comparison::StartsWith(first),
        _ => Comparison::In(vec![first, second, value(kind, rng)]),
    }
}
