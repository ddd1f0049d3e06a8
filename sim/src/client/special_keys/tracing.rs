//! The transaction's place in traces: an id, and a token by which its calls are found.

use super::{
    parts::{Kind, part},
    reader::{Reader, named},
    state::Token,
};
use crate::{client::transaction::State, system_keys::Uid};
use shaketable_tx::{Error, KeyValue, Result};

const ID: &[u8] = b"transaction_id";
const TOKEN: &[u8] = b"token";

impl Reader {
    pub(super) fn tracing(&self) -> Vec<KeyValue> {
        let span = self.state().span;
        let seed = self.world().seed;
        let uid = |what: &str| Uid::of(seed, &format!("{what} {} {}", self.inner.client.id.0, span.number));
        let token = match span.token {
            Some(Token::None) => 0,
            Some(Token::Another) => uid("token").0,
            None => uid("span").1,
        };
        let id = span.id.unwrap_or_else(|| uid("trace"));
        let part = part(Kind::Tracing);
        vec![named(part, TOKEN, token.to_string()), named(part, ID, id.to_string())]
    }
}

impl State {
    /// Changes the span, before anything else has been done.
    pub(super) fn set_tracing(&mut self, key: &[u8], name: &[u8], value: &[u8]) -> Result<()> {
        if self.size > 0 {
            self.special_failure("configure trace", "tracing options must be set first");
            // The commit finds it, and fails.
            self.special.set(key, None);
            return Ok(());
        }
        match (name, value) {
            (ID, _) => self.span.id = Some(Uid::parse(value).ok_or(Error::INTERNAL_ERROR)?),
            (TOKEN, b"true") => self.span.token = Some(Token::Another),
            (TOKEN, b"false") => self.span.token = Some(Token::None),
            (TOKEN, _) => {
                return Err(self.special_failure("configure trace token", "token must be set to true/false"));
            }
            _ => {}
        }
        Ok(())
    }
}
