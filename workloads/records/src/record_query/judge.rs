//! Whether what a client was told is what the model finds, at the versions at which it was read.

use super::{
    check::Expected,
    client::{content, ranks, ranks_by},
    model::{Model, Record, bytes_of},
    operations::{End, Found, Page, Row},
};
use shaketable_record::{
    expression::KeyExpression,
    query::{QueryComponent, RecordQuery},
    value::Tuple,
};
use shaketable_tx::{reachable, sometimes};

/// The records at a version.
pub type At<'a> = &'a dyn Fn(i64) -> Model<'a>;

/// Judges what was found. Describes a difference.
pub fn judge(query: &RecordQuery, found: &Found, at: At<'_>) -> Result<(), String> {
    let judged = whole(query, found, at(found.version)).and_then(|()| pages(query, found, at));
    judged.map_err(|what| format!("{what}\n{query}\n{}", found.plan))?;
    if found.scan.is_some() {
        reachable!("record query: the plan, a scan of all records and the model agree");
    }
    Ok(())
}

/// The rows of the plan, and those of a scan.
fn whole(query: &RecordQuery, found: &Found, model: Model<'_>) -> Result<(), String> {
    Expected::of(query, &model).check(&ids(&found.rows), false)?;
    contents(query, &found.rows, model)?;
    let Some(scan) = &found.scan else { return Ok(()) };
    let unsorted = RecordQuery { sort: None, required_results: None, ..query.clone() };
    let scanned = Expected::of(&unsorted, &model).check(&ids(scan), false);
    scanned.and_then(|()| contents(&unsorted, scan, model)).map_err(|what| format!("by a scan: {what}"))
}

fn pages(query: &RecordQuery, found: &Found, at: At<'_>) -> Result<(), String> {
    for page in &found.pages {
        contents(query, &page.rows, at(page.version)).map_err(|what| format!("in pages: {what}"))?;
    }
    let still = found.pages.iter().all(|page| page.version == found.version);
    sometimes!(!still, "record query: pages are read at several versions");
    let judged = match still {
        true => at_one_version(query, found, at(found.version)),
        false => at_several_versions(query, found, at),
    };
    judged.map_err(|what| format!("in pages: {what}: {:?}", found.pages))
}

/// Pages at the version of the whole: together they are the whole.
fn at_one_version(query: &RecordQuery, found: &Found, model: Model<'_>) -> Result<(), String> {
    let all: Vec<Row> = found.pages.iter().flat_map(|page| page.rows.iter().copied()).collect();
    if found.end == End::Complete {
        Expected::of(query, &model).check(&ids(&all), true)?;
    }
    if !found.shape.distinct && !found.rows.starts_with(&all) {
        return Err(format!("found {:?}, at once {:?}", ids(&all), ids(&found.rows)));
    }
    // The position after a full page is after the rows that have come in it.
    for pair in found.pages.windows(2) {
        let again = pair[1].rows.first().filter(|row| ids(&pair[0].rows).contains(&row.id));
        if let Some(row) = again.filter(|_| pair[0].full && found.shape.distinct && !found.shape.filtered) {
            return Err(format!("record {} comes again at once", row.id));
        }
    }
    Ok(())
}

/// Pages at several versions: each has records that are found at its version; a record that is the same in
/// all of them is found as if they were at one version.
fn at_several_versions(query: &RecordQuery, found: &Found, at: At<'_>) -> Result<(), String> {
    let wanted: Vec<Vec<&Record>> = found.pages.iter().map(|page| wanted(query, at(page.version))).collect();
    let mut last: Option<Tuple> = None;
    for (page, wanted) in found.pages.iter().zip(&wanted) {
        let mut seen = Vec::new();
        for row in &page.rows {
            let Some(record) = wanted.iter().find(|record| record.id == row.id) else {
                return Err(format!("record {} is not one of those at version {}", row.id, page.version));
            };
            if query.remove_duplicates && seen.contains(&row.id) {
                return Err(format!("record {} comes twice in a page", row.id));
            }
            seen.push(row.id);
            let next = place(query, record, at(page.version)).filter(|_| !found.shape.merged);
            let behind = |last: &Tuple| {
                next.as_ref().is_some_and(|next| if query.reverse { next > last } else { next < last })
            };
            if last.as_ref().is_some_and(behind) {
                return Err(format!("record {} is out of order", row.id));
            }
            last = next.or(last);
        }
    }
    let ranked = query.filter.as_ref().is_some_and(has_rank);
    let lasting = wanted.first().into_iter().flatten();
    let lasting = lasting.filter(|record| wanted.iter().all(|all| all.contains(record)));
    for record in lasting.filter(|_| !ranked) {
        let times = |page: &Page| page.rows.iter().filter(|row| row.id == record.id).count();
        let times: usize = found.pages.iter().map(times).sum();
        if times == 0 && found.end == End::Complete {
            return Err(format!("record {} was always there and is missing", record.id));
        }
        if times > 1 && query.remove_duplicates && !found.shape.distinct {
            return Err(format!("record {} was always the same and comes {times} times", record.id));
        }
    }
    Ok(())
}

/// The records that a query finds.
fn wanted<'a>(query: &RecordQuery, model: Model<'a>) -> Vec<&'a Record> {
    let expected = Expected::of(query, &model);
    model.records.iter().filter(|record| expected.has(record.id)).collect()
}

/// The key of the sort, if a record has just one.
fn place(query: &RecordQuery, record: &Record, model: Model<'_>) -> Option<Tuple> {
    let mut keys = model.keys(query.sort.as_ref()?, Some(&record.fields), record);
    let key = keys.pop().filter(|_| keys.is_empty())?;
    Some(key.into_iter().collect())
}

fn has_rank(condition: &QueryComponent) -> bool {
    !ranks(condition).is_empty()
}

fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

/// Whether the rows have what the records have.
fn contents(query: &RecordQuery, rows: &[Row], model: Model<'_>) -> Result<(), String> {
    for row in rows {
        let Some(record) = model.records.iter().find(|record| record.id == row.id) else {
            return Err(format!("record {} does not exist", row.id));
        };
        let keys = |column| {
            let keys = model.keys(column, Some(&record.fields), record);
            keys.into_iter().map(|key| key.into_iter().collect()).collect()
        };
        let columns: Vec<Vec<Tuple>> = query.required_results.iter().flatten().map(keys).collect();
        let whole = (!row.partial).then(|| bytes_of(&model.message(record)));
        let whole = whole.map(|bytes| (record.record_type, bytes, record.version.as_ref()));
        if row.partial && query.required_results.is_none() {
            return Err(format!("record {} has some of its fields only", row.id));
        }
        if content(&columns, whole) != row.content {
            return Err(format!("record {} is not {record:?}", row.id));
        }
    }
    Ok(())
}

/// Judges that no index had the order or the rank that a query asks for; `readable` says which indexes could
/// be used.
pub fn refused(query: &RecordQuery, model: Model<'_>, readable: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let meta_data = &model.schema.meta_data;
    let on_types = |index: &&std::sync::Arc<shaketable_record::metadata::Index>| {
        let all = meta_data.record_types().map(|one| &one.name);
        let queried: Vec<&String> =
            if query.record_types.is_empty() { all.collect() } else { query.record_types.iter().collect() };
        queried.iter().all(|name| meta_data.is_index_of(index, name))
    };
    let usable = meta_data.indexes().filter(on_types).filter(|index| readable(&index.name));
    let usable: Vec<_> = usable.collect();
    let sorts = |sort: &KeyExpression| {
        usable.iter().any(|index| index.expression == *sort) || *sort == model.schema.primary_key()
    };
    let ranks = query.filter.as_ref().map(ranks).unwrap_or_default();
    if ranks.iter().any(|rank| !usable.iter().any(|index| ranks_by(index, rank))) {
        return Ok(());
    }
    match &query.sort {
        None => Err(format!("refused without an order, and indexes have all ranks: {query}")),
        Some(sort) if sorts(sort) => Err(format!("refused, but an index has the order: {query}")),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{model::Slot, operations::Shape, schema::schemas},
        *,
    };
    use shaketable_record::{
        expression::{NullStandin, field},
        query::Query,
        value::IntoValue,
    };

    /// Items with these numbers in the field `num`; the record's own number is its place.
    fn items(numbers: &[i64]) -> Vec<Record> {
        let item = |(id, number): (i64, &i64)| {
            let fields = [("num", Slot::One(number.into_value()))].into();
            Record { id, record_type: "Item", fields, version: None }
        };
        (1..).zip(numbers).map(item).collect()
    }

    /// Items at version 1, and at version 2.
    fn judged(
        query: &RecordQuery,
        at: [&[i64]; 2],
        rows: &[i64],
        scan: &[i64],
        pages: &[(i64, &[i64])],
    ) -> Result<(), String> {
        let records = at.map(items);
        let model = |version: i64| Model { records: &records[version as usize - 1], schema: &schemas()[0] };
        let row = |version: i64, id: i64| {
            let record = records[version as usize - 1].iter().find(|record| record.id == id);
            let whole =
                record.map(|record| (record.record_type, bytes_of(&model(version).message(record)), None));
            Row { id, partial: false, content: content(&[], whole) }
        };
        let page = |(version, ids): &(i64, &[i64])| {
            let rows = ids.iter().map(|id| row(*version, *id)).collect();
            Page { version: *version, rows, full: true }
        };
        let all = |ids: &[i64]| ids.iter().map(|id| row(1, *id)).collect();
        let found = Found {
            version: 1,
            plan: String::new(),
            shape: Shape { distinct: false, merged: false, filtered: false },
            rows: all(rows),
            scan: Some(all(scan)),
            pages: pages.iter().map(page).collect(),
            end: End::Complete,
        };
        judge(query, &found, &model)
    }

    fn by_number() -> RecordQuery {
        RecordQuery::of("Item").filter(Query::field("num").less_than(9)).sort("num")
    }

    #[test]
    fn wrong_rows_are_noticed() {
        let query = by_number();
        let objection = |rows: &[i64], scan: &[i64]| {
            let at: [&[i64]; 2] = [&[1, 9, 3], &[]];
            judged(&query, at, rows, scan, &[(1, rows)]).map_err(|why| why.lines().next().map(str::to_owned))
        };
        assert_eq!(objection(&[1, 3], &[3, 1]), Ok(()));
        for (rows, scan, why) in [
            (&[3, 1][..], &[1, 3][..], "another order"),
            (&[1], &[1, 3], "other records"),
            (&[1, 2, 3], &[1, 3], "other records"),
            (&[1, 1, 3], &[1, 3], "duplicates"),
            (&[1, 3], &[1], "by a scan: other records"),
        ] {
            let objected = objection(rows, scan).unwrap_err().unwrap_or_default();
            assert!(objected.starts_with(why), "{rows:?}: {objected}");
        }
    }

    #[test]
    fn wrong_pages_are_noticed() {
        let query = by_number();
        // At version 2 record 1 has the number 7, record 3 has none that is found; 2 and 4 stay.
        let at: [&[i64]; 2] = [&[1, 2, 3, 4], &[7, 2, 9, 4]];
        let objection = |pages: &[(i64, &[i64])]| judged(&query, at, &[1, 2, 3, 4], &[1, 2, 3, 4], pages);
        assert_eq!(objection(&[(1, &[1, 2]), (1, &[3, 4])]), Ok(()));
        assert_eq!(objection(&[(1, &[1, 2]), (2, &[4, 1])]), Ok(()));
        assert_eq!(objection(&[(1, &[1, 2]), (2, &[4])]), Ok(()));
        for (pages, why) in [
            (&[(1, &[1, 2][..]), (1, &[2, 3, 4][..])][..], "at once"),
            (&[(1, &[1, 2]), (1, &[4])], "other records"),
            (&[(1, &[1, 2]), (2, &[3, 4])], "record 3 is not one of those at version 2"),
            (&[(1, &[1, 2]), (2, &[1, 4])], "record 4 is out of order"),
            (&[(1, &[1, 2]), (2, &[4, 4])], "record 4 comes twice in a page"),
            (&[(1, &[1, 2]), (2, &[2, 4])], "record 2 was always the same and comes 2 times"),
            (&[(1, &[1, 2]), (2, &[1])], "record 4 was always there and is missing"),
        ] {
            let objected = objection(pages).expect_err(why);
            assert!(objected.contains(why), "{pages:?}: {objected}");
        }
    }

    #[test]
    fn a_refusal_without_a_reason_is_noticed() {
        let records = items(&[1]);
        let model = Model { records: &records, schema: &schemas()[0] };
        assert!(refused(&by_number(), model, &|index| index == "num").is_err());
        assert_eq!(refused(&by_number(), model, &|index| index != "num" && index != "num_of_all"), Ok(()));
        assert!(refused(&RecordQuery::of("Item"), model, &|_| false).is_err());
        assert!(refused(&RecordQuery::of("Item").sort("id"), model, &|_| false).is_err());
        let unique = field("big").null(NullStandin::NullUnique).ungrouped();
        let ranked = RecordQuery::of("Item").filter(Query::rank(unique).equals(1));
        assert!(refused(&ranked, model, &|index| index == "rank").is_err());
        assert_eq!(refused(&ranked, model, &|index| index != "rank"), Ok(()));
    }
}
