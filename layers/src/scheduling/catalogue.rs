//! The tutorial's catalogue: 1,620 classes such as "9:00 chem for dummies".

/// The seats of each class in the tutorial.
pub const SEATS: u32 = 100;

const LEVELS: [&str; 9] =
    ["intro", "for dummies", "remedial", "101", "201", "301", "mastery", "lab", "seminar"];
const TYPES: [&str; 10] = ["chem", "bio", "cs", "geometry", "calc", "alg", "film", "music", "art", "dance"];
/// The number of classes.
pub const CLASSES: usize = 18 * TYPES.len() * LEVELS.len();

/// The name of a class by its position in the tutorial's order: by time (2:00 to 19:00), then type, then
/// level. Positions after the last class continue with later hours.
pub fn class_name(place: usize) -> String {
    let (rest, level) = (place / LEVELS.len(), LEVELS[place % LEVELS.len()]);
    let (hour, kind) = (2 + rest / TYPES.len(), TYPES[rest % TYPES.len()]);
    format!("{hour}:00 {kind} {level}")
}

/// Every class name, in the tutorial's order.
pub fn class_names() -> impl Iterator<Item = String> {
    (0..CLASSES).map(class_name)
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
