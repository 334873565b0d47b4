use super::*;

/// Tables 4 and 5 of `published/netbench-nt-1998.toml` and `netbench-sun-1998.toml`, as a price
/// file would hold them.
const PRICES: &str = r#"
format = 1
currency = "USD"

[[systems]]
name = "nt"
total = 13900

[[systems.items]]
name = "base system"
source = "street price, quote of a Compaq reseller"
date = "1998-05-01"
unit_price = 4599

[[systems.items]]
name = "additional CPU"
source = "street price"
date = "1998-05-01"
unit_price = 1299

[[systems.items]]
name = "the rest"
source = "street price"
date = "1998-05-02"
available = "1998-06-01"
unit_price = 8002
maintenance_years = 1
maintenance_price = 0

[[systems]]
name = "sun"
total = 37047

[[systems.items]]
name = "all of it"
source = "quotes of a Sun reseller and of Syntax"
date = "1998-05-01"
unit_price = 37047
"#;

fn list() -> PriceList {
    PriceList::parse("prices.toml", PRICES).unwrap()
}

fn bytes(value: f64, interval: Option<[f64; 2]>) -> Performance {
    let throughput = Throughput::new("peak", value, interval, "bytes/s", false);
    Performance { throughputs: vec![throughput], remarks: Vec::new() }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.005
}

#[test]
fn the_published_price_per_unit_follows_both_ways() {
    let list = list();
    let carries = bytes(8_398_371.0, Some([8_000_000.0, 8_800_000.0]));
    let nt = priced(&list, list.system("nt").unwrap(), &carries);
    let figure = &nt.figures[0];
    assert_eq!((figure.of.as_str(), figure.unit.as_str()), ("peak", "MiB/s"));
    assert!(near(figure.money_per_unit, 1_735.48), "{figure:?}");
    assert!(near(figure.units_per_money * 13_900.0, 8.009), "{figure:?}");
    let [low, high] = figure.money_per_unit_interval.unwrap();
    assert!(low < 1_735.48 && 1_735.48 < high);
    assert_eq!(nt.dates, ["1998-05-01", "1998-05-02"]);
    assert_eq!(nt.available.as_deref(), Some("1998-06-01"));
    assert_eq!(nt.remarks, ["maintenance of the rest is paid for 1 years, the period is 3"]);
}

#[test]
fn an_item_moves_the_figure_by_its_share() {
    let list = list();
    let nt = priced(&list, list.system("nt").unwrap(), &bytes(8.0 * BYTES_PER_MIB, None));
    let cpu = &nt.sensitivity[1];
    assert_eq!((cpu.item.as_str(), cpu.totals), ("additional CPU", [13_770.1, 14_029.9, 12_601.0]));
    assert!((cpu.share_ratio - 0.09345).abs() < 1e-5);
    let per_unit = cpu.money_per_unit.unwrap();
    assert!(near(per_unit[0], 1_721.26) && near(per_unit[2], 1_575.125), "{per_unit:?}");
    let shares: f64 = nt.lines.iter().map(|line| line.share_ratio).sum();
    assert!((shares - 1.0).abs() < 1e-12);
}

#[test]
fn systems_are_compared_by_the_figures_they_all_have() {
    let mut nt = bytes(8_398_371.0, None);
    nt.throughputs.push(Throughput::new("capacity", 40.0, None, "clients", false));
    let runs = [("sun".to_owned(), bytes(1_950_885.0, None)), ("nt".to_owned(), nt)];
    let table = compare_priced(&list(), &runs).unwrap();
    assert_eq!((table.of.as_slice(), table.rows.len()), (&["peak, MiB/s".to_owned()][..], 2));
    let row = &table.rows[1];
    assert!(near(row.throughput_ratio, 4.30) && near(row.units_per_money_ratio, 11.47), "{row:?}");
    assert!(near(1.0 / row.money_per_unit_ratio, 11.47) && near(row.price_ratio, 0.375), "{row:?}");
}

#[test]
fn a_label_without_prices_is_named_with_the_nearest() {
    let error = compare_priced(&list(), &[("nd".to_owned(), Performance::default())]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no system of the price file is called \"nd\"; did you mean \"nt\"?"
    );
    assert!(system_of(&list(), "other").is_err());
    let mut one = list();
    one.systems.truncate(1);
    assert_eq!(system_of(&one, "other").unwrap().name, "nt");
}

#[test]
fn nothing_is_divided_by_a_throughput_of_nothing() {
    let list = list();
    let idle = priced(&list, &list.systems[0], &bytes(0.0, None));
    assert!(idle.figures.is_empty() && idle.sensitivity[0].money_per_unit.is_none());
}

#[test]
fn a_group_is_priced_by_the_geometric_mean_of_its_valid_runs() {
    let run = |value: f64, valid: bool| {
        let mut run = RunResult::default();
        run.summary.value = Some(value);
        run.summary.unit = "ops/s".to_owned();
        run.summary.value_interval = Some([value - 1.0, value + 1.0]);
        run.verdict.valid = valid;
        run
    };
    let (low, high, bad) = (run(100.0, true), run(400.0, true), run(9_000.0, false));
    let group = Performance::of_runs(&[&low, &high, &bad]);
    assert!(near(group.throughputs[0].value, 200.0), "{group:?}");
    assert_eq!(group.throughputs[0].interval, None);
    assert_eq!(group.remarks, ["geometric mean of 2 runs"]);
    let alone = Performance::of_runs(&[&low]);
    assert_eq!(alone.throughputs[0].interval, Some([99.0, 101.0]));
    let invalid = Performance::of_runs(&[&bad]);
    assert_eq!(invalid.remarks, ["the run is not valid: neither are its prices per unit"]);
    assert_eq!(Performance::of_runs(&[]), Performance::default());
}

#[test]
fn a_run_without_a_peak_or_a_verdict_says_so() {
    let run = RunResult { profile: Some("quick".to_owned()), ..RunResult::default() };
    let carries = Performance::from_run(&run);
    assert!(carries.throughputs.is_empty());
    assert_eq!(carries.remarks.len(), 3, "{:?}", carries.remarks);
}

const NT: Priced = Priced { peak_bytes_per_s: 8_398_371.0, price: 13_900.0 };
const SUN: Priced = Priced { peak_bytes_per_s: 1_950_885.0, price: 37_047.0 };

fn cents(value: Option<f64>) -> String {
    format!("{:.2}", value.unwrap())
}

#[test]
fn the_published_figures_rest_on_rounded_peaks() {
    let peak = Peak::Rounded;
    assert_eq!(
        (peak.mb_per_s(NT.peak_bytes_per_s), peak.mb_per_s(SUN.peak_bytes_per_s)),
        (8.0, 1.9)
    );
    assert_eq!(cents(NT.per_mb_per_s(peak)), "1737.50");
    assert_eq!(cents(SUN.per_mb_per_s(peak)), "19498.42");
    assert_eq!(cents(NT.times_the_throughput(&SUN, peak)), "4.21");
    assert_eq!(cents(NT.times_the_price_performance(&SUN, peak)), "11.22");
}

#[test]
fn unrounded_peaks_give_other_figures() {
    let peak = Peak::Unrounded;
    assert_eq!(cents(NT.per_mb_per_s(peak)), "1735.48");
    assert_eq!(cents(SUN.per_mb_per_s(peak)), "19912.29");
    assert_eq!(cents(NT.times_the_throughput(&SUN, peak)), "4.30");
    assert_eq!(cents(NT.times_the_price_performance(&SUN, peak)), "11.47");
}

#[test]
fn nothing_has_no_price_per_unit() {
    let idle = Priced { peak_bytes_per_s: 0.0, price: 1.0 };
    assert_eq!(idle.per_mb_per_s(Peak::Unrounded), None);
    assert_eq!(NT.times_the_throughput(&idle, Peak::Rounded), None);
}
