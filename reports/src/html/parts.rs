//! Small parts that several pages have.

use maud::{Markup, html};

/// A verdict or a state as a coloured word.
pub fn badge(class: &str, text: &str) -> Markup {
    html! { span.badge.(class) { (text) } }
}

/// Names with their values.
pub fn facts(rows: &[(&str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in rows {
                @if !value.is_empty() {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}
