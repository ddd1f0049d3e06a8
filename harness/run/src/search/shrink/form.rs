//! Forms: what is said without the values in it, and how an expected and a found value differ, which are as
//! `Debug` shows them.

/// Where an expected and a found value differ first.
#[derive(Debug)]
pub(super) struct Difference {
    /// The variants there, or `_ is not _` if only what is inside of them differs.
    pub(super) form: String,
    /// The element in the outermost list, and how many elements that list has.
    pub(super) element: Option<(usize, usize)>,
}

/// Compares two values. What counts are the variants of an answer, or of an answer in a list of answers; an
/// absent value instead of another one, or a shorter list, is as different as another number.
pub(super) fn difference(expected: &str, found: &str) -> Difference {
    let (expected, found) = (Term::of(expected), Term::of(found));
    let (mut one, mut other, mut element) = (&expected, &found, None);
    while one.is_like(other)
        && let Some(at) = one.items.iter().zip(&other.items).position(|(a, b)| a.text != b.text)
    {
        match (one.open, one.is_variant()) {
            (Some('['), _) if element.is_none() => element = Some((at, one.items.len())),
            (Some('('), true) if one.items.len() == 1 => {}
            _ => break,
        }
        (one, other) = (&one.items[at], &other.items[at]);
    }
    let form = match one.is_variant() && other.is_variant() && one.head != other.head {
        true => format!("{} is not {}", other.head, one.head),
        false => "_ is not _".to_owned(),
    };
    Difference { form, element }
}

/// A text without its values: numbers, quoted and escaped text, `true` and `false`, and what is in brackets.
/// Several values in a row are as one.
pub(super) fn of_text(text: &str) -> String {
    let (mut form, mut rest) = (String::new(), text);
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return form };
        let piece = match first {
            '"' => quoted(rest),
            '(' | '[' | '{' => bracketed(rest),
            ',' | ';' | '.' | ':' | '`' | '\'' | ')' | ']' | '}' => first.len_utf8(),
            _ => word(rest),
        };
        let (taken, after) = rest.split_at(piece);
        rest = after;
        let is_value = match first {
            '"' | '(' | '[' | '{' => true,
            _ => {
                taken.contains(|c: char| c.is_numeric() || c == '\\')
                    || matches!(taken, "true" | "false" | "None")
            }
        };
        let shown = if is_value { VALUE } else { taken };
        let is_repeated = is_value && form.trim_end_matches([' ', ',']).ends_with(VALUE);
        match is_repeated {
            // A list of values is one.
            true => form.truncate(form.trim_end_matches([' ', ',']).len()),
            false => {
                form += if form.is_empty() { "" } else { " " };
                form += shown;
            }
        }
    }
}

/// What stands for a value.
const VALUE: &str = "_";

/// The length of a quoted text.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// The length of what is in brackets, with them.
fn bracketed(text: &str) -> usize {
    let (mut depth, mut at) = (0u32, 0);
    while let Some(c) = text[at..].chars().next() {
        at += if c == '"' { quoted(&text[at..]) } else { c.len_utf8() };
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a word or a number: `1.5` and `it's` are one, and `3,` is one and a comma.
fn word(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| {
        let inner = matches!(c, '.' | ':' | '\'' | ',')
            && text[at + c.len_utf8()..].starts_with(char::is_alphanumeric);
        let punctuation = matches!(c, ',' | ';' | '.' | ':' | '`' | '\'') && !inner;
        let ends = c.is_whitespace() || punctuation || "\"()[]{}".contains(c);
        ends.then_some(at)
    };
    text.char_indices().skip(1).find_map(ends).unwrap_or(text.len())
}

/// A value: `head`, `head(items)`, `head { items }`, `[items]`, or `key: value`, which has two items and no
/// bracket.
#[derive(Debug)]
struct Term<'a> {
    text: &'a str,
    head: &'a str,
    open: Option<char>,
    items: Vec<Term<'a>>,
}

impl<'a> Term<'a> {
    fn of(shown: &'a str) -> Term<'a> {
        Parser { rest: shown }.term()
    }

    /// Whether both have the same name and as many items.
    fn is_like(&self, other: &Term<'_>) -> bool {
        (self.head, self.open, self.items.len()) == (other.head, other.open, other.items.len())
    }

    /// Whether it is the variant of an enum that is not an `Option`.
    fn is_variant(&self) -> bool {
        self.head.starts_with(char::is_uppercase) && !matches!(self.head, "Some" | "None")
    }
}

/// Parses terms. Text that is not a term is skipped to its end, so that the parser always makes progress.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self, what: &[char]) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || what.contains(&c));
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// A value, or a key with its value.
    fn term(&mut self) -> Term<'a> {
        self.skip(&[]);
        let whole = self.rest;
        let one = self.value();
        self.skip(&[]);
        if !self.rest.starts_with(':') {
            return one;
        }
        self.take(1);
        let items = vec![one, self.term()];
        Term { text: &whole[..whole.len() - self.rest.len()], head: "", open: None, items }
    }

    fn value(&mut self) -> Term<'a> {
        let whole = self.rest;
        let head = self.head();
        let before = self.rest;
        self.skip(&[]);
        let open = self.rest.chars().next().filter(|c| matches!(c, '(' | '[' | '{'));
        let mut items = Vec::new();
        match open {
            None => self.rest = before,
            Some(_) => {
                self.take(1);
                loop {
                    self.skip(&[',']);
                    match self.rest.chars().next() {
                        None => break,
                        Some(')' | ']' | '}') => {
                            self.take(1);
                            break;
                        }
                        Some(_) => {
                            let length = self.rest.len();
                            items.push(self.term());
                            if self.rest.len() == length {
                                self.take(self.rest.chars().next().map_or(0, char::len_utf8));
                            }
                        }
                    }
                }
            }
        }
        Term { text: &whole[..whole.len() - self.rest.len()], head, open, items }
    }

    /// A name, a number, or a quoted text.
    fn head(&mut self) -> &'a str {
        let mut quoted = None;
        let mut escaped = false;
        for (at, c) in self.rest.char_indices() {
            match (quoted, c) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(quote), c) if c == quote => return self.take(at + 1),
                (Some(_), _) => {}
                (None, '"') => quoted = Some(c),
                (None, ',' | ':' | '(' | ')' | '[' | ']' | '{' | '}') => return self.take(at),
                (None, c) if c.is_whitespace() => return self.take(at),
                (None, _) => {}
            }
        }
        self.take(self.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_variants_of_both_sides() {
        for (expected, found, form) in [
            ("Balance(100)", "Balance(99)", "_ is not _"),
            ("Balance(100)", "Refused(\"poor, and 1\")", "Refused is not Balance"),
            ("Done([First(Some((Index(0), None, \"a\")))])", "Done([First(None)])", "_ is not _"),
            (
                "Done([First(Some(1)), Nothing])",
                "Done([First(Some(1)), Second { of: 2 }])",
                "Second is not Nothing",
            ),
            ("{1: \"a\", 2: \"b\"}", "{1: \"a\"}", "_ is not _"),
            ("{1: A(1), 2: B { n: 2 }}", "{1: A(1), 2: C}", "_ is not _"),
            ("Read([A(1), B])", "Read([A(1)])", "_ is not _"),
            ("[A, B]", "[A, D(7)]", "D is not B"),
            ("an answer by 3.1 s", "}) \"", "_ is not _"),
            ("", "(", "_ is not _"),
        ] {
            assert_eq!(difference(expected, found).form, form, "{expected} {found}");
        }
    }

    #[test]
    fn a_text_keeps_its_words_and_marks() {
        for (text, form) in [
            ("RARE: 1 of 22 are left", "RARE : _ of _ are left"),
            ("the entry \"a \\\" b\" of no. 5 is stale", "the entry _ of no . _ is stale"),
            ("answered Done([A(1), B]) where", "answered Done _ where"),
            ("rows 1, 2, 3 and 4 (of 9) differ", "rows _ and _ differ"),
            ("rows 1, 2 and 4 differ", "rows _ and _ differ"),
            ("key \\x02a\\x00, 1.5 s; it's true", "key _ s ; it's _"),
            (
                "assertion `left == right` failed\n  left: 3\n right: [4, 5]",
                "assertion ` left == right ` failed left : _ right : _",
            ),
            ("\"unclosed and [1", "_"),
            ("a [b (c", "a _"),
            ("x) y", "x ) y"),
            ("", ""),
        ] {
            assert_eq!(of_text(text), form, "{text}");
        }
        assert_ne!(of_text("EASY: 31 is more than 30"), of_text("RARE: 1 of 2 are left"));
    }

    #[test]
    fn the_outermost_list_says_which_answer_differs() {
        let element = |expected, found| difference(expected, found).element;
        assert_eq!(element("Done([A, B([1, 2])])", "Done([A, B([1, 3])])"), Some((1, 2)));
        assert_eq!(element("Done([A, B])", "Done([A])"), None);
        assert_eq!(element("Got(1)", "Got(2)"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_differs_from_another(text in r#"[a1"\\(){}\[\],: é]{0,30}"#) {
            of_text(&text);
            difference(&text, "a");
        }
    }
}
