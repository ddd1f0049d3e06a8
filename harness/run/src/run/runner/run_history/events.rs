//! What befell the machines, and the acts of the run.

use shaketable_reports::{EventEntry, EventKind};
use shaketable_sim::{
    faults::Family,
    ids::NodeId,
    trace::{Event, Kind},
};
use std::collections::BTreeMap;

/// Faults, deaths, pauses, recoveries and acts, in the order in which they began.
pub(super) fn events(events: &[Event], machine: &dyn Fn(NodeId) -> String) -> Vec<EventEntry> {
    let mut entries: Vec<EventEntry> = Vec::new();
    // The conditions that last: the kind and the machine, and the place of the entry.
    let mut open: BTreeMap<(u8, NodeId), usize> = BTreeMap::new();
    const DEAD: u8 = 0;
    const PAUSED: u8 = 1;
    const RECOVERY: u8 = 2;
    for event in events {
        let name = (event.node != NodeId(0)).then(|| machine(event.node));
        let client = name.as_deref().and_then(|name| name.strip_prefix("client-")?.parse().ok());
        let of = |name: &Option<String>| name.clone().unwrap_or_else(|| "the cluster".to_owned());
        let (kind, text, opens) = match event.kind {
            Kind::Fault => {
                let Some(family) = Family::ALL.iter().find(|family| **family as u64 == event.a) else {
                    continue;
                };
                (EventKind::Fault, family.name().to_owned(), None)
            }
            Kind::Kill => (EventKind::Dead, format!("{} is killed", of(&name)), Some(DEAD)),
            Kind::Pause => (EventKind::Paused, format!("{} is paused", of(&name)), Some(PAUSED)),
            Kind::RecoveryBegin if event.a > 1 => {
                (EventKind::Recovery, "a recovery".to_owned(), Some(RECOVERY))
            }
            Kind::Act => {
                let acts = ["setup", "hurt", "heal", "check"];
                let Some(act) = (event.a as usize).checked_sub(1).and_then(|at| acts.get(at)) else {
                    continue;
                };
                (EventKind::Act, (*act).to_owned(), None)
            }
            Kind::Start | Kind::Resume | Kind::RecoveryEnd => {
                let (closes, node) = match event.kind {
                    Kind::Start => (DEAD, event.node),
                    Kind::Resume => (PAUSED, event.node),
                    _ => (RECOVERY, NodeId(0)),
                };
                if let Some(at) = open.remove(&(closes, node)) {
                    entries[at].until = Some(event.at);
                }
                continue;
            }
            _ => continue,
        };
        if let Some(opens) = opens {
            let node = if opens == RECOVERY { NodeId(0) } else { event.node };
            // A recovery that begins again goes on.
            if opens == RECOVERY && open.contains_key(&(opens, node)) {
                continue;
            }
            open.insert((opens, node), entries.len());
        }
        entries.push(EventEntry { kind, at: event.at, until: None, client, machine: name, text });
    }
    entries
}
