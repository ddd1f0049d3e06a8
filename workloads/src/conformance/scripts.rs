//! Scripts of transactions, drawn from a seed, whose results depend only on the scripts: not on time, chance
//! or versions.

use serde_json::{Value, json};
use shaketable_fidelity::conformance::{Bytes, Case, Selector, Step};
use shaketable_sim::seed::{Seed, Stream};

/// The kinds of scripts, each with its own file of recordings.
pub const KINDS: [&str; 6] = ["ryw", "conflict", "range", "atomic", "stamp", "errors"];

/// Keys that collide, nest and touch the ends of the keyspace.
const KEYS: &[&[u8]] =
    &[b"", b"\0", b"a", b"a\0", b"aa", b"b", b"b\0", b"b\xff", b"c", b"ca", b"d", b"e", b"\xfe"];

/// Atomic operations, by their names in recordings.
const MUTATIONS: [&str; 10] = [
    "add",
    "bit_and",
    "bit_or",
    "bit_xor",
    "append_if_fits",
    "max",
    "min",
    "byte_min",
    "byte_max",
    "compare_and_clear",
];

/// Streaming modes, by their names in recordings.
const MODES: [&str; 7] = ["want_all", "iterator", "exact", "small", "medium", "large", "serial"];

/// Codes that are passed to `on_error`: retryable ones, others, and one that FoundationDB does not have.
const CODES: [i32; 16] =
    [1007, 1009, 1020, 1021, 1025, 1031, 1037, 1038, 1042, 1051, 1078, 1101, 1213, 2000, 2101, 2108];

/// Draws `count` scripts of a kind, without their results.
pub fn scripts(seed: Seed, kind: &str, count: usize) -> Vec<Case> {
    (1..=count).map(|number| script(seed, kind, number)).collect()
}

fn script(seed: Seed, kind: &str, number: usize) -> Case {
    let id = format!("{kind}-{number}");
    let mut draw = Draw(seed.stream(&format!("script-{id}")));
    let setup = draw.rows(if kind == "range" { 40 } else { 8 });
    let steps = match kind {
        "conflict" => draw.conflict(),
        "range" => draw.range(),
        "atomic" => draw.atomic(),
        "stamp" => draw.stamp(),
        "errors" => draw.errors(),
        _ => draw.ryw(),
    };
    Case { id, kind: kind.to_owned(), setup, steps, last: Vec::new() }
}

/// A step of transaction `tx`.
fn step(tx: &str, op: &str) -> Step {
    Step { tx: tx.to_owned(), op: op.to_owned(), ..Step::default() }
}

/// The last steps: listing the transaction's conflict ranges, and its commit.
fn end(tx: &str, steps: &mut Vec<Step>) {
    steps.push(step(tx, "conflict_ranges"));
    steps.push(step(tx, "commit"));
}

/// The random source of a script.
struct Draw(Stream);

impl Draw {
    fn key(&mut self) -> Bytes {
        Bytes::encode(KEYS[self.0.index(KEYS.len())])
    }

    /// Up to eight bytes, mostly fewer.
    fn value(&mut self) -> Bytes {
        let mut value = vec![0; *self.0.pick(&[0, 1, 1, 2, 4, 8])];
        self.0.fill(&mut value);
        Bytes::encode(&value)
    }

    /// Two keys in order; the second may be the end of all keys.
    fn range_ends(&mut self) -> (Option<Value>, Option<Value>) {
        let (one, other) = (self.0.index(KEYS.len()), self.0.index(KEYS.len() + 1));
        let key = |at: usize| json!(Bytes::encode(KEYS.get(at).copied().unwrap_or(b"\xff")).0);
        (Some(key(one.min(other))), Some(key(one.max(other))))
    }

    /// The initial keyspace: some of the keys, in order.
    fn rows(&mut self, most: usize) -> Vec<(Bytes, Bytes)> {
        if most > KEYS.len() {
            let rows = self.0.index(most);
            return (0..rows)
                .map(|n| (Bytes::encode(format!("{:03}", 7 * n).as_bytes()), self.long()))
                .collect();
        }
        let some: Vec<_> = KEYS.iter().filter(|_| self.0.chance(0.4)).collect();
        some.into_iter().map(|key| (Bytes::encode(key), self.value())).collect()
    }

    /// A value that is long enough for batches to end before the rows do.
    fn long(&mut self) -> Bytes {
        let length = *self.0.pick(&[0, 10, 200, 900]);
        Bytes::encode(&vec![b'v'; length])
    }

    fn selector(&mut self) -> Selector {
        let offset = *self.0.pick(&[1, 1, 1, 1, 0, 0, -1, -2, 2, 3]);
        Selector { key: self.key(), or_equal: self.0.chance(0.3), offset }
    }

    fn snapshot(&mut self) -> bool {
        self.0.chance(0.25)
    }

    fn read(&mut self, tx: &str) -> Step {
        let snapshot = self.snapshot();
        match self.0.below(5) {
            0 | 1 => Step { key: Some(self.key()), snapshot, ..step(tx, "get") },
            2 => Step { selector: Some(self.selector()), snapshot, ..step(tx, "get_key") },
            _ => {
                let (begin, end) = self.range_ends();
                let plain =
                    |key: Option<Value>| key.map(|key| json!({"key": key, "or_equal": false, "offset": 1}));
                let (mut begin, mut end) = (plain(begin), plain(end));
                if self.0.chance(0.2) {
                    begin = Some(json!(self.selector()));
                }
                if self.0.chance(0.2) {
                    end = Some(json!(self.selector()));
                }
                self.range_of(tx, begin, end, snapshot)
            }
        }
    }

    fn range_of(&mut self, tx: &str, begin: Option<Value>, end: Option<Value>, snapshot: bool) -> Step {
        let mode = *self.0.pick(&MODES);
        // An exact read requires a number of rows.
        let limit = if mode == "exact" { self.0.range(1..5) } else { *self.0.pick(&[0, 0, 1, 3, 10]) };
        Step {
            begin,
            end,
            snapshot,
            limit: Some(limit as i64),
            mode: Some(mode.to_owned()),
            iteration: (mode == "iterator").then(|| self.0.range(1..4) as usize),
            reverse: self.0.chance(0.3),
            ..step(tx, "get_range")
        }
    }

    fn write(&mut self, tx: &str) -> Step {
        match self.0.below(6) {
            0 | 1 => Step { key: Some(self.key()), value: Some(self.value()), ..step(tx, "set") },
            2 => Step { key: Some(self.key()), ..step(tx, "clear") },
            3 => {
                let (begin, end) = self.range_ends();
                Step { begin, end, ..step(tx, "clear_range") }
            }
            _ => self.mutation(tx),
        }
    }

    fn mutation(&mut self, tx: &str) -> Step {
        let mutation = Some((*self.0.pick(&MUTATIONS)).to_owned());
        Step { key: Some(self.key()), operand: Some(self.value()), mutation, ..step(tx, "atomic") }
    }

    fn conflict_range(&mut self, tx: &str) -> Step {
        let op = *self.0.pick(&["add_read_conflict_range", "add_write_conflict_range"]);
        let (begin, end) = self.range_ends();
        Step { begin, end, ..step(tx, op) }
    }

    fn option(&mut self, tx: &str) -> Step {
        let option = *self.0.pick(&[
            "snapshot_ryw_disable",
            "snapshot_ryw_enable",
            "next_write_no_write_conflict_range",
        ]);
        Step { option: Some(option.to_owned()), ..step(tx, "set_option") }
    }

    fn ryw(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.0.chance(0.1) {
            steps.push(Step {
                option: Some("read_your_writes_disable".to_owned()),
                ..step("A", "set_option")
            });
        }
        for _ in 0..self.0.range(3..12) {
            steps.push(match self.0.below(20) {
                0..8 => self.read("A"),
                8..16 => self.write("A"),
                16 => self.conflict_range("A"),
                17 => self.option("A"),
                _ => step("A", "approximate_size"),
            });
        }
        end("A", &mut steps);
        steps
    }

    /// Transactions with the same read version, of which the later ones may conflict.
    fn conflict(&mut self) -> Vec<Step> {
        let mut open = ["A", "B", "C"][..self.0.range(2..4) as usize].to_vec();
        let mut steps: Vec<Step> = open.iter().map(|tx| step(tx, "get_read_version")).collect();
        while !open.is_empty() {
            let at = self.0.index(open.len());
            let tx = open[at];
            match self.0.below(12) {
                0..4 => steps.push(self.read(tx)),
                4..8 => steps.push(self.write(tx)),
                8 => steps.push(self.conflict_range(tx)),
                9 => steps.push(self.option(tx)),
                _ => {
                    steps.push(step(tx, "commit"));
                    open.remove(at);
                }
            }
        }
        steps
    }

    /// Batches: where they end, and their conflict ranges.
    fn range(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..self.0.range(1..5) {
            if self.0.chance(0.3) {
                let key = Some(Bytes::encode(format!("{:03}", self.0.below(300)).as_bytes()));
                steps.push(match self.0.chance(0.5) {
                    true => Step { key, value: Some(self.long()), ..step("A", "set") },
                    false => Step { key, ..step("A", "clear") },
                });
            }
            let mut edge = |low: u64, high: u64| {
                let key = Bytes::encode(format!("{:03}", self.0.range(low..high)).as_bytes());
                let or_equal = self.0.chance(0.3);
                Some(json!({"key": key, "or_equal": or_equal, "offset": *self.0.pick(&[1, 1, 1, 0, 2, -1])}))
            };
            let (begin, end) = (edge(0, 150), edge(100, 300));
            let snapshot = self.snapshot();
            steps.push(self.range_of("A", begin, end, snapshot));
        }
        end("A", &mut steps);
        steps
    }

    fn atomic(&mut self) -> Vec<Step> {
        let key = self.key();
        let mut steps = Vec::new();
        for _ in 0..self.0.range(1..4) {
            steps.push(match self.0.below(8) {
                0 => Step { key: Some(key.clone()), value: Some(self.value()), ..step("A", "set") },
                1 => Step { key: Some(key.clone()), ..step("A", "clear") },
                2 => Step { key: Some(key.clone()), snapshot: self.snapshot(), ..step("A", "get") },
                _ => Step { key: Some(key.clone()), ..self.mutation("A") },
            });
        }
        end("A", &mut steps);
        steps
    }

    /// A template that contains ten bytes for the stamp, followed by their offset, which is rarely out of
    /// bounds.
    fn template(&mut self, around: &[u8]) -> Bytes {
        let at = self.0.index(around.len() + 1);
        let mut bytes = [&around[..at], &[0; 10], &around[at..]].concat();
        let at = if self.0.chance(0.05) { at as i32 + 20 } else { at as i32 };
        bytes.extend_from_slice(&at.to_le_bytes());
        Bytes::encode(&bytes)
    }

    fn stamp(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.0.chance(0.5) {
            steps.push(step("A", "get_read_version"));
        }
        if self.0.chance(0.1) {
            steps.push(Step { option: Some("bypass_unreadable".to_owned()), ..step("A", "set_option") });
        }
        for _ in 0..self.0.range(2..7) {
            let around = self.0.pick(KEYS).to_vec();
            steps.push(match self.0.below(6) {
                0 => Step {
                    mutation: Some("set_versionstamped_value".to_owned()),
                    key: Some(self.key()),
                    operand: Some(self.template(&around)),
                    ..step("A", "atomic")
                },
                1 | 2 => Step {
                    mutation: Some("set_versionstamped_key".to_owned()),
                    // Two with the same order would store only one key.
                    key: Some(self.template(&[&around[..], &[steps.len() as u8]].concat())),
                    operand: Some(self.value()),
                    ..step("A", "atomic")
                },
                3 => self.write("A"),
                _ => self.read("A"),
            });
        }
        steps.push(Step { stamp: true, ..step("A", "commit") });
        steps
    }

    fn errors(&mut self) -> Vec<Step> {
        let code = Some(*self.0.pick(&CODES));
        let on_error = Step { code, ..step("A", "on_error") };
        let key = || Some(Bytes::encode(b"a"));
        match self.0.below(6) {
            0 => vec![self.write("A"), on_error, self.read("A"), step("A", "commit")],
            1 => vec![self.write("A"), step("A", "cancel"), self.read("A"), on_error, step("A", "commit")],
            2 => vec![
                self.write("A"),
                step("A", "commit"),
                self.read("A"),
                step("A", "commit"),
                step("A", "reset"),
                self.read("A"),
            ],
            3 => {
                // Around the limits of keys and values.
                let length = *self.0.pick(&[9_999usize, 10_000, 10_001]);
                let value = *self.0.pick(&[99_999usize, 100_000, 100_001]);
                let large = Step {
                    key: key(),
                    value: Some(Bytes::encode(b"v")),
                    repeat: Some([length, value]),
                    ..step("A", "set")
                };
                vec![large, step("A", "commit")]
            }
            4 => {
                let limit = Step {
                    option: Some("retry_limit".to_owned()),
                    param: Some(self.0.below(3) as i32),
                    ..step("A", "set_option")
                };
                vec![limit, on_error.clone(), on_error.clone(), on_error, step("A", "commit")]
            }
            _ => {
                let (begin, end) = self.range_ends();
                let inverted = Step { begin: end, end: begin, ..step("A", "clear_range") };
                vec![inverted, self.read("A"), step("A", "commit")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_depend_on_their_seed_and_round_trip_as_json() {
        for kind in KINDS {
            let drawn = scripts(Seed(5), kind, 20);
            assert_eq!(drawn, scripts(Seed(5), kind, 20));
            assert_ne!(drawn, scripts(Seed(6), kind, 20));
            for case in drawn {
                let text = serde_json::to_string(&case).expect("plain data");
                assert_eq!(serde_json::from_str::<Case>(&text).expect("what was written"), case);
            }
        }
    }
}
