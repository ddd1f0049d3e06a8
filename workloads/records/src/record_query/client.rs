//! How a query is asked: by its plan, by a scan of all records, and by its plan in pages.

use super::{
    generate,
    model::bytes_of,
    operations::{Answer, End, Found, Page, Pages, Row, Shape, Size, Way},
    planted::{self, Planted},
};
use foundationdb_tuple::Element;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Cursor, CursorExt, Limits, Next, Spent, Stop, TupleRange},
    error::Error,
    expression::{KeyExpression, NullStandin, field},
    index::IndexScan,
    metadata::{Index, RecordMetaData, index_types},
    query::{
        Operand, Plan, QueriedRecord, QueryComponent, QueryError, RecordQuery, RecordQueryPlan, plan_query,
    },
    store::{RecordContext, RecordStore, RecordStoreBuilder},
    value::{Tuple, Value},
    version::RecordVersion,
};
use shaketable_sim::trace::hash_bytes;
use shaketable_tx::{Database, Db, RunError, Transaction, Tx, always, points, sometimes};
use std::{collections::BTreeSet, time::Duration};

/// After this number of pages the rest is read as one page.
const MOST_PAGES: usize = 12;

/// How often a page is read again at the same read version.
const ATTEMPTS: u32 = 4;

/// Makes the plan of a query, on a store that is open.
pub type MakePlan<'a> = &'a (dyn Fn(&RecordStore<Tx>) -> Result<RecordQueryPlan, Error> + Send + Sync);

/// A query that is to be asked.
pub struct Question<'a> {
    /// How the store is opened.
    pub stores: &'a RecordStoreBuilder<Tx>,
    /// The query.
    pub query: &'a RecordQuery,
    /// How it is planned.
    pub plan: MakePlan<'a>,
    /// How its pages are read.
    pub pages: Pages,
    /// A planted bug in the way in which they are read.
    pub planted: Option<Planted>,
    /// What a transaction has written in which the query is asked too.
    pub changes: &'a [Written],
    /// Other queries: none of them goes on from a continuation of this one, unless it has the same plan.
    pub others: &'a [RecordQuery],
    /// Queries that do not fit the meta-data.
    pub misfits: &'a [RecordQuery],
}

/// A change that is never committed.
pub enum Written {
    /// A record was saved.
    Saved(DynamicMessage),
    /// The record with this primary key was deleted.
    Deleted(Tuple),
}

/// What the first transaction has found; what is left of the pages is read in others.
struct First {
    found: Found,
    plan: RecordQueryPlan,
}

impl Question<'_> {
    /// Asks.
    ///
    /// Dropping the future: nothing was written.
    pub async fn ask(&self, db: &Db) -> Result<Answer, RunError<Error>> {
        let first = db.run(|tx, _| async move { self.first(&tx).await }).await?;
        self.beside_writes(db).await?;
        let First { mut found, plan } = match first {
            Ok(first) => first,
            Err((version, why)) => return Ok(Answer::NoIndex(version, why)),
        };
        if self.pages.way != Way::Together {
            found.end = self.read_on(db, &plan, &mut found).await?;
        }
        Ok(Answer::Found(Box::new(found)))
    }

    /// Asks in a transaction that has saved and deleted records, and is never committed: what it has written
    /// is found as by a scan of all records.
    async fn beside_writes(&self, db: &Db) -> Result<(), RunError<Error>> {
        // An order by the elements of a list leaves out records without elements.
        let plain = |sort: &KeyExpression| sort.version_columns() == 0 && !sort.creates_duplicates();
        // A record that the transaction has saved has no version to compare with.
        let known = |filter: &QueryComponent| ranks(filter).is_empty() && !filter.compares_versions();
        let asked =
            self.query.sort.as_ref().is_none_or(plain) && self.query.filter.as_ref().is_none_or(known);
        if !asked || self.changes.is_empty() {
            return Ok(());
        }
        // The error ends the loop without a commit.
        let ended = db.run(|tx, _| async move {
            match self.asked_beside_writes(tx).await {
                Ok(()) => Err(Error::Closed),
                Err(Error::InvalidQuery(_)) => Err(Error::Closed),
                Err(error) => Err(error),
            }
        });
        match ended.await {
            Ok(()) | Err(RunError { error: Error::Closed, .. }) => Ok(()),
            Err(failed) => Err(failed),
        }
    }

    async fn asked_beside_writes(&self, tx: Tx) -> Result<(), Error> {
        let context = RecordContext::within(tx);
        let store = self.stores.open(&context).await?;
        let early = (self.plan)(&store)?;
        for change in self.changes {
            match change {
                Written::Saved(message) => drop(store.save_record(message).await?),
                Written::Deleted(primary_key) => drop(store.delete_record(primary_key).await?),
            }
        }
        let plan = if self.planted == Some(Planted::PlannedEarly) { early } else { (self.plan)(&store)? };
        let scanned = RecordQuery { sort: None, required_results: None, ..self.query.clone() };
        let scan = plan_query(&scanned, store.meta_data(), &|_| false)?;
        let mut sets = Vec::new();
        for plan in [&plan, &scan] {
            let page = plan.execute(&store, Continuation::Start, Limits::default())?.to_list().await?;
            sets.push(page.rows.iter().map(|row| row.primary_key().clone()).collect::<BTreeSet<_>>());
        }
        always!(
            sets[0] == sets[1],
            "in a transaction that has written, {} found {:?}, and a scan of all records {:?}",
            plan.explain(),
            sets[0],
            sets[1]
        );
        self.asked_beside_a_change(&store, &plan).await
    }

    /// Asks while an index of the plan becomes unreadable: the cursor that is open gives all rows
    /// nevertheless, or says that it cannot.
    async fn asked_beside_a_change(
        &self,
        store: &RecordStore<Tx>,
        plan: &RecordQueryPlan,
    ) -> Result<(), Error> {
        let scanned = |step: &Plan| match step {
            Plan::Index { index, .. } => Some(index.clone()),
            _ => None,
        };
        let Some(index) = steps(plan.root()).into_iter().find_map(scanned) else { return Ok(()) };
        let open = || -> Result<BoxCursor<Tuple>, Error> {
            let rows = plan.execute(store, Continuation::Start, Limits::default())?;
            Ok(rows.map(|row| row.primary_key().clone()))
        };
        let whole = open()?.to_list().await?.rows;
        let mut cursor = open()?;
        let mut rows = Vec::new();
        // The state changes before the first row or after it.
        let mut left = whole.len() % 2;
        loop {
            if left == 0 {
                store.mark_index_disabled(&index).await?;
            }
            left = left.wrapping_sub(1);
            match cursor.next().await {
                Ok(Next::Row(row, _)) => rows.push(row),
                Ok(Next::Stopped(..)) => break,
                Err(Error::IndexState { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        always!(
            rows == whole,
            "while an index became unreadable, {} gave {rows:?} of {whole:?}",
            plan.explain()
        );
        Ok(())
    }

    /// The rows of the plan and of a scan of all records, in one transaction, and the pages if they are to be
    /// read in it. The inner error says that no index has the order.
    async fn first(&self, tx: &Tx) -> Result<Result<First, (i64, String)>, Error> {
        let store = self.stores.open(&RecordContext::within(tx.clone())).await?;
        let version = tx.get_read_version().await?;
        for misfit in self.misfits {
            let planned = store.plan_query(misfit);
            always!(
                matches!(&planned, Err(Error::InvalidQuery(why)) if !is_without_index(why)),
                "a query that does not fit the meta-data was planned: {misfit:?}: {planned:?}"
            );
        }
        let plan = match (self.plan)(&store) {
            Ok(plan) => plan,
            Err(Error::InvalidQuery(why)) if is_without_index(&why) => {
                return Ok(Err((version, why.to_string())));
            }
            Err(error) => return Err(error),
        };
        let scanned = RecordQuery { sort: None, required_results: None, ..self.query.clone() };
        let scan = match plan_query(&scanned, store.meta_data(), &|_| false) {
            Ok(scan) => Some(whole(&store, &scan, &[]).await?),
            Err(QueryError::NoRankIndex(_)) => None,
            Err(error) => return Err(error.into()),
        };
        self.is_narrow(&store, &plan).await?;
        steps(plan.root()).into_iter().for_each(|step| points::record(name_of(step), true));
        let mut found = Found {
            version,
            plan: plan.explain(),
            shape: shape(plan.root()),
            rows: planted::cut(self.planted, whole(&store, &plan, self.required()).await?),
            scan,
            pages: Vec::new(),
            end: End::Complete,
        };
        if self.pages.way == Way::Together {
            let mut from = Continuation::Start;
            while from != Continuation::End {
                let (page, after) = self.page(&store, &plan, from, found.pages.len()).await?;
                found.pages.push(Page { version, ..page });
                from = after;
            }
        }
        Ok(Ok(First { found, plan }))
    }

    /// Reads the pages, each in a transaction of its own.
    async fn read_on(
        &self,
        db: &Db,
        plan: &RecordQueryPlan,
        found: &mut Found,
    ) -> Result<End, RunError<Error>> {
        let pinned = (self.pages.way == Way::Pinned).then_some(found.version);
        let mut from = Continuation::Start;
        while from != Continuation::End {
            let number = found.pages.len();
            if number > 0 && self.pages.pause > 0 {
                db.env().sleep(Duration::from_millis(self.pages.pause)).await;
            }
            let at = &from;
            let read = db.run(|tx, attempt| async move {
                match pinned {
                    Some(_) if attempt.number >= ATTEMPTS => return Ok(Err(End::TooOld)),
                    Some(version) => tx.set_read_version(version),
                    None => {}
                }
                let store = self.stores.open(&RecordContext::within(tx.clone())).await?;
                let version = tx.get_read_version().await?;
                // At the same version the same indexes are readable.
                if pinned.is_none() && !is_readable(&store, plan.root())? {
                    return Ok(Err(End::Changed));
                }
                let (page, after) = self.page(&store, plan, at.clone(), number).await?;
                Ok(Ok((Page { version, ..page }, after)))
            });
            match read.await? {
                Ok((page, after)) => {
                    found.pages.push(page);
                    from = after;
                }
                Err(end) => return Ok(end),
            }
        }
        Ok(End::Complete)
    }

    /// The next page, and where the one after it begins.
    async fn page(
        &self,
        store: &RecordStore<Tx>,
        plan: &RecordQueryPlan,
        from: Continuation,
        number: usize,
    ) -> Result<(Page, Continuation), Error> {
        let limits = if number < MOST_PAGES { self.pages.size.limits() } else { Limits::default() };
        let planted = match self.planted {
            Some(planted) => planted::page(planted, store, plan, from.clone(), limits.clone()).await?,
            None => None,
        };
        let page = match planted {
            Some(page) => page,
            None => plan.execute(store, from.clone(), limits)?.to_list().await?,
        };
        if let (Size::Scanned(most), Plan::Load(inner)) = (self.pages.size, plan.root())
            && matches!(**inner, Plan::Index { .. })
            && number < MOST_PAGES
        {
            let read = 2 * page.rows.len();
            always!(read <= most + 1, "a page has read {read} entries and records where {most} are allowed");
        }
        if page.continuation == from {
            return Err(Error::Query("a page makes no progress".into()));
        }
        // As a client would keep it.
        let after = page.continuation.to_bytes().map_or(Continuation::End, Continuation::from_bytes);
        if number == 0 && after != Continuation::End {
            self.belongs(store, plan, &after)?;
        }
        let rows = rows(store, self.required(), &page.rows)?;
        let full = page.stop == Stop::Rows && matches!(self.pages.size, Size::Rows(_));
        Ok((Page { version: 0, rows, full }, after))
    }

    /// Claims that a plan reads no more than the entries of the values that the condition allows, and their
    /// records, if these values have an index.
    async fn is_narrow(&self, store: &RecordStore<Tx>, plan: &RecordQueryPlan) -> Result<(), Error> {
        let RecordQuery { filter: Some(filter), sort: None, record_types, .. } = self.query else {
            return Ok(());
        };
        if *record_types != ["Item"] {
            return Ok(());
        }
        let mut entries = None;
        if let Some(values) = generate::pinned(filter) {
            entries = entries_of_all(store, &values).await?;
        }
        if let (None, Some(values)) = (entries, generate::bounded(filter)) {
            entries = entries_of_each(store, values).await?;
        }
        let Some(entries) = entries else { return Ok(()) };
        let limits = Limits { scanned: Some(2 * entries + 1), ..Limits::default() };
        let page = plan.execute(store, Continuation::Start, limits)?.to_list().await?;
        always!(
            page.stop == Stop::Exhausted,
            "where indexes have {entries} entries of the values that are asked for, more is read by {}",
            plan.explain()
        );
        sometimes!(true, "record_query: a plan reads no more than it has to");
        Ok(())
    }

    /// Claims that no other plan goes on from a continuation of this one.
    fn belongs(
        &self,
        store: &RecordStore<Tx>,
        plan: &RecordQueryPlan,
        at: &Continuation,
    ) -> Result<(), Error> {
        for query in self.others {
            let other = match store.plan_query(query) {
                Ok(other) => other,
                Err(Error::InvalidQuery(why)) if is_without_index(&why) => continue,
                Err(error) => return Err(error),
            };
            let opened = other.execute(store, at.clone(), Limits::default()).map(drop);
            // By their texts: a NaN is not equal to itself.
            let is_same = format!("{:?}", other.root()) == format!("{:?}", plan.root());
            always!(
                matches!(opened, Ok(()) if is_same)
                    || matches!(opened, Err(Error::Continuation(_)) if !is_same),
                "{} goes on from a continuation of {}: {opened:?}",
                other.explain(),
                plan.explain()
            );
        }
        Ok(())
    }

    fn required(&self) -> &[KeyExpression] {
        self.query.required_results.as_deref().unwrap_or_default()
    }
}

/// The entries of an index with keys that begin so.
async fn entries(store: &RecordStore<Tx>, index: &str, key: Tuple) -> Result<usize, Error> {
    let (range, spent) = (TupleRange::all_of(key), Spent::new(Limits::default()));
    let scan = store.scan_index(index, IndexScan::ByValue, range, false, Continuation::Start, &spent)?;
    Ok(scan.to_list().await?.rows.len())
}

/// The records that have this value in a field with which the primary key begins: a scan of them may take the
/// place of one of an index.
async fn begun(store: &RecordStore<Tx>, name: &str, value: &Value) -> Result<usize, Error> {
    let item = store.meta_data().record_type("Item");
    let columns = item.map(|item| item.primary_key.column_expressions()).unwrap_or_default();
    if columns.first() != Some(&field(name).into()) {
        return Ok(0);
    }
    let (range, spent) = (TupleRange::all_of(Tuple::from(value.clone())), Spent::new(Limits::default()));
    let records = store.scan_records(range, false, Continuation::Start, &spent)?;
    Ok(records.to_list().await?.rows.len())
}

/// The entries of an index whose first columns are fields that all have these values: the most, if there are
/// several such indexes; `None` if there is none.
async fn entries_of_all(store: &RecordStore<Tx>, values: &[(&str, Value)]) -> Result<Option<usize>, Error> {
    let mut most: Option<usize> = None;
    for index in store.meta_data().indexes() {
        // A record without elements has no entry by them.
        let has_all = store.meta_data().is_index_of(index, "Item")
            && index.kind == index_types::VALUE
            && !index.expression.creates_duplicates();
        if !has_all || !store.is_readable(&index.name)? {
            continue;
        }
        let columns = index.expression.column_expressions();
        let value = |column: &KeyExpression| {
            let found = values.iter().find(|(name, _)| KeyExpression::from(field(*name)) == *column);
            found.map(|(_, value)| value.clone())
        };
        let key: Vec<Value> = columns.iter().map_while(value).collect();
        if key.len() == values.len() {
            let mut found = entries(store, &index.name, key.into_iter().collect()).await?;
            for (name, value) in values {
                found += begun(store, name, value).await?;
            }
            most = most.max(Some(found));
        }
    }
    Ok(most)
}

/// The entries of all these values, each in the index with the name of its field; `None` if one of these is
/// not readable.
async fn entries_of_each(
    store: &RecordStore<Tx>,
    values: Vec<(&str, Value)>,
) -> Result<Option<usize>, Error> {
    let mut found = 0;
    for (index, value) in values {
        if !store.is_readable(index)? {
            return Ok(None);
        }
        found += begun(store, index, &value).await?;
        found += entries(store, index, Tuple::from(value)).await?;
    }
    Ok(Some(found))
}

/// Whether a query was refused because no index has its order or its ranks.
fn is_without_index(why: &QueryError) -> bool {
    matches!(why, QueryError::NoOrder(_) | QueryError::NoRankIndex(_))
}

/// All rows of a plan.
async fn whole(
    store: &RecordStore<Tx>,
    plan: &RecordQueryPlan,
    required: &[KeyExpression],
) -> Result<Vec<Row>, Error> {
    let page = plan.execute(store, Continuation::Start, Limits::default())?.to_list().await?;
    match (page.stop, page.continuation) {
        (Stop::Exhausted, Continuation::End) => rows(store, required, &page.rows),
        (stop, _) => Err(Error::Query(format!("without limits it has stopped by {stop:?}"))),
    }
}

fn rows(
    store: &RecordStore<Tx>,
    required: &[KeyExpression],
    rows: &[QueriedRecord],
) -> Result<Vec<Row>, Error> {
    rows.iter().map(|found| row(store.meta_data(), required, found)).collect()
}

fn row(meta_data: &RecordMetaData, required: &[KeyExpression], found: &QueriedRecord) -> Result<Row, Error> {
    let Some(Element::Int(id)) = found.primary_key().elements().last() else {
        return Err(Error::Query(format!("{} is no primary key", found.primary_key())));
    };
    let mut columns = Vec::new();
    for column in required {
        let keys = column.evaluate(found.record.subject(meta_data))?;
        columns.push(keys.iter().map(|key| key.tuple()).collect::<Vec<_>>());
    }
    let record = &found.record;
    let whole = (!found.partial)
        .then(|| (&*record.record_type.name, bytes_of(&record.message), record.version.as_ref()));
    Ok(Row { id: *id, partial: found.partial, content: content(&columns, whole) })
}

/// A hash of the columns that were asked for, and of the type, the bytes and the version of a whole record.
pub(super) fn content(columns: &[Vec<Tuple>], whole: Option<(&str, Vec<u8>, Option<&RecordVersion>)>) -> u64 {
    let packed: Vec<Vec<Vec<u8>>> =
        columns.iter().map(|keys| keys.iter().map(Tuple::pack).collect()).collect();
    let whole =
        whole.map(|(name, bytes, version)| (name.to_owned(), bytes, version.map(|one| *one.as_bytes())));
    hash_bytes(0, format!("{packed:?} {whole:?}").as_bytes())
}

fn shape(plan: &Plan) -> Shape {
    let steps = steps(plan);
    let has = |is: fn(&&Plan) -> bool| steps.iter().any(is);
    Shape {
        distinct: has(|step| matches!(step, Plan::Distinct(_))),
        merged: has(|step| matches!(step, Plan::Union { .. } | Plan::Intersection { .. })),
        filtered: has(|step| matches!(step, Plan::Filter { .. } | Plan::Types { .. })),
    }
}

/// The steps of a plan, each after those whose rows it uses.
pub fn steps(plan: &Plan) -> Vec<&Plan> {
    plan.children().into_iter().flat_map(steps).chain([plan]).collect()
}

/// The name of a step of a plan, as a claim about what was reached.
pub fn name_of(step: &Plan) -> &'static str {
    match step {
        Plan::Nothing => "record query: a plan for nothing",
        Plan::Records { .. } => "record query: a scan of records",
        Plan::Index { by_rank: true, .. } => "record query: a scan by rank",
        Plan::Index { .. } => "record query: a scan of an index",
        Plan::InJoin { .. } => "record query: an in-join",
        Plan::Union { .. } => "record query: a union",
        Plan::Intersection { .. } => "record query: an intersection",
        Plan::Either { .. } => "record query: branches in turn",
        Plan::Distinct(_) => "record query: duplicates are removed",
        Plan::Load(_) => "record query: records are loaded",
        Plan::Partial { .. } => "record query: records are made of entries",
        Plan::Types { .. } => "record query: records of some types",
        Plan::Filter { .. } => "record query: a filter",
    }
}

/// Whether all indexes that a plan scans, or has ranks of, are readable.
fn is_readable(store: &RecordStore<Tx>, plan: &Plan) -> Result<bool, Error> {
    let conditions = |step: &&Plan| match step {
        Plan::Filter { condition, .. } => vec![condition.clone()],
        Plan::Either { branches } => branches.iter().map(|(condition, _)| condition.clone()).collect(),
        _ => Vec::new(),
    };
    let steps = steps(plan);
    let ranked: Vec<_> = steps.iter().flat_map(conditions).collect();
    let ranked: Vec<_> = ranked.iter().flat_map(ranks).collect();
    let of_rank = |index: &Index| ranked.iter().any(|rank| ranks_by(index, rank));
    let scanned = |index: &Index| {
        steps.iter().any(|step| matches!(step, Plan::Index { index: name, .. } if *name == index.name))
    };
    for index in store.meta_data().indexes() {
        if (of_rank(index) || scanned(index)) && !store.is_readable(&index.name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an index has the ranks of an expression: of the same scores and groups, whichever nulls are
/// unique.
pub(super) fn ranks_by(index: &Index, rank: &KeyExpression) -> bool {
    let column = |column: KeyExpression| match column {
        KeyExpression::Field(field) if field.null == NullStandin::NullUnique => {
            field.null(NullStandin::Null).into()
        }
        other => other,
    };
    let columns = |of: &KeyExpression| of.column_expressions().into_iter().map(column).collect::<Vec<_>>();
    index.kind == index_types::RANK
        && columns(&index.expression) == columns(rank)
        && index.expression.grouping_columns() == rank.grouping_columns()
}

/// The expressions of the ranks that a condition compares with.
pub(super) fn ranks(condition: &QueryComponent) -> Vec<&KeyExpression> {
    match condition {
        QueryComponent::And(parts) | QueryComponent::Or(parts) => parts.iter().flat_map(ranks).collect(),
        QueryComponent::Not(inner) => ranks(inner),
        QueryComponent::Compare { operand: Operand::Rank(expression), .. } => vec![expression],
        _ => Vec::new(),
    }
}
