//! A store's header: a protobuf message with the versions of what wrote it. The numbers of its fields are
//! those of Java's `DataStoreInfo`. The time of the last update is not written, because it would make every
//! opening depend on a clock. It is kept if it is there, as are Java's mark of a cacheable header and its
//! fields of the user; a header with a key of counts, which this crate does not maintain, is refused. Java's
//! fields of later formats are those of a newer format.

use super::{Keyspace, Part};
use crate::error::Error;
use prost::Message;
use shaketable_tx::{Isolation, RangeOption, Transaction};

/// The format of the rows: Java's number for stores that have records in rows of their own next to their
/// versions, and the state of readable indexes with violations.
pub const FORMAT_VERSION: i32 = 9;

/// What a store's header has.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Header {
    /// The format of the rows.
    #[prost(int32, optional, tag = "1")]
    pub format_version: Option<i32>,
    /// The version of the meta-data with which the store was last opened.
    #[prost(int32, optional, tag = "2")]
    pub meta_data_version: Option<i32>,
    /// The version of the application with which the store was last opened.
    #[prost(int32, optional, tag = "3")]
    pub user_version: Option<i32>,
    /// What Java's Record Layer counts records by: not supported.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub record_count_key: Option<Vec<u8>>,
    /// When Java's Record Layer has written the header last, in milliseconds.
    #[prost(uint64, optional, tag = "5")]
    pub last_update_time: Option<u64>,
    /// Whether records of one row have no suffix: a layout that is not supported.
    #[prost(bool, optional, tag = "6")]
    pub omit_unsplit_record_suffix: Option<bool>,
    /// Whether Java's Record Layer caches the header.
    #[prost(bool, optional, tag = "7")]
    pub cacheable: Option<bool>,
    /// The fields of the user.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub user_fields: Vec<Vec<u8>>,
}

impl Header {
    pub fn new(meta_data_version: i32, user_version: Option<i32>) -> Header {
        Header {
            format_version: Some(FORMAT_VERSION),
            meta_data_version: Some(meta_data_version),
            user_version,
            ..Header::default()
        }
    }

    /// Reads the header; `None` if the subspace is empty. The read is serializable: whoever writes to the
    /// store conflicts with a change of the header. Fails with [`Error::NoHeader`] if the subspace has other
    /// rows, and with [`Error::NewerFormat`].
    pub async fn read<T: Transaction>(tx: &T, keyspace: &Keyspace) -> Result<Option<Header>, Error> {
        let key = Header::key(keyspace);
        let Some(row) = tx.get(&key, Isolation::Serializable).await? else {
            let (begin, end) = (keyspace.store().bytes(), keyspace.store().range().1);
            let rows =
                tx.get_range_all(RangeOption::new(begin.to_vec(), end).limit(1), Isolation::Serializable);
            return match rows.await?.is_empty() {
                true => Ok(None),
                false => Err(Error::NoHeader),
            };
        };
        let foreign = || Error::foreign("the header of a record store", &key);
        let header = Header::decode(row).map_err(|_| foreign())?;
        let found = header.format_version.ok_or_else(foreign)?;
        if found > FORMAT_VERSION {
            return Err(Error::NewerFormat { found, known: FORMAT_VERSION });
        }
        let is_supported = !header.omit_unsplit_record_suffix() && header.record_count_key.is_none();
        match found == FORMAT_VERSION && is_supported {
            true if header.meta_data_version.is_some() => Ok(Some(header)),
            _ => Err(foreign()),
        }
    }

    pub fn write<T: Transaction>(&self, tx: &T, keyspace: &Keyspace) {
        tx.set(&Header::key(keyspace), &self.encode_to_vec());
    }

    fn key(keyspace: &Keyspace) -> Vec<u8> {
        keyspace.part(Part::Header).bytes().to_vec()
    }
}
