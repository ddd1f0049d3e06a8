//! Numbers with units, as they are written in entries.

use shaketable_reports::text::count;
use shaketable_sim::rt::Nanos;

/// Bytes: `27 bytes`, `1.2 kB`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A number with one decimal place if it is small.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value >= 20.0 => count(value.round() as u64),
        value if (value - value.round()).abs() < 0.05 => format!("{}", value.round()),
        value => format!("{value:.1}"),
    }
}

/// A part of a whole: `17 %`. Neither some nor a part is rounded to nothing or to all.
pub(super) fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole.max(1) as f64;
    match percent {
        p if p > 0.0 && p < 1.0 => "under 1 %".to_owned(),
        p if p > 99.0 && p < 100.0 => "over 99 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// A duration: `3.1 s`, `24 ms`.
pub(super) fn time(time: Nanos) -> String {
    match time as f64 / 1e9 {
        seconds if seconds >= 1.0 => format!("{} s", number(seconds)),
        seconds => format!("{} ms", number(seconds * 1e3)),
    }
}

/// How often something happens a second.
pub(super) fn rate(events: u64, time: Nanos) -> f64 {
    events as f64 * 1e9 / time.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!([1, 27, 1_200, 2_500_000].map(bytes), ["1 byte", "27 bytes", "1.2 kB", "2.5 MB"]);
        assert_eq!([0.0, 2.0, 2.04, 2.5, 1234.5].map(number), ["0", "2", "2", "2.5", "1,235"]);
        assert_eq!(share(1, 400), "under 1 %");
        assert_eq!(share(399, 400), "over 99 %");
        assert_eq!((share(0, 0), share(17, 100), share(3, 3)), ("0 %".into(), "17 %".into(), "100 %".into()));
        assert_eq!([24_000_000, 3_100_000_000].map(time), ["24 ms", "3.1 s"]);
        assert_eq!(rate(5, 500_000_000), 10.0);
    }
}
