//! Reports as HTML: one page with everything in it, for a browser without a network.
//!
//! A page is written for reading: tables, stories and claims are plain HTML. Time lines are drawn by the
//! scripts of the page from data that is embedded as JSON ([`data`]). A page has at most [`LIMIT`] bytes;
//! what does not fit is left out, and the page says so ([`room`]).

mod advice;
mod bugs;
mod chart;
mod data;
mod diff;
mod failure;
mod glance;
mod parts;
mod room;
mod sweep;
mod watch;

use crate::document::{Body, Document};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use parts::{badge, facts};
use room::Room;

/// The maximum size of a page, bytes.
pub const LIMIT: usize = 2_000_000;

/// The bytes for time lines, stories and plans that are tried one after another until a page is within
/// [`LIMIT`].
const ROOMS: [usize; 4] = [1_700_000, 1_000_000, 300_000, 0];

const STYLE: &str = include_str!("page.css");
/// The scripts in the order in which they use each other.
const SCRIPTS: [&str; 7] = [
    include_str!("history.js"),
    include_str!("layout.js"),
    include_str!("drawing.js"),
    include_str!("details.js"),
    include_str!("timeline.js"),
    include_str!("copy.js"),
    include_str!("page.js"),
];
/// Those of a sweep that goes on.
const WATCH_SCRIPTS: [&str; 2] = [include_str!("copy.js"), include_str!("watch.js")];

/// Without these, a page could fetch something: it has all that it needs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// The page of a sweep that goes on asks its server for what is new. Its icon is empty, so that no browser
/// asks for one.
const WATCH_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:";

/// The document as a page. Returns `None` for reports other than those of sweeps, also of one that goes on,
/// of single runs and of planted bugs.
pub fn render(document: &Document) -> Option<String> {
    let mut page = None;
    for size in ROOMS {
        page = Some(page_with(document, size)?);
        if page.as_ref().is_some_and(|page| page.len() <= LIMIT) {
            break;
        }
    }
    page
}

/// The page with so many bytes for what can be left out.
fn page_with(document: &Document, size: usize) -> Option<String> {
    let commit = &document.commit;
    let (title, main) = match &document.body {
        Body::Sweep(sweep) => ("sweep".to_owned(), sweep::main(sweep, commit, &Room::for_sweep(size, sweep))),
        Body::Replay(run) => {
            let room = Room::new(size, 1);
            (format!("{}, seed {}", run.workload, run.seed), failure::main(run, commit, &room))
        }
        Body::Bugs(bugs) => ("planted bugs".to_owned(), bugs::main(bugs, commit)),
        Body::Watch(report) => (watch::title(report), watch::main(report, commit)),
        Body::Explore(_)
        | Body::Advice(_)
        | Body::Regressions(_)
        | Body::Bench(_)
        | Body::Conformance(_)
        | Body::Contract(_) => return None,
    };
    let is_watch = matches!(document.body, Body::Watch(_));
    let (policy, scripts) =
        if is_watch { (WATCH_POLICY, &WATCH_SCRIPTS[..]) } else { (POLICY, &SCRIPTS[..]) };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy);
                @if is_watch { link rel="icon" href="data:,"; }
                title { (title) " · shaketable" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (main) (advice::section(&document.advice)) }
                footer { "shaketable " (document.version) ", commit " (commit) }
                script { (PreEscaped(script(scripts))) }
            }
        }
    };
    Some(page.into_string())
}

/// The scripts as one, whose names are not those of the page.
fn script(parts: &[&str]) -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();", parts.join("\n"))
}

/// A command with a button that copies it.
fn command(what: &str, line: &str) -> Markup {
    html! {
        div.command {
            span.what { (what) }
            code { (line) }
            button.copy type="button" { "Copy" }
        }
    }
}

/// Text in lines, of which at most `characters` are shown.
fn lines(text: &str, characters: usize) -> Markup {
    let shown = crate::text::cut(text, characters);
    html! {
        pre { (shown) }
        @if shown.len() < text.len() {
            p.left-out { "The rest of this text was left out of the page; the JSON report has it." }
        }
    }
}
