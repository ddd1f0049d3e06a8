//! The positions of several cursors as one.

use crate::{
    cursor::Continuation,
    error::Error,
    value::{IntoValue, Tuple, Value},
};
use bytes::Bytes;
use foundationdb_tuple::Element;

const WHAT: &str = "query";

/// The positions of several cursors, and a number, as one: at the end if all are.
pub(super) fn join(number: usize, positions: &[Continuation]) -> Continuation {
    let element = |position: &Continuation| match position {
        Continuation::Start => Element::Nil,
        Continuation::After(bytes) => bytes.to_vec().into_value(),
        Continuation::End => Element::Bool(true),
    };
    let number = Element::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let all: Tuple = [number].into_iter().chain(positions.iter().map(element)).collect();
    Continuation::After(all.pack().into())
}

/// The number and the positions that [`join`] took; at the start all cursors are.
pub(super) fn split(position: &Continuation, cursors: usize) -> Result<(usize, Vec<Continuation>), Error> {
    let refused = || Error::Continuation(WHAT);
    let bytes = match position {
        Continuation::Start => return Ok((0, vec![Continuation::Start; cursors])),
        Continuation::After(bytes) => bytes,
        Continuation::End => return Ok((0, vec![Continuation::End; cursors])),
    };
    let mut elements = Tuple::unpack(bytes).ok_or_else(refused)?.into_iter();
    let number = match elements.next() {
        Some(Element::Int(number)) => usize::try_from(number).map_err(|_| refused())?,
        _ => return Err(refused()),
    };
    let position = |element: Value| match element {
        Element::Nil => Ok(Continuation::Start),
        Element::Bytes(bytes) => Ok(Continuation::After(Bytes::from(bytes.into_owned()))),
        Element::Bool(true) => Ok(Continuation::End),
        _ => Err(refused()),
    };
    let positions = elements.map(position).collect::<Result<Vec<_>, _>>()?;
    match positions.len() == cursors {
        true => Ok((number, positions)),
        false => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_positions_are_split_again() {
        let positions =
            [Continuation::Start, Continuation::After(Bytes::from_static(b"\x00\xff")), Continuation::End];
        let joined = join(2, &positions);
        assert_eq!(split(&joined, 3), Ok((2, positions.to_vec())));
        assert_eq!(split(&joined, 2), Err(Error::Continuation("query")));
        assert_eq!(split(&Continuation::Start, 1), Ok((0, vec![Continuation::Start])));
        let torn = Continuation::After(Bytes::from_static(b"\x01"));
        assert_eq!(split(&torn, 1), Err(Error::Continuation("query")));
    }
}
