//! Databases and transactions of any backend, without their types. Code that uses these is compiled once,
//! whatever it runs on.

use super::{
    ConflictRangeType, Database, DatabaseOption, Env, Error, Isolation, KeySelector, MappedBatch,
    MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption, Turns,
};
use crate::always;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// A [`Database`] of any type.
#[derive(Clone)]
pub struct Db(Arc<dyn ErasedDatabase>);

/// A [`Transaction`] of any type.
#[derive(Clone)]
pub struct Tx {
    inner: Arc<dyn ErasedTransaction>,
    turns: Turns,
    /// The turns below which reads and writes are claimed to have one of their own.
    outer: Option<Turns>,
    /// The first key that is written through it, if somebody asks.
    wrote: Option<FirstWrite>,
}

/// The first key that was written.
pub type FirstWrite = Arc<OnceLock<Bytes>>;

impl Db {
    /// A database without its type.
    pub fn new(db: impl Database) -> Db {
        Db(Arc::new(db))
    }
}

impl Tx {
    /// A transaction without its type. It takes the same turns.
    pub fn new(tx: impl Transaction) -> Tx {
        let plain = (&tx as &dyn Any).downcast_ref::<Tx>();
        match plain.filter(|tx| tx.outer.is_none() && tx.wrote.is_none()) {
            Some(plain) => plain.clone(),
            None => Tx { turns: tx.turns().clone(), inner: Arc::new(tx), outer: None, wrote: None },
        }
    }

    /// The same for one call of a layer that takes a [turn](Transaction::writing) in each of its calls. That
    /// the call takes one, whatever turn its caller has, before it reads, and one alone before it writes, is
    /// a claim ([`always!`](crate::always)).
    pub fn in_turns(tx: impl Transaction) -> Tx {
        Tx { outer: Some(tx.turns().clone()), ..Tx::new(tx) }
    }

    /// The same transaction, which notes the first key that is written through this handle and its clones.
    pub fn noting(self, wrote: FirstWrite) -> Tx {
        Tx { wrote: Some(wrote), ..self }
    }

    fn has_turn(&self, alone: bool) -> bool {
        self.outer.as_ref().is_none_or(|outer| self.turns.are_taken(outer, alone))
    }

    fn reads(&self) {
        always!(self.has_turn(false), "a call reads without a turn");
    }

    fn writes(&self, key: &[u8]) {
        if let Some(wrote) = &self.wrote {
            wrote.get_or_init(|| Bytes::copy_from_slice(key));
        }
        always!(self.has_turn(true), "a call writes without a turn of its own");
    }
}

/// A database as what it is, if its type is `T` or if it is an [`Db`] of that type.
pub fn downcast<T: Database>(db: &impl Database) -> Option<&T> {
    let db: &dyn Any = db;
    let any = || db.downcast_ref::<Db>().and_then(|db| db.0.as_any().downcast_ref());
    db.downcast_ref().or_else(any)
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tx")
    }
}

/// The methods of [`Database`] that a type implements.
trait ErasedDatabase: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn create_transaction(&self) -> Result<Tx>;
    fn set_option(&self, option: DatabaseOption) -> Result<()>;
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()>;
    fn env(&self) -> &Env;
}

impl<D: Database> ErasedDatabase for D {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn create_transaction(&self) -> Result<Tx> {
        Database::create_transaction(self).map(Tx::new)
    }
    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        Database::set_option(self, option)
    }
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        Database::set_option_raw(self, code, value)
    }
    fn env(&self) -> &Env {
        Database::env(self)
    }
}

impl Database for Db {
    type Transaction = Tx;

    fn create_transaction(&self) -> Result<Tx> {
        self.0.create_transaction()
    }
    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.0.set_option(option)
    }
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.0.set_option_raw(code, value)
    }
    fn env(&self) -> &Env {
        self.0.env()
    }
}

/// Declares the trait of transactions without their types, implements it for each [`Transaction`], and
/// implements [`Transaction`] with it: methods that return at once, and methods that return a future.
macro_rules! erased {
    (
        writes { $(fn $write:ident(&self, $key:ident: &[u8] $(, $wa:ident: $wt:ty)*) $(-> $wrote:ty)?;)* }
        reads { $(async fn $read:ident(&self $(, $ra:ident: $rt:ty)*) -> $found:ty;)* }
        $(fn $now:ident(&self $(, $arg:ident: $of:ty)*) $(-> $returns:ty)?;)*
        $(async fn $method:ident(&self $(, $a:ident: $t:ty)*) -> $output:ty;)*
    ) => {
        trait ErasedTransaction: Send + Sync {
            $(fn $write(&self, $key: &[u8] $(, $wa: $wt)*) $(-> $wrote)?;)*
            $(fn $read(&self $(, $ra: $rt)*) -> BoxFuture<'static, $found>;)*
            $(fn $now(&self $(, $arg: $of)*) $(-> $returns)?;)*
            $(fn $method(&self $(, $a: $t)*) -> BoxFuture<'static, $output>;)*
        }

        impl<T: Transaction> ErasedTransaction for T {
            $(fn $write(&self, $key: &[u8] $(, $wa: $wt)*) $(-> $wrote)? {
                Transaction::$write(self, $key $(, $wa)*)
            })*
            $(fn $read(&self $(, $ra: $rt)*) -> BoxFuture<'static, $found> {
                Transaction::$read(self $(, $ra)*).boxed()
            })*
            $(fn $now(&self $(, $arg: $of)*) $(-> $returns)? {
                Transaction::$now(self $(, $arg)*)
            })*
            $(fn $method(&self $(, $a: $t)*) -> BoxFuture<'static, $output> {
                Transaction::$method(self $(, $a)*).boxed()
            })*
        }

        impl Transaction for Tx {
            fn turns(&self) -> &Turns {
                &self.turns
            }
            fn with_turns(&self, turns: Turns) -> Self {
                Tx { turns, ..self.clone() }
            }
            $(fn $write(&self, $key: &[u8] $(, $wa: $wt)*) $(-> $wrote)? {
                self.writes($key);
                self.inner.$write($key $(, $wa)*)
            })*
            $(fn $read(&self $(, $ra: $rt)*) -> impl Future<Output = $found> + Send + use<> {
                self.reads();
                self.inner.$read($($ra),*)
            })*
            $(fn $now(&self $(, $arg: $of)*) $(-> $returns)? {
                self.inner.$now($($arg),*)
            })*
            $(fn $method(&self $(, $a: $t)*) -> impl Future<Output = $output> + Send + use<> {
                self.inner.$method($($a),*)
            })*
        }
    };
}

erased! {
    writes {
        fn set(&self, key: &[u8], value: &[u8]);
        fn clear(&self, key: &[u8]);
        fn clear_range(&self, begin: &[u8], end: &[u8]);
        fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType);
        fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()>;
    }
    reads {
        async fn get(&self, key: &[u8], isolation: Isolation) -> Result<Option<Bytes>>;
        async fn get_key(&self, selector: &KeySelector, isolation: Isolation) -> Result<Bytes>;
        async fn get_range(
            &self,
            range: &RangeOption,
            iteration: usize,
            isolation: Isolation
        ) -> Result<RangeBatch>;
        async fn get_mapped_range(
            &self,
            range: &RangeOption,
            mapper: &[u8],
            iteration: usize,
            isolation: Isolation
        ) -> Result<MappedBatch>;
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()>;
    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>>;
    fn set_read_version(&self, version: i64);
    fn get_committed_version(&self) -> Result<i64>;
    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>>;
    fn set_option(&self, option: TransactionOption) -> Result<()>;
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()>;
    fn reset(&self);
    fn cancel(&self);

    async fn get_read_version(&self) -> Result<i64>;
    async fn get_approximate_size(&self) -> Result<i64>;
    async fn get_estimated_range_size_bytes(&self, begin: &[u8], end: &[u8]) -> Result<i64>;
    async fn get_range_split_points(&self, begin: &[u8], end: &[u8], chunk_size: i64) -> Result<Vec<Bytes>>;
    async fn get_addresses_for_key(&self, key: &[u8]) -> Result<Vec<String>>;
    async fn get_tag_throttled_duration(&self) -> Result<Duration>;
    async fn get_total_cost(&self) -> Result<i64>;
    async fn commit(&self) -> Result<()>;
    async fn on_error(&self, error: Error) -> Result<()>;
}
