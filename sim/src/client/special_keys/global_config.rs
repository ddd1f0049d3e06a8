//! The configuration that all clients share: names, and values that are tuples of one element
//! (`fdbclient/GlobalConfig.actor.cpp`).
//!
//! FoundationDB's clients learn about a change a moment later; this one reads the stored values.

use super::{
    parts::{Kind, SpecialKeyRange, part},
    reader::{Reader, named},
};
use crate::{
    client::keys::single_key,
    proto::{KeyRange, Mutation},
};
use bytes::Bytes;
use foundationdb_tuple::{Element, unpack};
use shaketable_tx::{KeyValue, MutationType, Result};

const VALUES: &[u8] = b"\xff/globalConfig/k/";
const VALUES_END: &[u8] = b"\xff/globalConfig/k0";
const VERSION: &[u8] = b"\xff/globalConfig/v";
/// A versionstamp, and where it is.
const STAMP: &[u8] = b"0123456789\0\0\0\0";

/// A value as text; `None` if it is no tuple of such an element.
fn shown(value: &[u8]) -> Option<Bytes> {
    let elements: Vec<Element<'_>> = unpack(value).ok()?;
    Some(match elements.into_iter().next()? {
        Element::String(text) => text.into_owned().into(),
        Element::Int(n) => n.to_string().into(),
        Element::Bool(bit) => u8::from(bit).to_string().into(),
        Element::Float(n) => format!("{n:.6}").into(),
        Element::Double(n) => format!("{n:.6}").into(),
        _ => return None,
    })
}

impl Reader {
    pub(super) async fn global_config(&self) -> Result<Vec<KeyValue>> {
        let part = part(Kind::GlobalConfig);
        let rows = self.range(VALUES).await?.into_iter();
        Ok(rows.filter_map(|row| Some(named(part, &row.key[VALUES.len()..], shown(&row.value)?))).collect())
    }

    pub(super) async fn set_global_config(
        &self,
        part: &SpecialKeyRange,
        written: Vec<(KeyRange, Option<Bytes>)>,
    ) -> Result<()> {
        let begin = part.range().begin;
        let system = |key: &[u8]| match key.strip_prefix(&begin[..]) {
            Some(name) => [VALUES, name].concat(),
            None => VALUES_END.to_vec(),
        };
        let mut state = self.state();
        for (range, value) in written {
            match value {
                Some(value) => state.set_system(&system(&range.begin), value),
                None => state.clear_system(KeyRange::new(system(&range.begin), system(&range.end))),
            }
        }
        let version = Mutation::Atomic(VERSION.into(), STAMP.into(), MutationType::SetVersionstampedValue);
        state.write_system(version, single_key(VERSION));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::pack;

    #[test]
    fn values_are_shown_as_text() {
        let text = |packed: Vec<u8>| shown(&packed).map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(text(pack(&("on",))).as_deref(), Some("on"));
        assert_eq!(text(pack(&(7,))).as_deref(), Some("7"));
        assert_eq!(text(pack(&(0.5,))).as_deref(), Some("0.500000"));
        assert_eq!(text(pack(&(true,))).as_deref(), Some("1"));
        assert_eq!(text(b"none".to_vec()), None);
    }
}
