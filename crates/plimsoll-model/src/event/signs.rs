//! Signs in the replies of a load point. Analysis derives hints from them and from the times.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::HISTOGRAM_NS_MAX;
use crate::units::Nanos;

/// Shortest time without any reply that is kept as a pause.
pub const PAUSE_MIN: Nanos = Nanos::from_millis(10);
/// The kernel's timers end at ticks of 1 to 10 ms. All of them lie on a grid of this width.
pub const TICK_GRID: Nanos = Nanos::from_millis(1);

/// An empty histogram of few buckets, for [`CoarseTimes`].
pub fn new_coarse_histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, HISTOGRAM_NS_MAX, 1)
        .expect("the bounds are constants that the histogram accepts")
}

/// Counts of times in nanoseconds: the middle of a bucket and its count, in order. Buckets are
/// those of the histogram that counted; of [`new_coarse_histogram`] each is within 6 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoarseTimes(pub Vec<(u64, u64)>);

impl CoarseTimes {
    /// What a histogram counted.
    pub fn from_histogram(histogram: &Histogram<u32>) -> Self {
        let value = |ns| histogram.median_equivalent(ns);
        let counted = histogram.iter_recorded();
        let counts = counted.map(|it| (value(it.value_iterated_to()), it.count_at_value().into()));
        Self(counts.collect())
    }

    /// No time was counted.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many times were counted.
    pub fn n(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// How many of them lie in this range of nanoseconds.
    pub fn between(&self, range_ns: std::ops::Range<u64>) -> u64 {
        self.0.iter().filter(|(ns, _)| range_ns.contains(ns)).map(|(_, count)| count).sum()
    }

    /// Median; `None` without times.
    pub fn median_ns(&self) -> Option<u64> {
        self.quantile_ns(0.5)
    }

    /// The time that this share of the times does not exceed; `None` without times.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let rank = ((self.n() as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let reached = self.0.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        reached.map(|(ns, _)| *ns)
    }

    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        for &(ns, count) in &other.0 {
            match self.0.binary_search_by_key(&ns, |entry| entry.0) {
                Ok(at) => self.0[at].1 += count,
                Err(at) => self.0.insert(at, (ns, count)),
            }
        }
    }
}

/// A time in which no byte of any reply arrived, though ops were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Begin, from the start of the load point.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// Ops in flight at its end.
    pub in_flight: u32,
}

impl Pause {
    /// The part that both have, if it is long enough to be one.
    fn common(&self, other: &Self) -> Option<Self> {
        let start = self.start.max(other.start);
        let end = (self.start + self.length).min(other.start + other.length);
        let length = end.saturating_sub(start);
        let in_flight = self.in_flight.saturating_add(other.in_flight);
        (length >= PAUSE_MIN).then_some(Self { start, length, in_flight })
    }
}

/// Replies of which a part came long after the part before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartWaits {
    /// How long the part was waited for.
    pub waits: CoarseTimes,
    /// Where its arrival lay between two instants of [`TICK_GRID`], as an angle: sum of cosines.
    pub cos_sum: f64,
    /// Sum of sines.
    pub sin_sum: f64,
}

impl PartWaits {
    /// How much the arrivals keep to the grid: 1 if all are at the same position in it, about 0 if
    /// they are anywhere. Absent without arrivals.
    pub fn tick_concentration(&self) -> Option<f64> {
        let n = self.waits.n();
        (n > 0).then(|| self.cos_sum.hypot(self.sin_sum) / n as f64)
    }

    fn add(&mut self, other: &Self) {
        self.waits.add(&other.waits);
        self.cos_sum += other.cos_sum;
        self.sin_sum += other.sin_sum;
    }
}

/// What the replies of a load point looked like, of ops that were due in the window and went well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signs {
    /// Workers that counted.
    pub workers: u32,
    /// Service times of the first op on each connection.
    pub new_connections: CoarseTimes,
    /// Service times of later ops.
    pub kept_connections: CoarseTimes,
    /// Replies on kept connections with exactly one long wait for a part.
    pub part_waits: PartWaits,
    /// Times in the window in which no worker had a byte of a reply, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

impl Signs {
    /// Nobody counted.
    pub const fn is_empty(&self) -> bool {
        self.workers == 0
    }

    /// Adds those of another worker. A pause of one is none while another has replies.
    pub fn add(&mut self, other: Self) {
        if other.is_empty() {
            return;
        }
        match self.workers {
            0 => self.pauses = other.pauses,
            _ => self.pauses = common_pauses(&self.pauses, &other.pauses),
        }
        self.workers += other.workers;
        self.new_connections.add(&other.new_connections);
        self.kept_connections.add(&other.kept_connections);
        self.part_waits.add(&other.part_waits);
    }
}

/// Both lists are in order.
fn common_pauses(ours: &[Pause], theirs: &[Pause]) -> Vec<Pause> {
    let common = |pause: &Pause| {
        let after = theirs.partition_point(|other| other.start + other.length <= pause.start);
        let near = theirs[after..].iter().take_while(|it| it.start < pause.start + pause.length);
        near.filter_map(|other| pause.common(other)).collect::<Vec<_>>()
    };
    ours.iter().flat_map(common).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(start_ms: u64, length_ms: u64) -> Pause {
        let [start, length] = [start_ms, length_ms].map(Nanos::from_millis);
        Pause { start, length, in_flight: 2 }
    }

    fn of_worker(pauses: Vec<Pause>) -> Signs {
        Signs { workers: 1, pauses, ..Signs::default() }
    }

    #[test]
    fn a_pause_of_one_worker_is_none_while_another_has_replies() {
        let mut signs = Signs::default();
        signs.add(of_worker(vec![pause(100, 60), pause(400, 30), pause(600, 60)]));
        signs.add(of_worker(vec![pause(90, 60), pause(655, 20)]));
        let common = Pause { in_flight: 4, ..pause(100, 50) };
        assert_eq!((signs.workers, signs.pauses), (2, vec![common]));
    }

    #[test]
    fn coarse_times_know_their_median_within_six_percent_and_add_up() {
        let mut histogram = new_coarse_histogram();
        for ms in 1..=99 {
            histogram.record(ms * 1_000_000).unwrap();
        }
        let mut times = CoarseTimes::from_histogram(&histogram);
        let median_ms = times.median_ns().unwrap() as f64 / 1e6;
        assert!((median_ms / 50.0 - 1.0).abs() < 0.06, "{median_ms}");
        times.add(&times.clone());
        assert_eq!((times.n(), times.between(0..u64::MAX)), (198, 198));
        assert_eq!(CoarseTimes::default().median_ns(), None);
    }
}
