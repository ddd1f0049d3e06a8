//! Charts of distributions and bars, drawn as SVG.

use crate::{
    distribution::Distribution,
    text::{count, plural},
};
use maud::{Markup, html};

/// The width and the height of a chart, and the width of a bar with its gap.
const WIDTH: usize = 240;
const HEIGHT: usize = 36;

/// A part of a chart: a range of numbers, and how often one of them was recorded.
struct Bar {
    first: u64,
    last: u64,
    count: u64,
}

/// The numbers of a distribution in at most `most` bars, each for numbers that are the same number of times
/// as large as those of the bar before; small numbers have bars of their own.
fn bars(distribution: &Distribution, most: usize) -> Vec<Bar> {
    let (Some(low), Some(high)) = (distribution.buckets().next(), distribution.buckets().last()) else {
        return Vec::new();
    };
    let mut bounds: Vec<u64> = Vec::new();
    let (mut bound, factor) =
        (low.first, ((high.last as f64 + 1.0) / (low.first.max(1) as f64)).powf(1.0 / most as f64));
    while bound <= high.last {
        bounds.push(bound);
        let next = (bound.max(1) as f64 * factor).ceil() as u64;
        let Some(next) = Some(next.max(bound.saturating_add(1))).filter(|next| *next > bound) else { break };
        bound = next;
    }
    let mut bars: Vec<Bar> = Vec::new();
    for (n, first) in bounds.iter().enumerate() {
        let last = bounds.get(n + 1).map_or(high.last, |next| next - 1);
        bars.push(Bar { first: *first, last, count: 0 });
    }
    for bucket in distribution.buckets() {
        let at = bars.partition_point(|bar| bar.last < bucket.first);
        if let Some(bar) = bars.get_mut(at) {
            bar.count = bar.count.saturating_add(bucket.count);
        }
    }
    bars
}

/// A small chart of a distribution, from its lowest to its highest number. `shown` writes a number.
pub fn distribution(distribution: &Distribution, what: &str, shown: impl Fn(u64) -> String) -> Markup {
    let bars = bars(distribution, 40);
    let Some(highest) = bars.iter().map(|bar| bar.count).max().filter(|highest| *highest > 0) else {
        return html! {};
    };
    let step = (WIDTH / bars.len().max(1)).clamp(1, 16);
    let height = |count: u64| {
        let share = count as f64 / highest as f64 * (HEIGHT - 1) as f64;
        if count == 0 { 0 } else { (share.ceil() as usize).max(1) }
    };
    html! {
        svg.chart role="img" aria-label=(format!("distribution of {what}")) width=(step * bars.len()) height=(HEIGHT)
            viewBox=(format!("0 0 {} {HEIGHT}", step * bars.len())) preserveAspectRatio="none" {
            @for (n, bar) in bars.iter().enumerate() {
                @if bar.count > 0 {
                    rect x=(n * step) y=(HEIGHT - height(bar.count)) width=(step.saturating_sub(1).max(1)) height=(height(bar.count)) {
                        title { (range(bar, &shown)) ": " (count(bar.count)) }
                    }
                }
            }
        }
    }
}

/// A chart with its lowest and its highest number.
pub fn with_ends(numbers: &Distribution, what: &str, shown: impl Fn(u64) -> String) -> Markup {
    let Some(lowest) = numbers.buckets().next() else { return html! {} };
    let ends = [shown(lowest.first), shown(numbers.max())];
    html! {
        div.with-ends { (distribution(numbers, what, shown)) div.ends { @for end in ends { span { (end) } } } }
    }
}

fn range(bar: &Bar, shown: &impl Fn(u64) -> String) -> String {
    if bar.first == bar.last {
        shown(bar.first)
    } else {
        format!("{} to {}", shown(bar.first), shown(bar.last))
    }
}

/// The size of a chart of steps, and the space at its sides for numbers.
const STEPS: (f64, f64) = (440.0, 150.0);
const MARGIN: (f64, f64) = (34.0, 18.0);

/// A number that rises, by the number of runs, whose axis is logarithmic: `rises` has the runs and the number
/// from then on. It ends at so many runs, and the number is at most `most`.
pub fn steps(rises: impl IntoIterator<Item = (u64, u64)>, runs: u64, most: u64, what: &str) -> Markup {
    let (width, height) = (STEPS.0 - MARGIN.0 - 8.0, STEPS.1 - MARGIN.1 - 8.0);
    let (last, most) = (runs.max(10), most.max(1));
    let x = |runs: u64| MARGIN.0 + width * (runs as f64).ln_1p() / (last as f64).ln_1p();
    let y = |n: u64| 8.0 + height * (1.0 - n.min(most) as f64 / most as f64);
    let mut path = format!("M{:.1} {:.1}", x(0), y(0));
    for (at, n) in rises {
        path += &format!("H{:.1}V{:.1}", x(at.min(last)), y(n));
    }
    path += &format!("H{:.1}", x(runs));
    let unit = STEPS.0 - 60.0;
    let powers = std::iter::successors(Some(1_u64), |n| n.checked_mul(10)).take_while(|n| x(*n) < unit);
    html! {
        svg.chart.steps role="img" aria-label=(what) viewBox=(format!("0 0 {} {}", STEPS.0, STEPS.1)) {
            @for n in [0, most] {
                line x1=(MARGIN.0) x2=(MARGIN.0 + width) y1=(format!("{:.1}", y(n))) y2=(format!("{:.1}", y(n))) {}
                text.end x=(MARGIN.0 - 5.0) y=(format!("{:.1}", y(n) + 4.0)) { (count(n)) }
            }
            @for power in powers {
                text x=(format!("{:.1}", x(power))) y=(STEPS.1 - 4.0) { (short(power)) }
            }
            text.end x=(STEPS.0 - 8.0) y=(STEPS.1 - 4.0) { "runs" }
            path d=(path) {}
        }
    }
}

/// A power of ten, in few characters.
fn short(n: u64) -> String {
    match n {
        0..10_000 => count(n),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..1_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{}G", count(n / 1_000_000_000)),
    }
}

/// Named numbers as horizontal bars, largest first.
pub fn named(numbers: impl IntoIterator<Item = (String, u64)>) -> Markup {
    let mut numbers: Vec<(String, u64)> = numbers.into_iter().collect();
    numbers.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let highest = numbers.first().map_or(1, |(_, n)| (*n).max(1));
    html! {
        div.bars {
            @for (name, n) in &numbers {
                div {
                    span.name { (name) }
                    span.bar title=(plural(*n, "time", "times")) {
                        span style=(format!("width:{:.1}%", *n as f64 * 100.0 / highest as f64)) {}
                    }
                    span.number { (count(*n)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_a_bar_and_there_are_few_bars() {
        for numbers in
            [vec![0], vec![0, 1, 2, 3], vec![5; 9], vec![1, 1_000_000_000], vec![u64::MAX], vec![0, u64::MAX]]
        {
            let distribution: Distribution = numbers.iter().copied().collect();
            let bars = bars(&distribution, 40);
            assert!(bars.len() <= 41 && bars.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), numbers.len() as u64, "{numbers:?}");
        }
        assert!(bars(&Distribution::default(), 40).is_empty());
    }

    #[test]
    fn steps_stay_inside_of_their_chart() {
        for (rises, runs, most) in [
            (vec![], 0, 0),
            (vec![(0, 0), (1, 3), (7, 4), (7_000, 9)], 10_000, 9),
            (vec![(3, 12), (u64::MAX, u64::MAX)], 1_000, 10),
            (vec![(u64::MAX - 1, u64::MAX)], u64::MAX, 1),
        ] {
            let drawn = steps(rises.clone(), runs, most, "points").into_string();
            let (_, path) = drawn.split_once("<path d=\"M").expect("a path");
            let (path, _) = path.split_once('"').expect("it ends");
            let (begin, moves) = path.split_once('H').expect("a line");
            assert_eq!(begin, "34.0 132.0");
            let mut right = 34.0;
            for step in moves.split('H') {
                let (x, y) = step.split_once('V').unwrap_or((step, "8"));
                let [x, y] = [x, y].map(|n| n.parse::<f64>().expect("a number"));
                assert!((right..=432.0).contains(&x) && (8.0..=132.0).contains(&y), "{path}");
                right = x;
            }
        }
        assert_eq!(
            [1, 1_000, 10_000, 1_000_000, 10_u64.pow(19)].map(short),
            ["1", "1,000", "10k", "1M", "10,000,000,000G"]
        );
    }
}
