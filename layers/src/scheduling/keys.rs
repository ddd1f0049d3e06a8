//! The key schema of class scheduling.
//!
//! ```text
//! root                                  a subspace of the application's choice
//! ├── ("class", class)            = (seats left,)   one for each offered class
//! └── ("attends", student, class) = ""              one for each sign-up
//! ```
//!
//! Keys and values are tuples. All sign-ups of one student are adjacent, so that one short range read counts
//! them. At every version, for each class, the seats left and the sign-ups add up to the number of seats with
//! which the class was added.

use super::error::{Error, Refusal};
use crate::tx::RangeOption;
use foundationdb_tuple::{Subspace, pack, unpack};

/// The maximum length of class and student names, in bytes. Two names and the prefixes stay far below
/// FoundationDB's key limit of 10,000 bytes, and close to the recommended 1 kB.
pub const MAX_NAME: usize = 400;

/// The subspaces of one scheduling application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    course: Subspace,
    attends: Subspace,
}

impl Keys {
    /// The schema in `root`.
    pub fn new(root: &Subspace) -> Keys {
        Keys { course: root.subspace(&"class"), attends: root.subspace(&"attends") }
    }

    /// The key that holds the seats left in `class`.
    pub fn course(&self, class: &str) -> Vec<u8> {
        self.course.pack(&(class,))
    }

    /// Every class, in the order of their names.
    pub fn courses(&self) -> RangeOption {
        self.course.range().into()
    }

    /// The class of a key of [`courses`](Keys::courses).
    pub fn class_of_course(&self, key: &[u8]) -> Result<String, Error> {
        self.course.unpack::<(String,)>(key).map(|(class,)| class).map_err(|_| Error::corrupt(key))
    }

    /// The key that exists while `student` is signed up for `class`.
    pub fn attendance(&self, student: &str, class: &str) -> Vec<u8> {
        self.attends.pack(&(student, class))
    }

    /// Every sign-up of one student, in the order of the classes' names.
    pub fn attendances_of(&self, student: &str) -> RangeOption {
        self.attends.subspace(&(student,)).range().into()
    }

    /// Every sign-up, by student and class.
    pub fn attendances(&self) -> RangeOption {
        self.attends.range().into()
    }

    /// The student and the class of a key of [`attendances`](Keys::attendances).
    pub fn student_and_class(&self, key: &[u8]) -> Result<(String, String), Error> {
        self.attends.unpack(key).map_err(|_| Error::corrupt(key))
    }
}

/// The value of a class with this many seats left.
pub fn pack_seats(seats: u32) -> Vec<u8> {
    pack(&(seats,))
}

/// The number of seats left in the value of `key`.
pub fn unpack_seats(key: &[u8], value: &[u8]) -> Result<u32, Error> {
    unpack::<(u32,)>(value).map(|(seats,)| seats).map_err(|_| Error::corrupt(key))
}

/// Refuses a name that is too long for a key.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME { Err(Refusal::NameTooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn keys() -> Keys {
        Keys::new(&Subspace::from("scheduling"))
    }

    fn contains(range: &RangeOption, key: &[u8]) -> bool {
        range.begin.key.as_ref() <= key && key < range.end.key.as_ref()
    }

    #[test]
    fn keys_match_the_documented_schema() {
        let keys = keys();
        assert_eq!(keys.course("2:00 chem lab"), pack(&("scheduling", "class", "2:00 chem lab")));
        assert_eq!(keys.attendance("s1", "c"), pack(&("scheduling", "attends", "s1", "c")));
        assert_eq!(keys.class_of_course(&keys.course("c")), Ok("c".into()));
        assert_eq!(keys.student_and_class(&keys.attendance("s", "c")), Ok(("s".into(), "c".into())));
    }

    #[test]
    fn ranges_hold_their_own_keys_and_no_others() {
        let keys = keys();
        let of_s1 = keys.attendances_of("s1");
        assert!(contains(&of_s1, &keys.attendance("s1", "")));
        assert!(contains(&of_s1, &keys.attendance("s1", "\u{10ffff}")));
        assert!(!contains(&of_s1, &keys.attendance("s10", "a")));
        assert!(!contains(&of_s1, &keys.attendance("s", "1")));
        assert!(contains(&keys.attendances(), &keys.attendance("s10", "a")));
        assert!(!contains(&keys.attendances(), &keys.course("a")));
        assert!(contains(&keys.courses(), &keys.course("a")));
        assert!(!contains(&keys.courses(), &keys.attendance("a", "a")));
    }

    #[test]
    fn seats_survive_packing_and_damage_is_named() {
        for seats in [0, 1, 99, 100, 255, 256, u32::MAX] {
            assert_eq!(unpack_seats(b"k", &pack_seats(seats)), Ok(seats));
        }
        let damaged = Error::Corrupt { key: Bytes::from_static(b"k") };
        assert_eq!(unpack_seats(b"k", b""), Err(damaged.clone()));
        assert_eq!(unpack_seats(b"k", &pack(&(-1,))), Err(damaged.clone()));
        assert_eq!(unpack_seats(b"k", &pack(&("x",))), Err(damaged));
    }

    #[test]
    fn long_names_are_refused_before_anything_is_written() {
        assert_eq!(check_name(&"x".repeat(MAX_NAME)), Ok(()));
        assert_eq!(check_name(&"x".repeat(MAX_NAME + 1)), Err(Refusal::NameTooLong));
    }
}
