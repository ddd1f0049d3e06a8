//! Plans of random queries, executed on lists by the model instead of a store: fast enough for many.

use foundationdb_tuple::Subspace;
use shaketable_record::{
    expression::KeyExpression,
    metadata::{Index, RecordMetaData, index_types},
    query::{Plan, QueryError, RecordQuery, plan_query},
    value::{Tuple, Value},
    version::RecordVersion,
};
use shaketable_sim::seed::{Seed, Stream};
use shaketable_workloads_records::record_query::{
    Expected,
    generate::Maker,
    model::{Model, Record},
    name_of,
    records::record,
    schema::schemas,
    steps,
};
use std::collections::{BTreeMap, BTreeSet};

/// Records in lists, as a store would have them.
struct Lists<'a> {
    model: Model<'a>,
    meta_data: &'a RecordMetaData,
}

/// A row: its place in the order of its scan, and the position of the record.
type Row = (Tuple, usize);

impl Lists<'_> {
    /// The entries of an index: the key, the primary key, and the position of the record.
    fn entries(&self, index: &Index) -> Vec<(Tuple, Tuple, usize)> {
        let mut entries = Vec::new();
        for (i, record) in self.model.records.iter().enumerate() {
            if self.meta_data.is_index_of(index, record.record_type) {
                let keys = self.model.keys(&index.expression, Some(&record.fields), record);
                let primary_key = self.model.primary_key(record);
                entries.extend(keys.into_iter().map(|key| (Tuple::from_iter(key), primary_key.clone(), i)));
            }
        }
        entries.sort();
        entries.dedup();
        entries
    }

    fn rows(&self, plan: &Plan, each: Option<&Value>) -> Vec<Row> {
        let reversed = |mut rows: Vec<Row>, reverse: bool| {
            if reverse {
                rows.reverse();
            }
            rows
        };
        match plan {
            Plan::Nothing => Vec::new(),
            Plan::Records { bounds, reverse } => {
                let keys = self.model.records.iter().map(|record| self.model.primary_key(record));
                let mut rows: Vec<Row> = keys.zip(0..).collect();
                rows.sort();
                rows.retain(|(key, _)| has(bounds.tuples(each), key));
                reversed(rows, *reverse)
            }
            Plan::Index { index, by_rank, bounds, skip, reverse } => {
                let index = self.meta_data.index(index).expect("an index");
                let mut rows = Vec::new();
                for (key, primary_key, i) in self.entries(index) {
                    let bounded = match by_rank {
                        false => key.followed_by(&primary_key),
                        true => {
                            let rank = self.model.rank(&index.expression, &key);
                            key.split_at(index.expression.grouping_columns()).0.followed_by(&rank.into())
                        }
                    };
                    if has(bounds.tuples(each), &bounded) {
                        rows.push((key.split_at(*skip).1.followed_by(&primary_key), i));
                    }
                }
                reversed(rows, *reverse)
            }
            Plan::InJoin { values, inner, .. } => {
                values.iter().flat_map(|value| self.rows(inner, Some(value))).collect()
            }
            Plan::Union { children, reverse, .. } => {
                let all: BTreeSet<Row> =
                    children.iter().flat_map(|child| self.ordered(child, *reverse)).collect();
                reversed(all.into_iter().collect(), *reverse)
            }
            Plan::Intersection { children, reverse, .. } => {
                let all: Vec<_> = children.iter().map(|child| self.ordered(child, *reverse)).collect();
                let mut rows = all[0].clone();
                rows.retain(|row| all.iter().all(|rows| rows.contains(row)));
                rows
            }
            Plan::Either { branches } => {
                let mut rows = Vec::new();
                for (i, (_, plan)) in branches.iter().enumerate() {
                    let earlier = |row: &Row| {
                        let record = &self.model.records[row.1];
                        branches[..i]
                            .iter()
                            .any(|(condition, _)| self.model.holds(condition, record) == Some(true))
                    };
                    rows.extend(self.rows(plan, each).into_iter().filter(|row| !earlier(row)));
                }
                rows
            }
            Plan::Distinct(inner) => {
                let mut seen = BTreeSet::new();
                let mut rows = self.rows(inner, each);
                rows.retain(|(_, record)| seen.insert(*record));
                rows
            }
            Plan::Load(inner) | Plan::Partial { inner, .. } => self.rows(inner, each),
            Plan::Types { types, inner } => {
                let mut rows = self.rows(inner, each);
                rows.retain(|(_, i)| types.iter().any(|name| name == self.model.records[*i].record_type));
                rows
            }
            Plan::Filter { condition, inner } => {
                let mut rows = self.rows(inner, each);
                rows.retain(|(_, i)| self.model.holds(condition, &self.model.records[*i]) == Some(true));
                rows
            }
        }
    }

    /// The rows of a step that is merged with others: strictly ordered.
    fn ordered(&self, plan: &Plan, reverse: bool) -> Vec<Row> {
        let rows = self.rows(plan, None);
        let ordered = rows.windows(2).all(|pair| match reverse {
            true => pair[0].0 > pair[1].0,
            false => pair[0].0 < pair[1].0,
        });
        assert!(ordered, "rows that are merged are strictly ordered: {rows:?}");
        rows
    }
}

fn has(range: Option<shaketable_record::cursor::TupleRange>, key: &Tuple) -> bool {
    let Some(range) = range else { return false };
    let (begin, end) = range.keys(&Subspace::all());
    let key = key.pack();
    begin <= key && key < end
}

/// The indexes that a plan may use: none, some or all.
pub fn chosen(meta_data: &RecordMetaData, rng: &mut Stream) -> BTreeSet<String> {
    let share = *rng.pick(&[0.0, 0.3, 0.6, 1.0]);
    meta_data.indexes().filter(|_| rng.chance(share)).map(|index| index.name.clone()).collect()
}

#[test]
fn plans_find_what_the_model_finds() {
    const ROUNDS: u64 = 60;
    const QUERIES: usize = 400;
    let (mut seen, mut rows, mut refused) = (BTreeMap::<_, usize>::new(), 0, 0);
    for round in 0..ROUNDS {
        let mut rng = Seed(round).stream("queries");
        let schema = rng.pick(schemas());
        let mut records: Vec<Record> = (1..=15).map(|id| record(id, schema, &mut rng)).collect();
        for (i, record) in records.iter_mut().enumerate() {
            let global = [0, 0, 0, 0, 0, 0, 0, 0, 0, i as u8 / 3];
            record.version = rng.chance(0.9).then(|| RecordVersion::complete(global, i as u16));
        }
        let versions: Vec<_> = records.iter().filter_map(|record| record.version.clone()).collect();
        let meta_data = &*schema.meta_data;
        let lists = Lists { model: Model { records: &records, schema }, meta_data };
        let maker = Maker { meta_data, versions: &versions };
        for _ in 0..QUERIES {
            let query = maker.query(&mut rng);
            let indexes = chosen(meta_data, &mut rng);
            let plan = match plan_query(&query, meta_data, &|index| indexes.contains(&index.name)) {
                Ok(plan) => plan,
                Err(QueryError::NoOrder(_) | QueryError::NoRankIndex(_)) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{error}: {query}"),
            };
            let found: Vec<i64> =
                lists.rows(plan.root(), None).into_iter().map(|(_, i)| records[i].id).collect();
            let expected = Expected::of(&query, &lists.model);
            rows += expected.len();
            if let Err(difference) = expected.check(&found, false) {
                panic!("round {round}: {difference}\n{query}\n{plan}\n{indexes:?}");
            }
            for step in steps(plan.root()) {
                *seen.entry(name_of(step)).or_default() += 1;
            }
        }
    }
    // What has been compared: each step of plans often, and not only queries without rows.
    assert_eq!(seen.len(), 13, "{seen:?}");
    assert!(seen.values().all(|count| *count >= 20), "{seen:?}");
    assert!(rows > 20_000 && refused < 10_000, "{rows} rows, {refused} refused");
}

/// A sort is refused without an index that has it, never with one.
#[test]
fn the_order_of_an_index_is_given() {
    for schema in schemas() {
        for index in schema.meta_data.indexes() {
            let values = [index_types::VALUE, index_types::RANK, index_types::VERSION];
            let types: Vec<&str> =
                schema.meta_data.types_of(index).into_iter().flatten().map(|name| &**name).collect();
            for reverse in [false, true] {
                let mut query = RecordQuery::of_types(types.clone()).sort(index.expression.clone());
                query.reverse = reverse;
                let plan =
                    |own: bool| plan_query(&query, &schema.meta_data, &|one| own && one.name == index.name);
                assert!(values.contains(&&*index.kind) && plan(true).is_ok(), "{}", index.name);
                let primary_key =
                    schema.meta_data.record_type("Item").expect("the type").primary_key.column_expressions();
                // A literal has no order.
                let mut columns = index.expression.column_expressions();
                columns.retain(|column| !matches!(column, KeyExpression::Literal(_)));
                match primary_key.starts_with(&columns) {
                    true => assert!(plan(false).is_ok(), "{}", index.name),
                    false => assert_eq!(plan(false), Err(QueryError::NoOrder(index.expression.to_string()))),
                }
            }
        }
        let by_type = RecordQuery::all().sort(KeyExpression::RecordType);
        assert_eq!(
            plan_query(&by_type, &schema.meta_data, &|_| true).is_ok(),
            schema_begins_with_type(&schema.meta_data)
        );
    }
}

fn schema_begins_with_type(meta_data: &RecordMetaData) -> bool {
    let key = &meta_data.record_type("Item").expect("the type").primary_key;
    key.column_expressions().first() == Some(&KeyExpression::RecordType)
}
