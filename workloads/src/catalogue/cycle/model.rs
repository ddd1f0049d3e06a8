//! The sequential model of the `cycle` workload: a permutation that stays one cycle.

/// Nodes 0 to N - 1, and for each the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    next: Vec<u32>,
}

impl Ring {
    /// The ring 0, 1, .. N - 1, and back to 0.
    pub fn new(nodes: u32) -> Ring {
        Ring { next: (1..nodes).chain((nodes > 0).then_some(0)).collect() }
    }

    /// The node that follows `node`.
    pub fn next(&self, node: u32) -> u32 {
        self.next[node as usize]
    }

    /// For each node, in the order of their numbers, the next one.
    pub fn links(&self) -> &[u32] {
        &self.next
    }

    /// Exchanges the second and the third of the four nodes that start with `first`.
    pub fn rotate(&mut self, first: u32) {
        let second = self.next(first);
        let third = self.next(second);
        let fourth = self.next(third);
        self.next[first as usize] = third;
        self.next[second as usize] = fourth;
        self.next[third as usize] = second;
    }
}

/// Why `links` are not one ring over all their nodes; `None` if they are.
pub fn not_one_ring(links: &[u32]) -> Option<String> {
    let mut at = 0;
    for step in 1..=links.len() {
        let Some(next) = links.get(at as usize) else {
            return Some(format!("after {} steps the ring leads to {at}, which is no node", step - 1));
        };
        at = *next;
        if at == 0 {
            return (step < links.len())
                .then(|| format!("the ring closes after {step} of {} nodes", links.len()));
        }
    }
    (!links.is_empty()).then(|| format!("the ring does not lead back to 0 within {} steps", links.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_keep_one_ring() {
        for nodes in 1..20 {
            let mut ring = Ring::new(nodes);
            assert_eq!(not_one_ring(ring.links()), None);
            if nodes < 3 {
                continue;
            }
            for i in 0..100 {
                let before = ring.clone();
                ring.rotate(i * 7 % nodes);
                assert_ne!(ring, before);
                assert_eq!(not_one_ring(ring.links()), None, "{nodes} nodes");
            }
        }
    }

    #[test]
    fn broken_rings_are_distinguished() {
        assert_eq!(not_one_ring(&[]), None);
        assert!(not_one_ring(&[1, 0, 2]).unwrap().contains("closes after 2 of 3"));
        assert!(not_one_ring(&[1, 2, 1]).unwrap().contains("does not lead back"));
        assert!(not_one_ring(&[1, 7, 0]).unwrap().contains("no node"));
        assert!(not_one_ring(&[1, 1]).unwrap().contains("does not lead back"));
    }
}
