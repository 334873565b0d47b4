use super::*;

const WEB: &str = include_str!("../../../../published/web-n440bx-1998.toml");
const V3: &str = include_str!("../../../../published/nfs-pseries-v3-2002.toml");
const CURVES: &str = include_str!("../../../../published/nfs-ort-curves.toml");

fn web() -> Published {
    published("web-n440bx-1998").unwrap()
}

#[test]
fn every_file_reads_and_carries_its_own_name() {
    for name in names() {
        let published = published(name).unwrap();
        assert_eq!(published.name, name);
    }
    assert_eq!(catalogue().unwrap().rows.len(), FILES.len());
}

#[test]
fn the_golden_ratios_of_the_web_report_are_computed_from_its_peaks() {
    let rows = web().comparisons_table().rows;
    let computed: Vec<(&str, &str)> =
        rows.iter().map(|row| (row[1].as_str(), row[2].as_str())).collect();
    assert_eq!(
        computed,
        [("1.661", "+66.1 %"), ("1.587", "+58.7 %"), ("1.150", "+15.0 %"), ("1.099", "+9.9 %")]
    );
}

#[test]
fn every_configuration_has_ten_evenly_spaced_points() {
    for configuration in web().configurations {
        let step = configuration.peak_ops_per_s / 10.0;
        assert_eq!(configuration.points_ops_per_s.len(), 10, "{}", configuration.name);
        for (k, point) in (1..).zip(&configuration.points_ops_per_s) {
            assert!((point - step * f64::from(k)).abs() <= 1.0, "{point}");
        }
    }
}

#[test]
fn the_directory_counts_follow_the_methods_formula() {
    let web = web();
    let table = web.tables.iter().find(|t| t.name.starts_with("file set")).unwrap();
    for row in &table.rows {
        let ops_per_s: f64 = row[0].parse().unwrap();
        let directories = 10.0 * (ops_per_s / 5.0).sqrt();
        assert_eq!(directories.floor().to_string(), row[1]);
        // MiB of the unrounded count; the report rounds.
        let size: f64 = row[2].parse().unwrap();
        assert!((directories * 4.882 - size).abs() < 1.0, "{ops_per_s}");
    }
}

#[test]
fn the_points_table_ends_with_the_peaks() {
    let table = web().points_table();
    assert_eq!(table.columns.len(), 5);
    assert_eq!(table.rows.len(), 11);
    assert_eq!(table.rows[10], ["peak", "1,000", "1,661", "1,150", "1,825"]);
}

#[test]
fn mistakes_are_named() {
    let check = |change: (&str, &str), message: &str| {
        let text = WEB.replacen(change.0, change.1, 1);
        let error = parse("test", &text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check(("format = 1", "format = 2"), "has format 2");
    check(("peak_ops_per_s = 1661", "peak_ops_per_s = 1700"), "is not its highest point");
    check(("to = \"2 CPU 350 MHz\"", "to = \"4 CPU\""), "names no known configuration");
    check(("[\"1\", \"4\", \"22\"]", "[\"1\", \"4\"]"), "another number of fields");
    check(("clock_mhz", "clock"), "clock");
    let unknown = published("nothing").unwrap_err().to_string();
    assert!(unknown.contains("there are: netbench-netfinity-1999, netbench-nt-1998"), "{unknown}");
}

#[test]
fn both_result_tables_of_the_nfs_report_are_there_in_full() {
    let rows = |name: &str| published(name).unwrap().results_table().rows;
    let (v2, v3) = (rows("nfs-pseries-v2-2002"), rows("nfs-pseries-v3-2002"));
    assert_eq!((v2.len(), v3.len()), (13, 24));
    let first = ["IBM Corporation", "IBM eServer pSeries 690 Turbo", "UDP", "16"];
    assert_eq!((&v2[0][..4], v2[0][4].as_str()), (&first.map(str::to_owned)[..], "111,687"));
    assert_eq!((&v3[0][..4], v3[0][4].as_str()), (&first.map(str::to_owned)[..], "61,120"));
    assert_eq!(
        v3[23],
        ["Traakan, Inc.", "RainFiler (Failover,1-Node,4x36,TCP)", "TCP", "1", "1,957"]
    );
    // Sums over the columns of the report.
    let sum = |name: &str| -> f64 {
        published(name).unwrap().results.iter().map(|r| r.peak_ops_per_s).sum()
    };
    assert_eq!(sum("nfs-pseries-v2-2002"), 351_700.0);
    assert_eq!(sum("nfs-pseries-v3-2002"), 385_797.0);
}

#[test]
fn what_the_nfs_report_says_of_tcp_and_its_own_tables_differ_as_noted() {
    let gains = |name: &str| -> Vec<String> {
        let rows = published(name).unwrap().comparisons_table().rows;
        rows.into_iter().filter(|r| r[0].starts_with("TCP")).map(|r| r[2].clone()).collect()
    };
    assert_eq!(gains("nfs-pseries-v2-2002"), ["-17.6 %", "-13.3 %", "-15.6 %"]);
    let v3 = gains("nfs-pseries-v3-2002");
    assert_eq!(v3.len(), 10);
    assert!(v3.contains(&"-11.6 %".to_owned()) && v3.contains(&"+0.1 %".to_owned()), "{v3:?}");
}

#[test]
fn published_curves_give_their_published_digit_and_both_definitions_are_shown() {
    let rows = published("nfs-ort-curves").unwrap().overall_table().rows;
    assert_eq!(rows[0], ["curve A", "1.58", "1.58", "1.70"]);
    assert_eq!(rows[1], ["curve B", "1.67", "1.67", "1.82"]);
}

#[test]
fn empty_tables_are_not_shown() {
    for name in names() {
        let published = published(name).unwrap();
        assert!(published.tables().iter().all(|table| !table.rows.is_empty()), "{name}");
    }
}

#[test]
fn mistakes_in_lists_and_curves_are_named() {
    let check = |text: &str, change: (&str, &str), message: &str| {
        let error = parse("test", &text.replacen(change.0, change.1, 1)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check(
        V3,
        ("HP server rp7400", "HP server rx4610"),
        "\"HP server rx4610, UDP\" is listed twice",
    );
    check(V3, ("\"udp\"", "\"sctp\""), "sctp");
    check(CURVES, ("1.58", "1.57"), "curve \"curve A\" is not what its points give");
    check(CURVES, ("response_ms = [0.9, ", "response_ms = ["), "has more of one column");
}

const NT: &str = include_str!("../../../../published/netbench-nt-1998.toml");

/// The computed cells of a table, by the first columns of their rows.
fn performance(name: &str) -> Vec<Vec<String>> {
    let tables = published(name).unwrap().tables();
    tables.into_iter().find(|table| table.name.starts_with("price/performance")).unwrap().rows
}

#[test]
fn the_golden_figures_of_the_file_server_comparison_follow_from_its_tables() {
    let [nt, sun] = ["netbench-nt-1998", "netbench-sun-1998"]
        .map(|name| published(name).unwrap().byte_curves.remove(0));
    assert_eq!((nt.peak(), sun.peak()), (Some((28, 8_398_371.0)), Some((16, 1_950_885.0))));
    let at_peak = nt.bytes_per_s.iter().position(|bytes| *bytes == 8_398_371.0).unwrap();
    assert_eq!((nt.printed_mb_per_s[at_peak], nt.printed_mbit_per_s[at_peak]), (8.0, 64.1));
    assert_eq!(sun.printed_mb_per_s.iter().copied().reduce(f64::max), Some(1.9));
    let prices = [&nt, &sun].map(|curve| curve.priced().unwrap().price);
    assert_eq!(prices, [13_900.0, 37_047.0]);

    let nt = performance("netbench-nt-1998");
    let cells: Vec<(&str, &str)> =
        nt.iter().map(|row| (row[1].as_str(), row[2].as_str())).collect();
    assert_eq!(
        cells,
        [
            ("8.0, rounded to one decimal", "1,737.50"),
            ("8.009, unrounded", "1,735.48"),
            ("rounded to one decimal", "4.21 times"),
            ("unrounded", "4.30 times"),
            ("rounded to one decimal", "11.22 times"),
            ("unrounded", "11.47 times"),
        ]
    );
    let sun = performance("netbench-sun-1998");
    assert_eq!((sun[0][2].as_str(), sun[0][3].as_str()), ("19,498.42", "19,498.42"));
    assert_eq!(sun.len(), 2, "the comparison stands with the other server");
}

#[test]
fn both_curves_of_the_comparison_are_there_with_those_that_took_part() {
    let sun = published("netbench-sun-1998").unwrap().byte_curves.remove(0);
    let clients: Vec<u32> = std::iter::once(1).chain((4..=60).step_by(4)).collect();
    assert_eq!(sun.clients, clients);
    let least = sun.participating[15];
    assert_eq!((least, sun.participating.iter().max()), (27, Some(&28)));
    // Sums over the columns of the report.
    let sum =
        |name: &str| -> f64 { published(name).unwrap().byte_curves[0].bytes_per_s.iter().sum() };
    assert_eq!(sum("netbench-nt-1998"), 90_625_584.0);
    assert_eq!(sum("netbench-sun-1998"), 27_557_275.0);
}

#[test]
fn mistakes_in_file_throughput_are_named() {
    let check = |change: (&str, &str), message: &str| {
        let error = parse("test", &NT.replacen(change.0, change.1, 1)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check(("490_618", "590_618"), "590,618 bytes/s of");
    check(("usd = 4599", "usd = 4600"), "does not follow from its peak");
    check(("participating = [1, ", "participating = [2, "), "more clients took part");
    check(("clients = [1, ", "clients = ["), "differ in length");
}
