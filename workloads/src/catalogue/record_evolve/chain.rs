//! Versions of the meta-data, each of which follows the one before.

use super::operations::Wrong;
use crate::catalogue::record_build::plain::{self, Column, Definition, FIELDS, Kind, Record, TYPES};
use parking_lot::Mutex;
use shaketable_record::{
    expression::{KeyExpression, concat},
    metadata::{EvolutionError, Index, RecordMetaData},
};
use shaketable_sim::seed::{Seed, Stream};
use std::{collections::BTreeMap, sync::Arc};

/// How many chains there are. A run draws one of them.
pub(super) const CHAINS: u64 = 40;

/// How many times the meta-data changes.
const CHANGES: usize = 8;

/// One version of the meta-data.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The number of record types.
    pub types: usize,
    /// The number of fields beside the primary key.
    pub fields: usize,
    pub definitions: Vec<Definition>,
    pub meta_data: Arc<RecordMetaData>,
}

/// One change of the meta-data.
enum Change {
    /// Perhaps with an index on it.
    AddType(Option<Definition>),
    AddField,
    AddIndex(Definition),
    AlterIndex(Definition),
    RemoveIndex(String),
}

/// The chain with this number.
pub(super) fn chain(number: u64) -> Arc<Vec<Link>> {
    static CHAINS: Mutex<BTreeMap<u64, Arc<Vec<Link>>>> = Mutex::new(BTreeMap::new());
    CHAINS.lock().entry(number).or_insert_with(|| Arc::new(forge(number))).clone()
}

fn forge(number: u64) -> Vec<Link> {
    let mut rng = Seed(number).stream("meta-data");
    let definitions: Vec<Definition> = (1..)
        .zip([0, 1])
        .map(|(number, place)| Definition { number, ..templates()[place].clone() })
        .collect();
    let meta_data = plain::meta_data(1, 2, &definitions).build().expect("valid meta-data");
    let mut links = vec![Link { types: 1, fields: 2, definitions, meta_data: Arc::new(meta_data) }];
    let mut numbers = 2;
    for _ in 0..CHANGES {
        let last = &links[links.len() - 1];
        let change = last.draw(&mut rng, &mut numbers);
        links.push(last.changed(change));
    }
    links
}

/// Indexes that a change can add.
fn templates() -> Vec<Definition> {
    let [shelf, tag, code, score] = [0, 1, 2, 3].map(Column::Field);
    let index =
        |name: &str, kind, columns, types| Definition { name: name.into(), number: 0, kind, columns, types };
    vec![
        index("value", Kind::Value, vec![shelf, tag], vec![]),
        index("count", Kind::Count, vec![shelf], vec![1]),
        index("tag", Kind::Value, vec![tag], vec![]),
        index("counted rank", Kind::Rank(true), vec![shelf, tag], vec![]),
        index("tag count", Kind::Count, vec![tag], vec![]),
        index("version", Kind::Version, vec![shelf, Column::Version], vec![]),
        index("notes", Kind::Value, vec![tag, shelf], vec![2]),
        index("code", Kind::Unique, vec![code], vec![]),
        index("sum", Kind::Sum, vec![shelf, score], vec![]),
        index("rank", Kind::Rank(false), vec![shelf, score], vec![]),
    ]
}

impl Link {
    /// A change that this version allows.
    fn draw(&self, rng: &mut Stream, numbers: &mut i64) -> Change {
        let can_add = |index: &Definition, types: usize| {
            let is_field = |column: &Column| !matches!(column, Column::Field(place) if *place >= self.fields);
            index.columns.iter().all(is_field)
                && index.types.iter().all(|of| *of as usize <= types)
                && self.definitions.iter().all(|other| other.name != index.name)
        };
        loop {
            match rng.below(10) {
                0 | 1 if self.types < TYPES.len() => {
                    let added = self.types + 1;
                    let is_on_it = |index: &Definition| {
                        !index.types.is_empty() && index.types.iter().all(|of| *of as usize == added)
                    };
                    let mut possible = templates().into_iter().filter(is_on_it);
                    let index = possible.find(|index| rng.chance(0.7) && can_add(index, added));
                    return Change::AddType(index.map(|index| {
                        *numbers += 1;
                        Definition { number: *numbers, ..index }
                    }));
                }
                2 | 3 if self.fields < FIELDS.len() => return Change::AddField,
                4 if self.definitions.len() > 1 => {
                    return Change::RemoveIndex(rng.pick(&self.definitions).name.clone());
                }
                5 => {
                    let mut index = rng.pick(&self.definitions).clone();
                    if index.kind == Kind::Value {
                        index.columns.reverse();
                        index.columns.truncate(1);
                        index.columns.push(Column::Field(rng.below(self.fields as u64) as usize));
                        if self.definitions.iter().all(|other| other.columns != index.columns) {
                            return Change::AlterIndex(index);
                        }
                    }
                }
                _ => {
                    let possible: Vec<_> =
                        templates().into_iter().filter(|index| can_add(index, self.types)).collect();
                    if !possible.is_empty() {
                        *numbers += 1;
                        return Change::AddIndex(Definition {
                            number: *numbers,
                            ..rng.pick(&possible).clone()
                        });
                    }
                }
            }
        }
    }

    fn changed(&self, change: Change) -> Link {
        let mut next = self.clone();
        let mut builder = self.meta_data.to_builder();
        match change {
            Change::AddType(_) => next.types += 1,
            Change::AddField => next.fields += 1,
            _ => {}
        }
        if (next.types, next.fields) != (self.types, self.fields) {
            builder.update_records(&plain::file(next.types, next.fields)).expect("the records are valid");
        }
        match change {
            Change::AddField | Change::AddType(None) => {}
            Change::AddIndex(index) | Change::AddType(Some(index)) => {
                index.add(&mut builder);
                next.definitions.push(index);
            }
            Change::AlterIndex(index) => {
                builder.change_index(index.index()).expect("the index was added");
                next.definitions.retain(|other| other.name != index.name);
                next.definitions.push(index);
            }
            Change::RemoveIndex(name) => {
                builder.remove_index(&name).expect("the index was added");
                next.definitions.retain(|other| other.name != name);
            }
        }
        next.meta_data = Arc::new(builder.build().expect("valid meta-data"));
        let follows: Result<(), EvolutionError> = next.meta_data.validate_evolution(&self.meta_data);
        follows.expect("it can follow");
        next
    }

    /// What a client with this version saves instead of a record with later types and fields.
    pub fn fit(&self, record: &Record) -> Record {
        let mut record = record.clone();
        record.of = record.of.min(self.types as u32);
        record.fields[self.fields..].fill(None);
        record
    }
}

impl Link {
    /// Meta-data that cannot follow this version.
    pub fn wrong(&self, wrong: Wrong) -> RecordMetaData {
        let next = self.meta_data.version() + 1;
        if wrong == Wrong::Narrowed {
            let mut builder = self.meta_data.to_builder();
            let file = plain::narrowed_file(self.types, self.fields);
            builder.update_records(&file).expect("the records are valid");
            return builder.build().expect("valid meta-data");
        }
        let indexes: Vec<&Index> = self.meta_data.indexes().map(|index| &**index).collect();
        let is_taken =
            wrong == Wrong::TypeTaken && self.meta_data.types_of(indexes[0]).is_none() && self.types > 1;
        let types = |at: usize, index: &Index| match is_taken && at == 0 {
            true => Some(vec![TYPES[0].to_owned()]),
            false => self.meta_data.types_of(index).map(<[String]>::to_vec),
        };
        let mut builder = plain::meta_data(self.types, self.fields, &[]);
        let gone = usize::from(!is_taken && wrong != Wrong::Altered);
        for (at, index) in indexes.into_iter().enumerate().skip(gone) {
            let mut altered = index.clone();
            if wrong == Wrong::Altered && at == 0 {
                altered.expression = match index.expression.clone() {
                    KeyExpression::Group { whole, grouped } => {
                        concat([KeyExpression::from("id"), *whole]).group_last(grouped)
                    }
                    expression => concat([KeyExpression::from("id"), expression]),
                };
            }
            let (types, index) = (types(at, index), altered);
            let added = match &types {
                Some(types) => builder.add_multi_type_index(types.iter().map(|name| &**name), index),
                None => builder.add_index(None, index),
            };
            added.expect("the index is valid");
        }
        let version = if wrong == Wrong::Unraised { self.meta_data.version() } else { next };
        builder.set_version(version).build().expect("valid meta-data")
    }
}

/// The place of the version of the meta-data with this number.
pub(super) fn place_of(chain: &[Link], version: i32) -> Option<usize> {
    chain.iter().position(|link| link.meta_data.version() == version)
}

#[cfg(test)]
mod tests {
    use super::{super::operations::WRONG, *};

    #[test]
    fn chains_have_all_changes_and_the_numbers_of_the_meta_data() {
        let (mut removed, mut changed, mut again) = (0, 0, 0);
        for number in 0..CHAINS {
            let chain = chain(number);
            assert_eq!(chain.len(), CHANGES + 1);
            let mut names = Vec::new();
            for (before, link) in chain.iter().zip(&chain[1..]) {
                for definition in &link.definitions {
                    let index = link.meta_data.index(&definition.name).expect("an index");
                    assert_eq!(index.subspace_key, definition.number, "{}", definition.name);
                }
                let former = link.meta_data.former_indexes();
                removed += former.len() - before.meta_data.former_indexes().len();
                let is_again = |definition: &&Definition| former.iter().any(|of| of.name == definition.name);
                again += link.definitions.iter().filter(is_again).count();
                changed += usize::from(
                    before.definitions.len() == link.definitions.len()
                        && before.fields == link.fields
                        && before.types == link.types,
                );
                names.extend(link.definitions.iter().map(|definition| definition.name.clone()));
            }
        }
        for link in (0..CHAINS).flat_map(|number| chain(number).to_vec()) {
            for wrong in WRONG {
                let after = link.wrong(wrong);
                assert!(after.validate_evolution(&link.meta_data).is_err(), "{wrong:?} {link:?}");
            }
        }
        assert!(removed > 10 && changed > 5 && again > 5, "{removed} {changed} {again}");
    }
}
