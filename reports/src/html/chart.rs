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
            viewBox=(format!("0 0 {} {HEIGHT}", step * bars.len())) {
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
}
