//! The kind of an operation: the name of its variant, as it is serialized.

use serde::{
    Serialize,
    ser::{Impossible, SerializeSeq, SerializeTuple, Serializer},
};
use std::fmt;

/// The names of the variants of a value: of an enum its variant, of a struct its name, of a list those of its
/// elements. What is within a variant is not looked at.
pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Vec<&'static str> {
    let mut names = Names::default();
    // An error ends the visit of a value whose name is noted.
    let _ = value.serialize(&mut names);
    names.0
}

#[derive(Default)]
struct Names(Vec<&'static str>);

impl Names {
    fn note<T>(&mut self, name: &'static str) -> Result<T, fmt::Error> {
        self.0.push(name);
        Err(fmt::Error)
    }
}

/// Values without a name.
macro_rules! nameless {
    ($($method:ident($($arg:ty),*) -> $ok:ty;)*) => {
        $(fn $method(self, $(_: $arg),*) -> Result<$ok, fmt::Error> { Err(fmt::Error) })*
    };
}

type No = Impossible<(), fmt::Error>;

impl<'a> Serializer for &'a mut Names {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = &'a mut Names;
    type SerializeTuple = &'a mut Names;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    nameless! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_map(Option<usize>) -> No;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(self)
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<(), fmt::Error> {
        self.note(name)
    }
    fn serialize_unit_variant(self, _: &str, _: u32, name: &'static str) -> Result<(), fmt::Error> {
        self.note(name)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: &T,
    ) -> Result<(), fmt::Error> {
        self.note(name)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        _: u32,
        name: &'static str,
        _: &T,
    ) -> Result<(), fmt::Error> {
        self.note(name)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, fmt::Error> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<No, fmt::Error> {
        self.note(name)
    }
    fn serialize_tuple_variant(
        self,
        _: &str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<No, fmt::Error> {
        self.note(name)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<No, fmt::Error> {
        self.note(name)
    }
    fn serialize_struct_variant(
        self,
        _: &str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<No, fmt::Error> {
        self.note(name)
    }
}

impl SerializeSeq for &mut Names {
    type Ok = ();
    type Error = fmt::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        let _ = value.serialize(&mut **self);
        Ok(())
    }
    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

impl SerializeTuple for &mut Names {
    type Ok = ();
    type Error = fmt::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        SerializeSeq::serialize_element(self, value)
    }
    fn end(self) -> Result<(), fmt::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    enum Op {
        Pop,
        Push(Vec<u8>),
        Swap(u8, Box<Op>),
        Move {
            to: u8,
        },
        #[serde(rename = "put")]
        Put,
    }

    #[derive(Serialize)]
    struct Rotate {
        by: u8,
    }

    #[test]
    fn kinds_are_names_of_variants() {
        let swap = || Op::Swap(1, Box::new(Op::Pop));
        assert_eq!([of(&Op::Pop), of(&Op::Push(vec![1])), of(&swap())], [["Pop"], ["Push"], ["Swap"]]);
        assert_eq!([of(&Op::Put), of(&Rotate { by: 1 }), of(&Some(Op::Pop))], [["put"], ["Rotate"], ["Pop"]]);
        assert_eq!(of(&vec![Op::Pop, Op::Move { to: 2 }, swap()]), ["Pop", "Move", "Swap"]);
        assert_eq!(of(&(3, Op::Pop)), ["Pop"]);
        assert_eq!(of(&vec![1, 2]), Vec::<&str>::new());
    }
}
