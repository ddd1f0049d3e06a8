//! The form of a value that is shown by `Debug`: its structure without numbers, texts, and the elements of lists.

/// Where an expected and a found value differ first, as the forms of both sides there.
pub(super) fn difference(expected: &str, found: &str) -> String {
    let (expected, found) = (Term::of(expected), Term::of(found));
    let (mut one, mut other) = (&expected, &found);
    while one.is_like(other)
        && let Some((a, b)) = one.items.iter().zip(&other.items).find(|(a, b)| a.text != b.text)
    {
        (one, other) = (a, b);
    }
    format!("{} is not {}", other.form(), one.form())
}

/// The names of the variants in a list of values, or of a value.
pub(super) fn names(shown: &str) -> Vec<String> {
    let term = Term::of(shown);
    match (term.head, term.open) {
        ("", Some(_)) => term.items.iter().map(|item| item.head.to_owned()).collect(),
        (head, _) => vec![head.to_owned()],
    }
}

/// A value: `head`, `head(items)`, `head { items }`, `[items]`, or `key: value`, which has two items and no bracket.
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

    fn form(&self) -> String {
        let is_value = self.head.contains(|c: char| c.is_ascii_digit() || c == '"');
        let items = || self.items.iter().map(Term::form).collect::<Vec<_>>().join(", ");
        match self.open {
            Some('[') => "[]".to_owned(),
            Some('{') if self.head.is_empty() => "{}".to_owned(),
            Some(_) => format!("{}({})", self.head, items()),
            None if !self.items.is_empty() => self.items[1].form(),
            None if is_value => "_".to_owned(),
            None => self.head.to_owned(),
        }
    }
}

/// Reads terms. What does not look like one is read to its end, so that it always goes on.
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
    fn a_difference_has_the_forms_of_both_sides() {
        for (expected, found, form) in [
            ("Balance(100)", "Balance(99)", "_ is not _"),
            ("Balance(100)", "Refused(\"poor, and 1\")", "Refused(_) is not Balance(_)"),
            (
                "Done([First(Some((Index(0), None, \"a\")))])",
                "Done([First(None)])",
                "None is not Some((Index(_), None, _))",
            ),
            ("{1: \"a\", 2: \"b\"}", "{1: \"a\"}", "{} is not {}"),
            ("{1: A(1), 2: B { n: 2 }}", "{1: A(1), 2: C}", "C is not B(_)"),
            ("[1, 2]", "[1]", "[] is not []"),
            ("[A, B]", "[A, D(7)]", "D(_) is not B"),
            ("an answer by 3.1 s", "}) \"", " is not an"),
            ("", "(", "() is not "),
        ] {
            assert_eq!(difference(expected, found), form, "{expected} {found}");
        }
    }

    #[test]
    fn names_are_those_of_variants() {
        assert_eq!(names("[Pop, Push(1, [2]), Move { to: 3 }]"), ["Pop", "Push", "Move"]);
        assert_eq!(names("Swap(1)"), ["Swap"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_form(text in r#"[a1"\\(){}\[\],: é]{0,30}"#) {
            difference(&text, "a");
        }
    }
}
