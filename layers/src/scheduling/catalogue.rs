//! The tutorial's catalogue: 1,620 classes such as "9:00 chem for dummies".

/// Seats of each class in the tutorial.
pub const SEATS: u32 = 100;

const LEVELS: [&str; 9] =
    ["intro", "for dummies", "remedial", "101", "201", "301", "mastery", "lab", "seminar"];
const TYPES: [&str; 10] = ["chem", "bio", "cs", "geometry", "calc", "alg", "film", "music", "art", "dance"];
const HOURS: std::ops::Range<u32> = 2..20;

/// Every class name: 18 times, 10 types, 9 levels, in the tutorial's order.
pub fn class_names() -> impl Iterator<Item = String> {
    HOURS.flat_map(|hour| {
        TYPES.iter().flat_map(move |ty| LEVELS.iter().map(move |level| format!("{hour}:00 {ty} {level}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_1620_distinct_classes() {
        let names: Vec<String> = class_names().collect();
        assert_eq!(names.len(), 1620);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1620);
        assert_eq!(names[0], "2:00 chem intro");
        assert_eq!(names[1619], "19:00 dance seminar");
        assert!(names.iter().any(|n| n == "9:00 chem for dummies"));
    }
}
