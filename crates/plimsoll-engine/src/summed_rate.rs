//! The instants of a schedule whose rate changes: an arrival is due when the rate, summed from the
//! start, has reached its number. Piecewise linear rates have piecewise quadratic sums.

use std::sync::Arc;

use plimsoll_model::load_shape::{LoadShape, Segment};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

/// A rate over time, with a position that only moves forward.
#[derive(Clone, Debug)]
pub struct SummedRate {
    /// Before the shape, at its first load.
    warm_up: Option<Segment>,
    segments: Arc<[Segment]>,
    /// Arrivals for each unit of load.
    factor: f64,
    /// The next segment; the current one is `current`.
    next: usize,
    current: Option<Segment>,
    /// Begin of the current one.
    start: Nanos,
    /// Arrivals before it.
    sum: f64,
}

impl SummedRate {
    /// The rate of a shape after a warm-up; `factor` is the number of arrivals for each unit of its
    /// load.
    pub fn new(shape: &LoadShape, warm_up: Nanos, factor: f64) -> Self {
        let first = shape.first_load();
        let warm_up = Segment { length_ns: warm_up, from: first, to: first };
        Self {
            warm_up: Some(warm_up),
            segments: Arc::clone(&shape.segments),
            factor,
            next: 0,
            current: None,
            start: Nanos::ZERO,
            sum: 0.0,
        }
    }

    /// When the sum reaches `arrivals`, which never falls from call to call; `None` after the end.
    pub fn instant(&mut self, arrivals: f64) -> Option<Nanos> {
        loop {
            let segment = match self.current {
                Some(segment) => segment,
                None => self.take_next()?,
            };
            let length_s = segment.length_ns.as_secs_f64();
            let (from, to) = (segment.from * self.factor, segment.to * self.factor);
            let whole = (from + to) / 2.0 * length_s;
            let left = (arrivals - self.sum).max(0.0);
            if left < whole {
                // Of from·t + slope/2·t² = left the form that is exact where the slope is zero.
                let slope = (to - from) / length_s;
                let root = (from * from + 2.0 * slope * left).max(0.0).sqrt();
                let seconds = 2.0 * left / (from + root).max(f64::MIN_POSITIVE);
                let ns = (seconds.min(length_s) * NANOS_PER_SECOND as f64) as u64;
                return Some(self.start + Nanos(ns));
            }
            self.sum += whole;
            self.start += segment.length_ns;
            self.current = None;
        }
    }

    fn take_next(&mut self) -> Option<Segment> {
        self.current = match self.warm_up.take() {
            Some(warm_up) => Some(warm_up),
            None => {
                self.next += 1;
                self.segments.get(self.next - 1).copied()
            }
        };
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(text: &str, warm_up_s: u64, arrivals: impl Iterator<Item = f64>) -> Vec<f64> {
        let shape = LoadShape::parse(text, None).unwrap();
        let mut rate = SummedRate::new(&shape, Nanos::from_secs(warm_up_s), 1.0);
        arrivals.map_while(|it| rate.instant(it)).map(Nanos::as_secs_f64).collect()
    }

    #[test]
    fn a_ramp_has_a_quadratic_sum_and_a_hold_a_linear_one() {
        // 0 to 10 in 10 s: 50 arrivals; then 10 a second.
        let all =
            instants("ramp 0..10 in 10s, hold 2s", 0, [0.0, 12.5, 49.9, 50.0, 60.0].into_iter());
        let expected = [0.0, 5.0, 9.99, 10.0, 11.0];
        assert_eq!(all.len(), 5);
        assert!(all.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{all:?}");
    }

    #[test]
    fn a_warm_up_has_the_first_load_and_the_schedule_ends_with_the_shape() {
        let all = instants("hold 5 for 2s, ramp 5..0 in 2s", 1, (0..100).map(f64::from));
        assert_eq!(all.len(), 20, "5 + 10 + 5");
        assert!((all[19] - (5.0 - (0.8_f64).sqrt())).abs() < 1e-6, "{}", all[19]);
        assert!(all.is_sorted() && all[5] == 1.0);
    }

    #[test]
    fn no_load_takes_no_arrivals_and_ends() {
        let all = instants("hold 0 for 5s, hold 2 for 1s, hold 0 for 9s", 3, (0..9).map(f64::from));
        assert_eq!(all, [8.0, 8.5]);
    }
}
