//! What was expected and what was found instead, side by side, with the words that differ marked.

use crate::text::cut;
use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

/// The most characters of a text that are compared and shown.
const MOST_CHARACTERS: usize = 20_000;

/// The two texts side by side; nothing if there is neither.
pub fn sides(expected: Option<&str>, found: Option<&str>) -> Markup {
    if expected.is_none() && found.is_none() {
        return html! {};
    }
    let shown = |text: Option<&'_ str>| cut(text.unwrap_or_default(), MOST_CHARACTERS).to_owned();
    let (left, right) = (shown(expected), shown(found));
    let is_cut = left.len() < expected.map_or(0, str::len) || right.len() < found.map_or(0, str::len);
    let diff = TextDiff::from_words(&left, &right);
    let side = |other: ChangeTag| {
        html! {
            pre {
                @for change in diff.iter_all_changes() {
                    @if change.tag() == ChangeTag::Equal { (change.value()) }
                    @else if change.tag() == other { mark { (change.value()) } }
                }
            }
        }
    };
    html! {
        div.sides {
            section.expected { h4 { "Expected" } (side(ChangeTag::Delete)) }
            section.found { h4 { "Found" } (side(ChangeTag::Insert)) }
        }
        @if is_cut {
            p.left-out { "The ends of these texts were left out of the page; the JSON report has them." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_differ_are_marked_on_their_side() {
        let html = sides(Some("item <4> of client 2"), Some("item <9> of client 2")).into_string();
        assert!(html.contains("item <mark>&lt;4&gt;</mark> of client 2"), "{html}");
        assert!(html.contains("item <mark>&lt;9&gt;</mark> of client 2"), "{html}");
        assert_eq!(sides(None, None).into_string(), "");
        assert!(!sides(None, Some("x")).into_string().is_empty());
    }
}
