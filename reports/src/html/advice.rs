//! The section of a page with advice on the traffic of its workloads.

use super::badge;
use crate::{
    advice::{AdviceEntry, Severity, WorkloadAdvice},
    text::{count, plural, shown_advice},
};
use maud::{Markup, html};

/// The advice for each workload, with the guidelines and their sources; nothing if there is none.
pub fn section(advice: &[WorkloadAdvice]) -> Markup {
    html! {
        @if !advice.is_empty() {
            section {
                h2 { "Advice" }
                p.note {
                    "What FoundationDB's documentation advises about the traffic of these layers without faults. It is no verdict."
                }
                @for workload in advice { (of_workload(workload)) }
            }
        }
    }
}

fn of_workload(workload: &WorkloadAdvice) -> Markup {
    let noted = workload.noted().count();
    let shown = shown_advice(workload);
    html! {
        details {
            summary {
                strong { (workload.workload) } ": "
                @if noted == 0 { "all is fine" } @else { (plural(noted as u64, "note", "notes")) }
                ", from " (plural(workload.runs, "run", "runs"))
            }
            @if !shown.is_empty() {
                div.scrolls tabindex="0" {
                    table.named {
                        thead { tr { th { "" } th { "topic" } th { "measured" } th { "guideline" } } }
                        tbody { @for entry in &shown { (row(entry)) } }
                    }
                }
            }
            @if noted > shown.len() { p.note { (count((noted - shown.len()) as u64)) " more in the JSON report" } }
        }
    }
}

fn row(entry: &AdviceEntry) -> Markup {
    let class = match entry.severity {
        Severity::Fine => "passed",
        Severity::Look => "unsure",
        Severity::Over => "failed",
    };
    html! {
        tr {
            td { (badge(class, entry.severity.name())) }
            th scope="row" { (entry.topic) }
            td { (entry.measured) }
            td { (entry.guideline) " (" (entry.source) ")" }
        }
    }
}
