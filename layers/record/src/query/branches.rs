//! Plans of several scans: intersections, and the branches of an `or`.

use super::{
    columns::{Column, same},
    component::QueryComponent,
    matching::{Match, gives},
    normal::{Conjunct, and},
    plan::Plan,
    planner::{Access, Planner, is_unique, names},
};

impl Planner<'_> {
    /// The intersection of the chosen index with others that bind what it leaves.
    pub fn intersected(
        &self,
        chosen: Match<'_>,
        others: &[Match<'_>],
        conjuncts: &[Conjunct],
    ) -> Option<Access> {
        let usable =
            |found: &Match<'_>| found.can_merge() && found.candidate.index.is_some() && found.equal() > 0;
        if !usable(&chosen) || is_unique(&chosen) {
            return None;
        }
        let mut all = vec![&chosen];
        let mut exact = chosen.exact.clone();
        for other in others {
            let asked = conjuncts.len() - usize::from(self.one_type.is_some());
            let adds = other.exact.iter().any(|i| *i < asked && !exact.contains(i));
            let sees = !other.candidate.blind || chosen.candidate.blind;
            if adds && sees && usable(other) && same(&other.remaining, &chosen.remaining) {
                exact.extend(&other.exact);
                all.push(other);
            }
        }
        if all.len() == 1 {
            return None;
        }
        Some(Access {
            plan: Plan::Intersection {
                children: all.iter().map(|found| self.scan(found)).collect(),
                order: names(&chosen.remaining),
                reverse: self.query.reverse,
            },
            loaded: false,
            residual: self.residual(conjuncts, |i| exact.contains(&i)),
            other_types: all.iter().all(|found| found.candidate.other_types)
                && !(self.one_type.is_some() && exact.contains(&(conjuncts.len() - 1))),
            duplicates: false,
            order: Some(chosen.remaining.clone()),
            bounded: true,
            covering: None,
        })
    }

    /// The branches of an `or`, each found on its own.
    pub fn by_branches(&self, filter: &QueryComponent, sort: &[Column], left: &mut usize) -> Option<Access> {
        let parts = match filter {
            QueryComponent::And(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        let ors = parts.iter().enumerate().filter_map(|(i, part)| match part {
            QueryComponent::Or(branches) => Some((i, branches)),
            _ => None,
        });
        for (i, branches) in ors {
            if branches.len() > *left {
                continue;
            }
            *left -= branches.len();
            let with = |branch: &QueryComponent| {
                let others = parts.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, part)| part.clone());
                and(others.chain([branch.clone()]))
            };
            let conditions: Vec<_> = branches.iter().map(with).collect();
            let found: Option<Vec<_>> = conditions
                .iter()
                .map(|condition| self.access(condition, sort, left).filter(|access| access.bounded))
                .collect();
            if let Some(access) = found.and_then(|found| self.together(conditions, found, sort)) {
                return Some(access);
            }
        }
        None
    }

    /// The rows of all branches: merged if they are ordered alike, otherwise in turn if no order is asked
    /// for.
    fn together(
        &self,
        conditions: Vec<QueryComponent>,
        found: Vec<Access>,
        sort: &[Column],
    ) -> Option<Access> {
        let order = found.first()?.order.clone();
        let alike = |access: &Access| match (&access.order, &order) {
            (Some(one), Some(other)) => same(one, other),
            _ => false,
        };
        let all_alike = found.iter().all(alike);
        let merged = order.filter(|_| all_alike);
        // What has one value in a branch may have another one in the next: the sort is that of the merged
        // rows.
        let primary_key = self.candidates.first().and_then(|records| records.primary_key.as_deref());
        let sorted = |order: &Vec<Column>| gives(order, primary_key, sort, &self.constants);
        if !sort.is_empty() && !merged.as_ref().is_some_and(sorted) {
            return None;
        }
        let duplicates = found.iter().any(|access| access.duplicates);
        let entries = |access: &Access| !access.loaded && access.residual.is_empty();
        if merged.is_some() && found.iter().all(entries) {
            return Some(Access {
                loaded: false,
                residual: Vec::new(),
                other_types: found.iter().any(|access| access.other_types),
                duplicates,
                bounded: true,
                covering: None,
                plan: self.union(found.into_iter().map(|access| access.plan).collect(), merged.as_deref()?),
                order: merged,
            });
        }
        let children =
            found.into_iter().map(|access| self.finish(Access { covering: None, ..access }, false));
        let plan = match &merged {
            Some(order) => self.union(children.collect(), order),
            None => Plan::Either { branches: conditions.into_iter().zip(children).collect() },
        };
        Some(Access {
            plan,
            loaded: true,
            residual: Vec::new(),
            other_types: false,
            duplicates,
            order: merged,
            bounded: true,
            covering: None,
        })
    }

    fn union(&self, children: Vec<Plan>, order: &[Column]) -> Plan {
        Plan::Union { children, order: names(order), reverse: self.query.reverse }
    }
}
