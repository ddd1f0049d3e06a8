//! How an expected and a found value differ, without the values themselves. Both are as `Debug` shows them.

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
    fn the_outermost_list_says_which_answer_differs() {
        let element = |expected, found| difference(expected, found).element;
        assert_eq!(element("Done([A, B([1, 2])])", "Done([A, B([1, 3])])"), Some((1, 2)));
        assert_eq!(element("Done([A, B])", "Done([A])"), None);
        assert_eq!(element("Got(1)", "Got(2)"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_differs_from_another(text in r#"[a1"\\(){}\[\],: é]{0,30}"#) {
            difference(&text, "a");
        }
    }
}
