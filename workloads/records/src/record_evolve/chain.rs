//! Versions of the meta-data, each of which follows the one before.

use super::wrong::MetaDataRow;
use crate::record_build::plain::{Column, Definition, FIELDS, INLINE, Kind, Record, Shape, TYPES, WIDEST};
use parking_lot::Mutex;
use prost::Message;
use shaketable_record::metadata::{EvolutionError, Index, RecordMetaData, RecordMetaDataBuilder};
use shaketable_sim::seed::{Seed, Stream};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many chains there are. A run draws one of them.
pub(super) const CHAINS: u64 = 40;

/// How many times the meta-data changes.
const CHANGES: usize = 10;

/// The names that record types can have.
const NAMES: [&str; 6] = ["Item", "Note", "Memo", "Card", "Leaf", "Page"];

/// One version of the meta-data.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The record types and their fields.
    pub shape: Shape,
    pub definitions: Vec<Definition>,
    /// The names of the indexes that came with their record types and have not changed since.
    pub born: BTreeSet<String>,
    pub meta_data: Arc<RecordMetaData>,
}

/// One change of the meta-data.
enum Change {
    /// With this name, and perhaps with an index on it.
    AddType(&'static str, Option<Definition>),
    /// With this name, and with an index that its field declares.
    AddIndexedType(&'static str, Definition),
    /// All types have these names.
    Rename(Vec<&'static str>),
    AddField,
    /// The message that is in all types is changed as it may be.
    Widen,
    AddIndex(Definition),
    AlterIndex(Definition),
    /// An index is no longer unique.
    DropUnique(String),
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
    // A run gets to few of the changes: in many of them the unique index comes first, and is not unique for
    // long.
    let is_unique_early = rng.chance(0.6);
    let shape = Shape::first(1, if is_unique_early { 3 } else { 2 });
    let meta_data = shape.meta_data(&definitions).build().expect("valid meta-data").into();
    let mut links = vec![Link { shape, definitions, born: BTreeSet::new(), meta_data }];
    let mut numbers = 2;
    for place in 0..CHANGES {
        let last = &links[links.len() - 1];
        let change = match (place, last.unique()) {
            (0, None) if is_unique_early => last.add_unique(&mut numbers),
            (1, Some(unique)) if is_unique_early => Change::DropUnique(unique.name.clone()),
            _ => last.draw(&mut rng, &mut numbers),
        };
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
        index("parts", Kind::Value, vec![Column::Part], vec![]),
    ]
}

impl Link {
    /// A change that this version allows.
    fn draw(&self, rng: &mut Stream, numbers: &mut i64) -> Change {
        loop {
            let change = match rng.below(18) {
                0..=3 if self.shape.names.len() < TYPES.len() => Some(self.draw_type(rng, numbers)),
                4 | 5 if self.shape.fields < FIELDS.len() => Some(Change::AddField),
                6 if self.definitions.len() > 1 => {
                    Some(Change::RemoveIndex(rng.pick(&self.definitions).name.clone()))
                }
                7 => self.draw_altered(rng),
                8..=10 => Some(Change::Rename(self.draw_names(rng))),
                16 | 17 if self.shape.widened < WIDEST => Some(Change::Widen),
                11 | 12 => self.unique().map(|index| Change::DropUnique(index.name.clone())),
                _ => self.draw_index(rng, numbers),
            };
            if let Some(change) = change {
                return change;
            }
        }
    }

    /// A new type, most of them with an index.
    fn draw_type(&self, rng: &mut Stream, numbers: &mut i64) -> Change {
        let (name, added) = (self.draw_name(rng), self.shape.names.len() as u32 + 1);
        let inline = format!("{name}${}", FIELDS[INLINE]);
        let was = |name: &String| self.meta_data.former_indexes().iter().any(|former| former.name == *name);
        if rng.chance(0.5) && self.meta_data.index(&inline).is_none() && !was(&inline) {
            *numbers += 1;
            let columns = vec![Column::Field(INLINE)];
            let index =
                Definition { name: inline, number: *numbers, kind: Kind::Value, columns, types: vec![added] };
            return Change::AddIndexedType(name, index);
        }
        let is_on_it = |index: &Definition| index.types == [added];
        let mut possible = templates().into_iter().filter(is_on_it);
        let index = possible.find(|index| rng.chance(0.7) && self.can_add(index, added));
        Change::AddType(
            name,
            index.map(|index| {
                *numbers += 1;
                Definition { number: *numbers, ..index }
            }),
        )
    }

    /// A name that no type has.
    fn draw_name(&self, rng: &mut Stream) -> &'static str {
        let free: Vec<_> = NAMES.into_iter().filter(|name| !self.shape.names.contains(name)).collect();
        free[rng.index(free.len())]
    }

    /// The names of all types, in which two have exchanged theirs, or one has another name, and perhaps a
    /// second one the name that the first one had.
    fn draw_names(&self, rng: &mut Stream) -> Vec<&'static str> {
        let mut names = self.shape.names.clone();
        let [first, other] = [(); 2].map(|()| rng.below(names.len() as u64) as usize);
        let indexed: Vec<_> = self.shape.indexed.iter().map(|of| *of as usize - 1).collect();
        let one = if !indexed.is_empty() && rng.chance(0.5) { *rng.pick(&indexed) } else { first };
        if one != other && rng.chance(0.5) {
            names.swap(one, other);
        } else {
            let before = std::mem::replace(&mut names[one], self.draw_name(rng));
            if one != other {
                names[other] = before;
            }
        }
        names
    }

    /// Other columns for an index of values.
    fn draw_altered(&self, rng: &mut Stream) -> Option<Change> {
        let mut index = rng.pick(&self.definitions).clone();
        if index.kind != Kind::Value {
            return None;
        }
        index.columns.reverse();
        index.columns.truncate(1);
        index.columns.push(Column::Field(rng.below(self.shape.fields as u64) as usize));
        let is_new = self.definitions.iter().all(|other| other.columns != index.columns);
        is_new.then_some(Change::AlterIndex(index))
    }

    /// An index that can be added.
    fn draw_index(&self, rng: &mut Stream, numbers: &mut i64) -> Option<Change> {
        let types = self.shape.names.len() as u32;
        let possible: Vec<_> = templates().into_iter().filter(|index| self.can_add(index, types)).collect();
        if possible.is_empty() {
            return None;
        }
        *numbers += 1;
        Some(Change::AddIndex(Definition { number: *numbers, ..rng.pick(&possible).clone() }))
    }

    /// Adds the unique index, whose field must be there.
    fn add_unique(&self, numbers: &mut i64) -> Change {
        *numbers += 1;
        let mut all = templates().into_iter();
        let unique = all.find(|index| index.kind == Kind::Unique).expect("a template is unique");
        Change::AddIndex(Definition { number: *numbers, ..unique })
    }

    fn can_add(&self, index: &Definition, types: u32) -> bool {
        let is_field = |column: &Column| match column {
            Column::Field(place) => *place < self.shape.fields,
            Column::Part => self.shape.fields == FIELDS.len(),
            Column::Version => true,
        };
        index.columns.iter().all(is_field)
            && index.types.iter().all(|of| *of <= types)
            && self.definitions.iter().all(|other| other.name != index.name)
    }

    fn unique(&self) -> Option<&Definition> {
        self.definitions.iter().find(|index| index.kind == Kind::Unique)
    }

    fn changed(&self, change: Change) -> Link {
        let mut next = self.clone();
        next.reshape(&change);
        let mut builder = match change {
            Change::DropUnique(_) => without_uniqueness(&self.meta_data),
            _ => self.meta_data.to_builder(),
        };
        if next.shape != self.shape {
            builder.update_records(&next.shape.file()).expect("the records are valid");
        }
        match change {
            Change::AddField | Change::Widen | Change::AddType(_, None) | Change::Rename(_) => {}
            Change::AddIndexedType(_, index) => {
                next.born.insert(index.name.clone());
                next.definitions.push(index);
            }
            Change::AddType(_, Some(index)) => {
                next.born.insert(index.name.clone());
                next.add(&mut builder, index);
            }
            Change::AddIndex(index) => next.add(&mut builder, index),
            Change::AlterIndex(index) => {
                builder.change_index(index.index()).expect("the index was added");
                next.forget(&index.name);
                next.definitions.push(index);
            }
            Change::DropUnique(name) => {
                let mut definitions = next.definitions.iter_mut();
                let index = definitions.find(|index| index.name == name).expect("the index was added");
                index.kind = Kind::Value;
            }
            Change::RemoveIndex(name) => {
                builder.remove_index(&name).expect("the index was added");
                next.forget(&name);
            }
        }
        next.meta_data = Arc::new(builder.build().expect("valid meta-data"));
        let follows: Result<(), EvolutionError> = next.meta_data.validate_evolution(&self.meta_data);
        follows.expect("it can follow");
        next
    }

    /// Changes the types and their fields.
    fn reshape(&mut self, change: &Change) {
        match change {
            Change::AddType(name, _) => self.shape.names.push(*name),
            Change::AddIndexedType(name, _) => {
                self.shape.names.push(*name);
                self.shape.indexed.insert(self.shape.names.len() as u32);
            }
            Change::Rename(names) => self.shape.names.clone_from(names),
            Change::AddField => self.shape.fields += 1,
            Change::Widen => self.shape.widened += 1,
            _ => {}
        }
    }

    fn add(&mut self, builder: &mut RecordMetaDataBuilder, index: Definition) {
        index.add(builder, &self.shape.names);
        self.definitions.push(index);
    }

    fn forget(&mut self, name: &str) {
        self.definitions.retain(|index| index.name != name);
        self.born.remove(name);
    }

    /// What a client with this version saves instead of a record with later types and fields.
    pub fn fit(&self, record: &Record) -> Record {
        let mut record = record.clone();
        record.of = record.of.min(self.shape.names.len() as u32);
        record.fields[self.shape.fields..].fill(None);
        if self.shape.fields < FIELDS.len() {
            record.parts.clear();
        }
        record
    }
}

/// The next version, in which the unique index is not unique any more. Stores do not build it again.
fn without_uniqueness(meta_data: &RecordMetaData) -> RecordMetaDataBuilder {
    let mut row = MetaDataRow::of(meta_data);
    row.drop_uniqueness();
    let changed = RecordMetaData::from_bytes(&row.encode_to_vec(), meta_data.extensions());
    let mut builder = changed.expect("valid meta-data").to_builder();
    builder.set_version(meta_data.version() + 1);
    builder
}

/// An index, and its record types if it is not on all of them.
pub(super) type Placed = (Index, Option<Vec<String>>);

impl Link {
    /// Meta-data of this version, with the same types, without former indexes, and with what `edit` makes of
    /// each index and its place among them.
    pub fn rebuilt(&self, edit: impl Fn(usize, Placed) -> Option<Placed>) -> RecordMetaDataBuilder {
        let shape = Shape { indexed: BTreeSet::new(), ..self.shape.clone() };
        let mut builder = shape.meta_data(&[]);
        for record_type in self.meta_data.record_types() {
            let added = builder.record_type(&record_type.name).expect("a type");
            added.set_since_version(record_type.since_version);
        }
        for (at, index) in self.meta_data.indexes().enumerate() {
            let types = self.meta_data.types_of(index).map(<[String]>::to_vec);
            let added = match edit(at, ((**index).clone(), types)) {
                Some((index, Some(types))) => {
                    builder.add_multi_type_index(types.iter().map(|name| &**name), index)
                }
                Some((index, None)) => builder.add_index(None, index),
                None => continue,
            };
            added.expect("the index is valid");
        }
        builder.set_version(self.meta_data.version());
        builder
    }
}

/// The place of the version of the meta-data with this number.
pub(super) fn place_of(chain: &[Link], version: i32) -> Option<usize> {
    chain.iter().position(|link| link.meta_data.version() == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types that have other names in the next version, each with its old and its new one.
    fn other_names(link: &Link, next: &Link) -> BTreeMap<&'static str, &'static str> {
        let both = link.shape.names.iter().copied().zip(next.shape.names.iter().copied());
        both.filter(|(old, new)| old != new).collect()
    }

    #[test]
    fn chains_have_all_changes_and_the_numbers_of_the_meta_data() {
        let (mut removed, mut changed, mut again) = (0, 0, 0);
        let (mut renamed, mut exchanged, mut dropped, mut born, mut inline) = (0, 0, 0, 0, 0);
        for number in 0..CHAINS {
            let chain = chain(number);
            assert_eq!(chain.len(), CHANGES + 1);
            for (before, link) in chain.iter().zip(&chain[1..]) {
                for definition in &link.definitions {
                    let index = link.meta_data.index(&definition.name).expect("an index");
                    assert_eq!(index.subspace_key, definition.number, "{}", definition.name);
                }
                let former = link.meta_data.former_indexes();
                removed += former.len() - before.meta_data.former_indexes().len();
                let is_again = |definition: &&Definition| former.iter().any(|of| of.name == definition.name);
                again += link.definitions.iter().filter(is_again).count();
                let kinds = |link: &Link| link.definitions.iter().map(|index| index.kind).collect::<Vec<_>>();
                let is_same =
                    before.definitions.len() == link.definitions.len() && before.shape == link.shape;
                let is_dropped =
                    kinds(before).contains(&Kind::Unique) && !kinds(link).contains(&Kind::Unique);
                dropped += usize::from(is_same && is_dropped);
                changed += usize::from(is_same && !is_dropped);
                let names = other_names(before, link);
                renamed += usize::from(!names.is_empty());
                exchanged += usize::from(names.values().any(|new| names.contains_key(new)));
                born += link.born.difference(&before.born).count();
                inline += link.shape.indexed.len() - before.shape.indexed.len();
            }
        }
        assert!(removed > 10 && changed > 5 && again > 5, "{removed} {changed} {again}");
        assert!(renamed > 20 && exchanged > 10, "{renamed} {exchanged}");
        assert!(dropped > 5 && born > 10 && inline > 5, "{dropped} {born} {inline}");
    }
}
