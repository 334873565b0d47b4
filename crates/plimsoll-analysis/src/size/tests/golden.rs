//! Two real processors: Intel's report of 1998 in `published/web-n440bx-1998.toml`.

use super::*;
use crate::published::{Published, published};

fn report() -> Published {
    published("web-n440bx-1998").unwrap()
}

fn peak(report: &Published, name: &str) -> f64 {
    report.configurations.iter().find(|it| it.name == name).unwrap().peak_ops_per_s
}

/// A cell of the utilisations at the peak: `one` for one processor, else for two.
fn cell(report: &Published, row: &str, column: usize) -> f64 {
    let table = report.tables.iter().find(|it| it.name == "utilisation at the peak").unwrap();
    let row = table.rows.iter().find(|it| it[0] == row).unwrap();
    row[column].parse().unwrap()
}

const ONE: usize = 2;
const TWO: usize = 3;

/// The load point of the utilisations: processors used to a percentage, four adapters.
fn measured(report: &Published, cores: f64, ops_per_s: f64, column: usize) -> Measured {
    let busy = cell(report, "processors, total", column) / 100.0;
    let adapters = ["1", "2 (one client)", "3", "4"]
        .map(|number| cell(report, &format!("network adapter {number}"), column));
    let cost = |value| Some(Cost { value, interval: None });
    let mbit_per_s: f64 = adapters.iter().sum();
    let speed = Ceiling { value: 100e6 / 8.0, basis: CeilingBasis::LinkSpeed };
    Measured {
        ops_per_s,
        cores: Some(cores),
        cpu_ns: cost(busy * cores * 1e9 / ops_per_s),
        adapters: Some(Device {
            count: 4.0,
            bytes: cost(mbit_per_s * 1e6 / 8.0 / ops_per_s),
            bytes_each: Some(speed),
            ..Device::default()
        }),
        ..Measured::default()
    }
}

fn full(load: f64) -> SizeRequest {
    SizeRequest { headroom_ratio: 1.0, ..request_for(load, None) }
}

#[test]
fn of_one_processor_at_400_mhz_two_are_needed_for_what_intels_two_carried() {
    let report = report();
    let [one, two] = ["1 CPU 400 MHz", "2 CPU 400 MHz"].map(|name| peak(&report, name));
    let sizing = size_of(&[measured(&report, 1.0, one, ONE)], full(two));
    let count = sizing.processors.as_ref().unwrap().count.unwrap();
    // Of one size measured: at least, and in whole ones the two that it took.
    assert_eq!((count.high, count.whole()), (None, 2.0), "{count:?}");
    let twice = sizing.peaks.last().unwrap();
    assert!(twice.bound == PeakBound::AtMost && twice.ops_per_s.value > two, "{twice:?}");
    // Four adapters carried it, the processors were the limit. The report prints 161 Mbit/s, of a run
    // whose monitors lowered the load to a throughput that it does not print: no more than that.
    let adapters = sizing.adapters.unwrap();
    let mbit_per_s = adapters.total.value * 8.0 / 1e6;
    let printed = cell(&report, "network, all adapters, both ways", TWO);
    assert_eq!((mbit_per_s.round(), printed), (180.0, 161.0));
    assert!(adapters.count.unwrap().whole() <= 4.0);
}

#[test]
fn what_the_second_processor_brought_at_350_mhz_tells_that_at_400() {
    let report = report();
    let at = |clock: &str, cores: f64, name: &str| {
        let column = if cores > 1.0 { TWO } else { ONE };
        // According to the report, in the benchmark itself all processors were full.
        let peak = peak(&report, &format!("{name} {clock}"));
        let full = Cost { value: cores * 1e9 / peak, interval: None };
        Measured { cpu_ns: Some(full), ..measured(&report, cores, peak, column) }
    };
    let slow = [at("350 MHz", 1.0, "1 CPU"), at("350 MHz", 2.0, "2 CPU")];
    let sizing = size_of(&slow, full(1_600.0));
    assert!(sizing.refused.is_none());
    let law = sizing.processors.as_ref().unwrap().law.clone();
    let further = law.iter().find(|term| term.kind == TermKind::Processors).unwrap();
    // 2 × 1,000 / 1,661: an op takes 20 % more of two processors.
    assert!(near(further.value, 1e6 * (2_000.0 / 1_661.0 - 1.0), 0.01), "{law:?}");
    let [one, two, _] = &sizing.peaks[..] else { panic!("{:?}", sizing.peaks) };
    let scaling = two.ops_per_s.value / one.ops_per_s.value;
    let predicted = scaling * peak(&report, "1 CPU 400 MHz");
    let printed = peak(&report, "2 CPU 400 MHz");
    assert!(near(predicted, printed, 0.05), "{predicted} for {printed}");
    // The report's own factor, as it prints it, is nearer: 1.6 of 1,150.
    assert!(near(1.6 * peak(&report, "1 CPU 400 MHz"), printed, 0.01));
}

#[test]
fn intels_monitors_cost_load_and_no_demand() {
    let report = report();
    // The report prints no throughput of the monitored runs. If that of one processor was its peak
    // and every op has the same bytes, it follows for two from 161 instead of 112 Mbit/s.
    let one = peak(&report, "1 CPU 400 MHz");
    let mbit = |column| cell(&report, "network, all adapters, both ways", column);
    let watched = measured(&report, 2.0, one * mbit(TWO) / mbit(ONE), TWO);
    let sizing = size_of(&[watched], full(1_700.0));
    let peak_of_two = &sizing.peaks[0].ops_per_s;
    let printed = peak(&report, "2 CPU 400 MHz");
    assert!(near(peak_of_two.value, printed, 0.01), "{peak_of_two:?} for {printed}");
    assert!(peak_of_two.low < printed && printed < peak_of_two.high.unwrap());
}
