//! A random query on a store, compared with a scan of all records and with the model.

use super::{
    check::Expected,
    model::{Model, Record},
    pure::steps,
};
use shaketable_layers::tx::Database;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Page, Stop},
    error::Error,
    expression::KeyExpression,
    query::{Plan, QueriedRecord, QueryError, RecordQuery, RecordQueryPlan, plan_query},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
    value::Tuple,
};
use shaketable_sim::seed::Stream;
use std::collections::{BTreeMap, BTreeSet};

/// A store with the records of a model.
pub struct Compared<'a, D: Database> {
    pub db: &'a D,
    pub stores: &'a RecordStoreBuilder<D::Transaction>,
    pub model: Model<'a>,
}

/// What was compared.
#[derive(Debug, Default)]
pub struct Tally {
    /// The queries.
    pub queries: usize,
    /// Those without an index that has their order or their rank.
    pub refused: usize,
    /// The rows that were expected.
    pub rows: usize,
    /// The pages that were read.
    pub pages: usize,
    /// The records that were made of entries.
    pub partial: usize,
    /// The steps of the plans, by their names.
    pub steps: BTreeMap<&'static str, usize>,
}

impl<D: Database> Compared<'_, D> {
    /// Compares a query, planned with these indexes: at once, in pages, and by a scan of all records. Describes a
    /// difference.
    pub async fn compare(
        &self,
        query: &RecordQuery,
        indexes: &BTreeSet<String>,
        rng: &mut Stream,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let plan = match plan_query(query, self.stores.meta_data(), &|index| indexes.contains(&index.name)) {
            Ok(plan) => plan,
            Err(QueryError::NoOrder(_) | QueryError::NoRankIndex(_)) => {
                tally.refused += 1;
                return Ok(());
            }
            Err(error) => return Err(format!("{error}: {query}")),
        };
        let distinct =
            steps(plan.root(), &mut tally.steps).iter().any(|step| matches!(step, Plan::Distinct(_)));
        let described = |what: String| format!("{what}\n{query}\n{plan}");
        let failed = |error: Error| described(error.to_string());
        let expected = Expected::of(query, &self.model);

        let all = self.page(&plan, Continuation::Start, Limits::default()).await.map_err(failed)?;
        if (all.stop, &all.continuation) != (Stop::Exhausted, &Continuation::End) {
            return Err(described(format!("stopped by {:?}", all.stop)));
        }
        let found = self.ids(&all.rows)?;
        expected.check(&found, false).map_err(described)?;
        for row in &all.rows {
            self.fields(query, row).map_err(described)?;
            tally.partial += usize::from(row.partial);
        }

        let paged = self.pages(&plan, rng, tally).await.map_err(failed)?;
        let paged = self.ids(&paged)?;
        expected.check(&paged, true).map_err(|what| described(format!("in pages: {what}")))?;
        if !distinct && paged != found {
            return Err(described(format!("in pages: found {paged:?}, at once {found:?}")));
        }

        let scan = RecordQuery { sort: None, required_results: None, ..query.clone() };
        if let Ok(scan) = plan_query(&scan, self.stores.meta_data(), &|_| false) {
            let scanned = self.page(&scan, Continuation::Start, Limits::default()).await.map_err(failed)?;
            let unsorted = RecordQuery { sort: None, ..query.clone() };
            let expected = Expected::of(&unsorted, &self.model);
            expected
                .check(&self.ids(&scanned.rows)?, false)
                .map_err(|what| described(format!("by a scan: {what}")))?;
        }
        tally.queries += 1;
        tally.rows += expected.len();
        Ok(())
    }

    async fn open(&self) -> Result<RecordStore<D::Transaction>, Error> {
        self.stores.open(&RecordContext::open(self.db)?).await
    }

    async fn page(
        &self,
        plan: &RecordQueryPlan,
        from: Continuation,
        limits: Limits,
    ) -> Result<Page<QueriedRecord>, Error> {
        plan.execute(&self.open().await?, from, limits)?.to_list().await
    }

    /// All rows in pages with random limits, each page in a transaction of its own.
    async fn pages(
        &self,
        plan: &RecordQueryPlan,
        rng: &mut Stream,
        tally: &mut Tally,
    ) -> Result<Vec<QueriedRecord>, Error> {
        let (mut rows, mut from) = (Vec::new(), Continuation::Start);
        let kind = rng.below(3);
        let size = 1 + rng.index(4);
        while from != Continuation::End {
            let limits = match kind {
                0 => Limits::rows(size),
                1 => Limits { scanned: Some(size), ..Limits::default() },
                _ => Limits {
                    rows: Some(1 + rng.index(4)),
                    bytes: Some(64 * (1 + rng.index(4))),
                    ..Limits::default()
                },
            };
            let page = self.page(plan, from.clone(), limits).await?;
            assert!(page.continuation != from, "a page makes progress: {plan}");
            rows.extend(page.rows);
            // As a client would keep it.
            from = page.continuation.to_bytes().map_or(Continuation::End, Continuation::from_bytes);
            tally.pages += 1;
        }
        Ok(rows)
    }

    fn ids(&self, rows: &[QueriedRecord]) -> Result<Vec<i64>, String> {
        rows.iter().map(|row| self.record(row).map(|record| record.id)).collect()
    }

    fn record(&self, row: &QueriedRecord) -> Result<&Record, String> {
        let meta_data = self.stores.meta_data();
        let is = |record: &&Record| {
            let key = &meta_data.record_type(record.record_type).expect("a type").primary_key;
            let key = self.model.keys(key, Some(&record.fields), record).remove(0);
            Tuple::from_iter(key) == *row.primary_key()
        };
        self.model.records.iter().find(is).ok_or_else(|| format!("no record {}", row.primary_key()))
    }

    /// Whether a row has the fields that were asked for.
    fn fields(&self, query: &RecordQuery, row: &QueriedRecord) -> Result<(), String> {
        let record = self.record(row)?;
        if row.record.record_type.name != record.record_type {
            return Err(format!("record {} is of type {}", record.id, row.record.record_type.name));
        }
        let whole = record.message(&row.record.record_type.message);
        if !row.partial && (row.record.message != whole || row.record.version != record.version) {
            let (found, version) = (&row.record.message, &row.record.version);
            return Err(format!(
                "record {} is {found} at {version:?}, not {whole} at {:?}",
                record.id, record.version
            ));
        }
        for column in query.required_results.iter().flatten() {
            let own = column.evaluate(row.record.subject(self.stores.meta_data()));
            let own: Vec<Tuple> =
                own.map_err(|error| error.to_string())?.iter().map(|key| key.tuple()).collect();
            let wanted = self.model.keys(column as &KeyExpression, Some(&record.fields), record);
            let wanted: Vec<Tuple> = wanted.into_iter().map(Tuple::from_iter).collect();
            if own != wanted {
                return Err(format!("{column} of record {} is {own:?}, not {wanted:?}", record.id));
            }
        }
        Ok(())
    }
}

/// Saves records, each transaction some of them; they get their versions.
pub async fn save<D: Database>(
    db: &D,
    stores: &RecordStoreBuilder<D::Transaction>,
    records: &mut [Record],
) -> Result<(), Error> {
    for batch in records.chunks_mut(4) {
        let context = RecordContext::open(db)?;
        let store = stores.create_or_open(&context).await?;
        for record in batch.iter_mut() {
            let found = store.meta_data().record_type(record.record_type).expect("a type").clone();
            record.version = store.save_record(&record.message(&found.message)).await?.version;
        }
        context.commit().await?;
        let stamp = context.versionstamp().await?.expect("versions");
        for record in batch {
            record.version = record.version.take().map(|version| version.completed(stamp));
        }
    }
    Ok(())
}
