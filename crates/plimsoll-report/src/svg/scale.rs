//! From values to pixels.

/// A linear scale from zero, or a logarithmic one from where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Of a logarithmic scale.
    min: Option<f64>,
    max: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Zero at pixel `from`, `max` at pixel `to`.
    pub(super) fn new(max: f64, from: f64, to: f64) -> Self {
        Self { min: None, max: if max.is_finite() && max > 0.0 { max } else { 1.0 }, from, to }
    }

    /// Equal ratios are equal steps; both ends are above zero.
    pub(super) fn log((min, max): (f64, f64), from: f64, to: f64) -> Self {
        let min = if min.is_finite() && min > 0.0 { min } else { 1.0 };
        let max = if max.is_finite() && max > min { max } else { min * 10.0 };
        Self { min: Some(min), max, from, to }
    }

    pub(super) fn pixel(self, value: f64) -> f64 {
        let share = match self.min {
            None => value / self.max,
            Some(min) => (value.max(min) / min).ln() / (self.max / min).ln(),
        };
        self.from + (self.to - self.from) * share
    }

    pub(super) fn max(self) -> f64 {
        self.max
    }
}

/// Ticks of an axis with their texts, and the scale on which they are.
pub(super) struct Axis {
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) ends: [f64; 2],
    log: bool,
    /// Half the room of a text on a level axis; what does not fit behind the text before is left
    /// out.
    half_room: fn(&str) -> f64,
}

impl Axis {
    /// From zero, in about this number of steps.
    pub(super) fn linear(max: f64, about: u32) -> Self {
        let ticks = ticks(max, about);
        let last = ticks.last().copied().unwrap_or(1.0);
        Self::marked(named(ticks, tick_text), last)
    }

    /// From zero to `max`, with these ticks.
    pub(super) fn marked(ticks: Vec<(f64, String)>, max: f64) -> Self {
        Self { ticks, ends: [0.0, max], log: false, half_room: |_| 0.0 }
    }

    /// Equal ratios are equal steps.
    pub(super) fn log((min, max): (f64, f64), text: fn(f64) -> String) -> Self {
        let ticks = log_ticks(min, max);
        let ends = [ticks.first(), ticks.last()].map(|end| end.copied().unwrap_or(1.0));
        Self { ticks: named(ticks, text), ends, log: true, half_room: |_| 0.0 }
    }

    pub(super) fn with_half_room(self, half_room: fn(&str) -> f64) -> Self {
        Self { half_room, ..self }
    }

    /// Ticks of a level axis with the half of the room that their texts need.
    pub(super) fn texts(&self) -> impl Iterator<Item = (f64, &str, f64)> {
        self.ticks.iter().map(|(tick, text)| (*tick, text.as_str(), (self.half_room)(text)))
    }

    pub(super) fn scale(&self, from: f64, to: f64) -> Scale {
        match (self.log, self.ends) {
            (true, [min, max]) => Scale::log((min, max), from, to),
            (false, [_, max]) => Scale::new(max, from, to),
        }
    }

    /// Room that its texts need left of it, `least` pixels or more.
    pub(super) fn room(&self, least: f64) -> f64 {
        const DIGIT_WIDTH: f64 = 7.6; // of 12 px type, the widest of the system fonts
        let longest = self.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        (longest as f64 * DIGIT_WIDTH + 10.0).max(least)
    }
}

fn named(ticks: Vec<f64>, text: fn(f64) -> String) -> Vec<(f64, String)> {
    ticks.into_iter().map(|tick| (tick, text(tick))).collect()
}

/// Ticks from zero in steps of 1, 2, 2.5 or 5 times a power of ten; the last is at or above `max`.
pub(super) fn ticks(max: f64, about: u32) -> Vec<f64> {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let rough = max / f64::from(about.max(1));
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let steps = (max / step - 1e-9).ceil().max(1.0) as u32;
    (0..=steps).map(|i| f64::from(i) * step).collect()
}

/// Ticks of a logarithmic scale that contains both values: powers of ten, with 2 and 5 times them
/// where there are few.
pub(super) fn log_ticks(min: f64, max: f64) -> Vec<f64> {
    let min = if min.is_finite() && min > 0.0 { min } else { 1.0 };
    let max = if max.is_finite() { max.max(min) } else { min };
    let steps: &[f64] = if max / min < 1e3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = min.log10().floor() as i32..=max.log10().ceil() as i32;
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    let all: Vec<f64> = all.collect();
    let first = all.iter().rposition(|tick| *tick <= min * 1.000_001).unwrap_or(0);
    let last = all.iter().position(|tick| *tick >= max * 0.999_999).unwrap_or(all.len() - 1);
    if first < last { all[first..=last].to_vec() } else { vec![all[first], all[first] * 10.0] }
}

/// A tick of times in nanoseconds, with its unit.
pub(super) fn time_tick_text(nanos: f64) -> String {
    let (size, unit) = match nanos {
        n if n < 999.0 => (1.0, "ns"),
        n if n < 999e3 => (1e3, "µs"),
        n if n < 999e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{}\u{a0}{unit}", tick_text(nanos / size))
}

/// The shortest text of a tick.
pub(super) fn tick_text(value: f64) -> String {
    if value >= 1000.0 {
        return plimsoll_model::units::grouped(value);
    }
    let text = plimsoll_model::units::three_digits(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Number of nines of a percentile: 90 is 1, 99 is 2, 99.9 is 3.
pub(super) fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).max(1e-9).log10()
}

/// Moves labels apart so that neighbours are at least `spacing` pixels from each other, in the
/// order of their preferred positions, none above `top`.
pub(super) fn spread(preferred: &[f64], spacing: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..preferred.len()).collect();
    order.sort_by(|a, b| preferred[*a].total_cmp(&preferred[*b]));
    let mut positions = preferred.to_vec();
    let mut lowest = bottom;
    for i in order.iter().rev() {
        positions[*i] = positions[*i].min(lowest);
        lowest = positions[*i] - spacing;
    }
    let mut highest = top;
    for i in &order {
        positions[*i] = positions[*i].max(highest);
        highest = positions[*i] + spacing;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_maximum() {
        assert_eq!(ticks(9.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.0, 5).last(), Some(&1.0));
        for max in [1e-9, 0.3, 1.0, 17.0, 26_543.0, 1e12] {
            let ticks = ticks(max, 5);
            assert!(*ticks.last().unwrap() >= max * 0.999_999 && ticks.len() <= 8, "{max}");
        }
    }

    #[test]
    fn a_logarithmic_scale_has_ticks_around_its_values() {
        assert_eq!(log_ticks(3e5, 7e8), [1e5, 1e6, 1e7, 1e8, 1e9]);
        assert_eq!(log_ticks(3e5, 7e6), [2e5, 5e5, 1e6, 2e6, 5e6, 1e7]);
        assert_eq!(log_ticks(3e5, 7e5), [2e5, 5e5, 1e6]);
        assert_eq!(log_ticks(1e6, 1e6), [1e6, 1e7]);
        assert_eq!(log_ticks(f64::NAN, 0.0), [1.0, 10.0]);
        let scale = Scale::log((1e5, 1e9), 400.0, 0.0);
        assert_eq!(
            [1e5, 1e7, 1e9, 0.0].map(|v| scale.pixel(v).round()),
            [400.0, 200.0, 0.0, 400.0]
        );
        let texts = [1e5, 2e6, 1e9, 5e10].map(time_tick_text);
        assert_eq!(texts, ["100\u{a0}µs", "2\u{a0}ms", "1\u{a0}s", "50\u{a0}s"]);
    }

    #[test]
    fn tick_texts_are_short() {
        assert_eq!(tick_text(0.0), "0");
        assert_eq!(tick_text(2.5), "2.5");
        assert_eq!(tick_text(0.000_02), "0.00002");
        assert_eq!(tick_text(500.0), "500");
        assert_eq!(tick_text(26_000.0), "26,000");
    }

    #[test]
    fn spread_labels_keep_their_order_and_distance() {
        let positions = spread(&[100.0, 98.0, 99.0], 14.0, 0.0, 100.0);
        assert_eq!(positions, [100.0, 72.0, 86.0]);
    }

    #[test]
    fn a_percentile_stands_at_its_number_of_nines() {
        assert!((nines(99.9) - 3.0).abs() < 1e-9);
        assert!(nines(100.0).is_finite());
    }
}
