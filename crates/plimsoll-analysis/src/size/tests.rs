//! Servers of known laws: predictions from a part of their load.

mod golden;
mod load;
mod page_cache;
mod saturated;

use plimsoll_model::cost::Cost;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::prices::PriceList;
use plimsoll_model::result::TimeSummary;
use plimsoll_model::size::ResponseLaw;
use plimsoll_model::units::Nanos;

use super::*;

/// A server whose demand is `(constant + wake (1 − ρ) + contention x)`, in microseconds, with an
/// additional idle response time of 100 µs.
#[derive(Clone, Copy)]
struct Law {
    cores: f64,
    constant_us: f64,
    wake_us: f64,
    contention_us: f64,
    further_us: f64,
}

impl Law {
    const fn plain(cores: f64, constant_us: f64) -> Self {
        Self { cores, constant_us, wake_us: 0.0, contention_us: 0.0, further_us: 0.0 }
    }

    fn peak(self) -> f64 {
        let further = self.further_us * (self.cores - 1.0).max(0.0);
        let full = |x: f64| self.constant_us + further + self.contention_us * x;
        let (mut low, mut high) = (0.0, 1e9);
        for _ in 0..200 {
            let x = f64::midpoint(low, high);
            if x * full(x) < self.cores * 1e6 { low = x } else { high = x }
        }
        low
    }

    fn point(self, ops_per_s: f64) -> Measured {
        let scale = ops_per_s / 1e6 / self.cores;
        let further = self.further_us * (self.cores - 1.0).max(0.0);
        let all = self.constant_us + further + self.wake_us + self.contention_us * ops_per_s;
        let us = all / (1.0 + self.wake_us * scale);
        let busy = us * scale;
        let cpu_ns = us * 1e3;
        let waited = queue_of(busy, self.cores) * cpu_ns / self.cores.max(1.0);
        let mean = 100_000.0 + cpu_ns + waited;
        let times = TimeSummary {
            mean: Some(mean),
            p99: Some((3.0 * mean) as u64),
            ..TimeSummary::default()
        };
        Measured {
            ops_per_s,
            cores: Some(self.cores),
            cpu_ns: Some(Cost { value: cpu_ns, interval: Some([cpu_ns * 0.995, cpu_ns * 1.005]) }),
            response: times,
            response_low_ns: mean,
            ..Measured::default()
        }
    }

    /// At 10, 20, 30 and 40 % of its peak.
    fn low_points(self) -> Vec<Measured> {
        [0.1, 0.2, 0.3, 0.4].map(|share| self.point(share * self.peak())).to_vec()
    }
}

fn queue_of(busy: f64, cores: f64) -> f64 {
    response::queued(busy, response::exponent(cores))
}

fn request_for(load_ops_per_s: f64, within: Option<&str>) -> SizeRequest {
    SizeRequest {
        load_ops_per_s,
        users: None,
        users_per_client: None,
        load_bytes_per_s: None,
        within: within.map(|text| text.parse().unwrap()),
        headroom_ratio: 0.7,
        think: Some(Nanos::from_secs(10)),
        stated: plimsoll_model::size::Ceilings::default(),
        memory_bytes: None,
    }
}

fn near(actual: f64, expected: f64, ratio: f64) -> bool {
    (actual / expected - 1.0).abs() <= ratio
}

/// Two fifths do not show whether an op costs less where the server no longer sleeps.
#[test]
fn from_two_fifths_of_them_peaks_are_at_least() {
    let waking = Law { wake_us: 20.0, ..Law::plain(1.0, 50.0) };
    let contended = Law { contention_us: 0.001, ..Law::plain(1.0, 50.0) };
    for law in [Law::plain(1.0, 50.0), Law::plain(0.3, 1_000.0), waking, contended] {
        let points = law.low_points();
        let sizing = size_of(&points, request_for(points[3].ops_per_s, None));
        let [peak, twice] = &sizing.peaks[..] else { panic!("{:?}", sizing.peaks) };
        assert!(near(peak.ops_per_s.value, law.peak(), 0.02), "{:?} {}", peak, law.peak());
        assert!(peak.ops_per_s.low <= law.peak() * 1.001, "{peak:?}");
        assert!(near(peak.load_ratio, 2.5, 0.03), "{peak:?}");
        assert_eq!((peak.bound, peak.ops_per_s.high), (PeakBound::AtLeast, None));
        // More processors than one were never measured; a larger share of one needs no more of
        // them.
        let bound = if law.cores < 1.0 { PeakBound::AtLeast } else { PeakBound::Open };
        assert_eq!((twice.bound, twice.processors), (bound, 2.0 * law.cores));
    }
}

#[test]
fn a_server_that_was_seen_awake_has_a_peak_within_an_interval() {
    let law = Law::plain(1.0, 50.0);
    let mut points = law.low_points();
    points.push(law.point(0.95 * law.peak()));
    let sizing = size_of(&points, request_for(10_000.0, None));
    let [peak, twice] = &sizing.peaks[..] else { panic!("{:?}", sizing.peaks) };
    assert_eq!((peak.bound, twice.bound), (PeakBound::Exact, PeakBound::AtMost));
    assert!(peak.ops_per_s.low <= law.peak() * 1.001, "{peak:?}");
    assert!(law.peak() <= peak.ops_per_s.high.unwrap() * 1.001, "{peak:?}");
    let asleep = |it: &Unknown| matches!(it, Unknown::Asleep { .. });
    assert!(!sizing.unknown.iter().any(asleep), "{:?}", sizing.unknown);
}

/// nginx and NFS-Ganesha of docs/sizing.md, each measured up to two fifths of the first peak: an op
/// costs half at the peak, with twice the quota too.
#[test]
fn what_a_server_saves_that_no_longer_sleeps_breaks_no_answer() {
    let check = |by_law: f64, peaks: [f64; 2]| {
        let law = Law::plain(0.3, 0.3e6 / by_law);
        let points = [0.1, 0.2, 0.3, 0.4].map(|share| law.point(share * peaks[0]));
        let load = 0.7 * peaks[0];
        let sizing = size_of(&points, request_for(load, None));
        for (peak, truth) in sizing.peaks.iter().zip(peaks) {
            assert!(peak.ops_per_s.low <= truth && peak.ops_per_s.high.is_none(), "{peak:?}");
        }
        // At the peak's cost of an op the measured size carries the load at this headroom.
        let need = sizing.processors.unwrap();
        for (needed, truth) in [(need.count, 0.3), (need.per_op, 0.3e9 / peaks[0])] {
            let needed = needed.unwrap();
            assert!(needed.low <= truth && truth <= needed.high.unwrap(), "{needed:?} {truth}");
        }
        assert!(sizing.servers.unwrap().low <= 1.0, "{:?}", sizing.servers);
        let busy = points[3].busy_ratio().unwrap();
        assert!(sizing.unknown.contains(&Unknown::Asleep { busy_ratio: busy }));
    };
    check(11_869.0, [23_148.0, 53_546.0]);
    check(2_831.0, [5_204.0, 10_168.0]);
}

/// nginx with one worker process on two cores: 98 % of its work is one thread's. And a server with
/// four cores and two threads, and one whose quarter each does its part.
#[test]
fn processors_that_the_threads_cannot_fill_promise_nothing() {
    let of = |cores: f64, share: f64| {
        let mut points = Law::plain(cores, 20.0).low_points();
        points.iter_mut().for_each(|point| point.busiest_thread_ratio = Some(share));
        size_of(&points, request_for(points[3].ops_per_s * 1.2, None))
    };
    for (cores, share_ratio) in [(2.0, 0.98), (4.0, 0.5)] {
        let sizing = of(cores, share_ratio);
        assert!(sizing.unknown.contains(&Unknown::FewThreads { share_ratio, cores }));
        assert!(sizing.peaks.iter().all(|peak| peak.bound == PeakBound::Open), "{sizing:?}");
        assert_eq!(sizing.processors.unwrap().count.unwrap().high, None);
    }
    for (cores, share) in [(4.0, 0.25), (2.0, 0.65), (1.0, 1.0)] {
        let unknown = of(cores, share).unknown;
        assert!(!unknown.iter().any(|it| matches!(it, Unknown::FewThreads { .. })), "{unknown:?}");
    }
}

/// 49,938 of 50,000 requested ops/s were done: 100,000 are twice that.
#[test]
fn the_bound_of_twice_the_load_allows_for_the_schedules_chance() {
    let law = Law::plain(2.0, 20.0);
    let refused = |achieved: f64, requested: f64, load: f64| {
        let point = Measured { requested_ops_per_s: requested, ..law.point(achieved) };
        let sizing = size_of(&[law.point(20_000.0), point], request_for(load, None));
        matches!(sizing.refused, Some(Refusal::TooFar { .. }))
    };
    assert!(!refused(49_938.0, 50_000.0, 100_000.0));
    assert!(!refused(991.0, 1_000.0, 40_000.0));
    assert!(!refused(30_120.0, 30_000.0, 60_240.0), "more came than was asked for");
    assert!(refused(49_938.0, 50_000.0, 100_001.0));
    assert!(refused(49_938.0, 0.0, 100_000.0), "clients that wait ask for no rate");
}

#[test]
fn a_load_needs_its_demand_at_the_use_that_headroom_leaves() {
    let law = Law { wake_us: 20.0, ..Law::plain(1.0, 50.0) };
    let sizing = size_of(&law.low_points(), request_for(14_000.0, None));
    // 50 µs, and of 20 for waking up the share of idle time.
    let need = sizing.processors.unwrap();
    let (per_op, count) = (need.per_op.unwrap(), need.count.unwrap());
    assert!(near(per_op.value, 56_000.0, 0.01), "{per_op:?}");
    assert!(near(count.value, 14_000.0 * 56e-6 / 0.7, 0.01), "{count:?}");
    assert_eq!(count.high, None, "a second processor was never measured");
    assert!(sizing.unknown.contains(&Unknown::MoreProcessors { measured: 1.0 }));
    let mean_s = sizing.response[0].ns.value / 1e9;
    assert!(near(sizing.users.unwrap(), 14_000.0 * (10.0 + mean_s), 1e-9));
    // Two processors are busy to 1.12 of 2.
    assert!(near(sizing.response[0].busy_ratio, 0.392, 0.01), "{:?}", sizing.response);
    assert_eq!(sizing.servers.unwrap().whole(), 2.0);
}

#[test]
fn a_limit_of_the_response_time_lowers_the_use_of_the_processors() {
    let points = Law::plain(0.5, 1_000.0).low_points();
    let [free, bound] =
        [None, Some("p99<7ms")].map(|within| size_of(&points, request_for(390.0, within)));
    let busy = |sizing: &Sizing| sizing.response[0].busy_ratio;
    assert_eq!(busy(&free), 0.7);
    // 3 × (1.1 ms + 1 ms × ρ² … / (1 − ρ)) reaches 7 ms.
    assert!((0.5..0.69).contains(&busy(&bound)), "{}", busy(&bound));
    let p99 = bound.response.iter().find(|at| at.figure == Figure::P99).unwrap();
    assert!(p99.ns.value < 7e6 && p99.law == ResponseLaw::Queue, "{p99:?}");
    let count = |sizing: &Sizing| sizing.processors.as_ref().unwrap().count.unwrap().value;
    assert!(count(&bound) > count(&free));
    let slow = size_of(&points, request_for(390.0, Some("p99<2ms")));
    assert!(matches!(slow.refused, Some(Refusal::TooSlow { figure: Figure::P99, .. })));
    assert_eq!((slow.processors, slow.users, slow.response.len()), (None, None, 0));
}

#[test]
fn a_load_beyond_twice_the_highest_is_refused_unless_two_sizes_were_measured() {
    let law = Law { further_us: 5.0, ..Law::plain(1.0, 50.0) };
    let mut points = law.low_points();
    let sizing = size_of(&points, request_for(17_000.0, None));
    assert!(matches!(sizing.refused, Some(Refusal::TooFar { .. })), "{:?}", sizing.refused);
    assert_eq!(sizing.peaks.len(), 2, "what the server carries is said all the same");

    points.extend(Law { cores: 2.0, ..law }.low_points());
    let sizing = size_of(&points, request_for(40_000.0, None));
    assert_eq!((sizing.refused.as_ref(), sizing.measured.processors.len()), (None, 2));
    let count = sizing.processors.unwrap().count.unwrap();
    // P × 0.7 = 40,000 × (50 + 5 (P − 1)) µs.
    assert!(near(count.value, 40e3 * 45e-6 / (0.7 - 40e3 * 5e-6), 0.05), "{count:?}");
    assert!(count.high.is_some());
    assert!(sizing.peaks.iter().all(|peak| peak.bound == PeakBound::AtLeast));
    let never = size_of(&points, request_for(150_000.0, None));
    assert_eq!(never.refused, Some(Refusal::NoNumber));
}

#[test]
fn a_lock_or_a_pool_leaves_no_peak_to_an_answer_from_low_loads() {
    let of = |change: &dyn Fn(usize, &mut Measured)| {
        let mut points = Law::plain(1.0, 100.0).low_points();
        points.iter_mut().enumerate().for_each(|(at, point)| change(at, point));
        points
    };
    let mean = |point: &mut Measured, mean: f64| {
        (point.response.mean, point.response_low_ns) = (Some(mean), mean);
    };
    let waits = of(&|_, point| mean(point, 5e6));
    let queues = of(&|at, point| mean(point, 200e3 + 100e3 * at as f64));
    let locked = of(&|at, point| point.bottleneck = (at == 3).then_some(LimitKind::Lock));
    for points in [waits, queues, locked] {
        let highest = points[3].ops_per_s;
        let sizing = size_of(&points, request_for(highest, None));
        assert!(sizing.unknown.iter().any(is_doubt), "{:?}", sizing.unknown);
        assert!(sizing.peaks.iter().all(|peak| peak.bound == PeakBound::Open));
        let more = size_of(&points, request_for(1.2 * highest, None));
        let at_least = more.processors.as_ref().map(|need| need.count.unwrap().high);
        let refused = matches!(more.refused, Some(Refusal::HeldBack { .. }));
        assert!(refused || at_least == Some(None), "{more:?}");
    }
}

#[test]
fn little_used_processors_predict_no_peak_and_no_points_nothing() {
    let law = Law::plain(1.0, 50.0);
    let points = [0.02, 0.05, 0.1].map(|share| law.point(share * law.peak()));
    let sizing = size_of(&points, request_for(2_000.0, None));
    assert!(sizing.peaks.is_empty() && sizing.refused.is_none());
    assert!(sizing.unknown.iter().any(|it| matches!(it, Unknown::LittleUsed { .. })));
    assert_eq!(size_of(&[], request_for(1.0, None)).refused, Some(Refusal::NothingMeasured));
    let one = size_of(&points[..1], request_for(500.0, None));
    assert!(one.unknown.contains(&Unknown::FewLoads { loads: 1 }), "{:?}", one.unknown);
}

#[test]
fn disks_and_adapters_are_counted_by_what_one_can_do() {
    let cost = |value| Some(Cost { value, interval: None });
    let mut points = Law::plain(1.0, 100.0).low_points();
    for point in &mut points {
        // Two disks; each transfer keeps one of them busy for 100 µs.
        let busy_ratio = Some(point.ops_per_s * 0.5 * 100e-6 / 2.0);
        let (transfers, bytes) = (cost(0.5), cost(8_192.0));
        point.disks =
            Some(Device { count: 2.0, transfers, bytes, busy_ratio, ..Device::default() });
        let speed = Ceiling { value: 125e6, basis: CeilingBasis::LinkSpeed };
        let (bytes, bytes_each) = (cost(50_000.0), Some(speed));
        point.adapters = Some(Device { count: 1.0, bytes, bytes_each, ..Device::default() });
        point.memory = cost(1e9 + 1e5 * point.ops_per_s);
    }
    let mut request = request_for(5_000.0, None);
    let sizing = size_of(&points, request.clone());
    let count = |need: &Option<Need>| need.as_ref().unwrap().count.unwrap().value;
    assert!(near(count(&sizing.disks_by_iops), 2_500.0 / (10_000.0 * 0.7), 0.01));
    assert!(near(count(&sizing.adapters), 250e6 / (125e6 * 0.7), 0.01));
    let memory = sizing.memory.unwrap();
    assert!(near(memory.total.value, 1.5e9, 0.01) && memory.count.is_none(), "{memory:?}");
    request.stated.disk_transfers_per_s = Some(120.0);
    request.stated.disk_bytes_per_s = Some(10e6);
    let declared = size_of(&points, request);
    assert!(near(count(&declared.disks_by_iops), 2_500.0 / (120.0 * 0.7), 0.01));
    assert!(near(count(&declared.disks_by_bytes), 5_000.0 * 8_192.0 / 7e6, 0.01));
}

#[test]
fn whole_servers_are_paid_for() {
    let text = include_str!("../../../../docs/examples/prices.toml");
    let list = PriceList::parse("prices.toml", text).unwrap();
    let mut sizing = size_of(&Law::plain(1.0, 100.0).low_points(), request_for(7_500.0, None));
    price(&mut sizing, &list.systems[0]);
    let money = sizing.money.unwrap();
    assert_eq!((money.servers, money.total.to_string().as_str()), (2.0, "EUR 22,461.00"));
    assert!(near(money.per_thousand_ops_per_s, 22_461.0 / 7.5, 1e-9));
}
