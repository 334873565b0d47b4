use super::*;

const WEB: &str = include_str!("../../../../published/web-n440bx-1998.toml");
const V3: &str = include_str!("../../../../published/nfs-pseries-v3-2002.toml");

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
    check(("format = 2", "format = 3"), "has format 3");
    check(("peak_ops_per_s = 1661", "peak_ops_per_s = 1700"), "is not its highest point");
    check(("to = \"2 CPU 350 MHz\"", "to = \"4 CPU\""), "names no known configuration");
    check(("[\"1\", \"4\", \"22\"]", "[\"1\", \"4\"]"), "another number of fields");
    check(("clock_mhz", "clock"), "clock");
    let unknown = published("nothing").unwrap_err().to_string();
    assert!(unknown.contains("there are: netbench-netfinity-1999, netbench-nt-1998"), "{unknown}");
    let near = published("netbench-nt-1999").unwrap_err().to_string();
    assert!(near.ends_with("did you mean netbench-nt-1998?"), "{near}");
    check(("place = \"page 15\"", "place = \"\""), "an empty place");
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
fn empty_tables_are_not_shown() {
    for name in names() {
        let published = published(name).unwrap();
        assert!(published.tables().iter().all(|table| !table.rows.is_empty()), "{name}");
    }
}

#[test]
fn mistakes_in_lists_are_named() {
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

/// A cell of a report's own table, as a number.
fn cell(name: &str, table: &str, row: &str, column: usize) -> f64 {
    let tables = published(name).unwrap().tables;
    let table = tables.into_iter().find(|it| it.name == table).expect("a table of that name");
    let row = table.rows.into_iter().find(|it| it[0] == row).expect("a row of that name");
    row[column].replace(',', "").parse().expect("a number")
}

#[test]
fn what_the_web_report_prints_of_scaling_is_its_peaks_cut_off_or_wrong() {
    let web = web();
    let of = |at: usize| {
        let comparison = &web.comparisons[at];
        (web.ratio(comparison).unwrap(), comparison.printed_ratio.unwrap())
    };
    let cut = |value: f64, digits: i32| (value * 10f64.powi(digits)).floor() / 10f64.powi(digits);
    // 1.661 is printed as 1.6, 1.587 as 1.59, +15.0 % as 13 %, +9.9 % as 9 %.
    assert_eq!(cut(of(0).0, 1), of(0).1);
    assert_eq!((of(1).0 * 100.0).round() / 100.0, of(1).1);
    assert!((of(2).0 - 1.15).abs() < 1e-9 && of(2).1 == 1.13);
    assert_eq!(cut(of(3).0, 2), of(3).1);
}

#[test]
fn the_web_reports_resources_add_up_as_far_as_noted() {
    let at_peak =
        |row: &str, column| cell("web-n440bx-1998", "utilisation at the peak", row, column);
    for (column, total) in [(2, 99.4), (3, 90.9)] {
        assert_eq!(at_peak("processors, total", column), total);
        let parts = at_peak("processors, privileged", column) + at_peak("processors, user", column);
        assert!((parts - total).abs() < 0.05, "{parts}");
    }
    let adapters = ["1", "2 (one client)", "3", "4"].map(|n| format!("network adapter {n}"));
    let sum = |column| -> f64 { adapters.iter().map(|name| at_peak(name, column)).sum() };
    assert_eq!(
        (format!("{:.1}", sum(2)), format!("{:.1}", sum(3))),
        ("113.4".into(), "163.7".into())
    );
    assert_eq!(at_peak("network, all adapters, both ways", 3), 161.0);
    // The clients' mean leaves out the adapter with one client.
    assert_eq!(format!("{:.0}", (32.29 + 32.4 + 32.36) / 3.0), "32");
}

#[test]
fn the_settings_of_appendix_c_say_what_their_numbers_are() {
    let tables = web().tables;
    let settings = tables.iter().find(|t| t.name.starts_with("settings of the server")).unwrap();
    let value = |name: &str| {
        let row = settings.rows.iter().find(|row| row[0].ends_with(name)).expect("a setting");
        i64::from_str_radix(row[1].trim_start_matches("0x"), 16).expect("a number")
    };
    assert_eq!(settings.rows.len(), 13);
    assert_eq!(value("ObjectCacheTTL") as f64 / 3_600.0, 60_000.0 / 3_600.0);
    assert_eq!((value("MemoryCacheSize"), value("ListenBacklog")), (8 << 20, 25));
    assert_eq!((value("MaxFreeTcbs"), value("MaxHashTableSize")), (114_000, 65_536));
    assert_eq!((value("TcpTimedWaitDelay"), value("LogFileFlushInterval")), (60, 60));
}

#[test]
fn the_file_sizes_of_the_web_report_follow_the_formula_but_one() {
    let size = |class: i32, file: f64| (file * 102.4 * 10f64.powi(class)).floor();
    for class in 0..4 {
        let printed =
            |row| cell("web-n440bx-1998", "file sizes by class, in bytes", row, 1 + class as usize);
        assert_eq!((printed("first"), printed("second")), (size(class, 1.0), size(class, 2.0)));
        let erratum = f64::from(u8::from(class == 0));
        assert_eq!(printed("last"), size(class, 9.0) + erratum);
    }
    let directories = 10.0 * (1_825.0f64 / 5.0).sqrt();
    assert_eq!(format!("{:.0}", directories * 4.882), "933");
}

#[test]
fn version_3_against_version_2_is_as_noted() {
    let peak = |name: &str, label: &str| {
        let results = published(name).unwrap().results;
        results.into_iter().find(|r| r.label() == label).map(|r| r.peak_ops_per_s)
    };
    let mut percent = Vec::new();
    for result in published("nfs-pseries-v2-2002").unwrap().results {
        let lower = result.label().replace("HP server", "hp server");
        let v3 = |label: &str| peak("nfs-pseries-v3-2002", label);
        if let Some(v3) = v3(&result.label()).or_else(|| v3(&lower)) {
            percent.push((v3 / result.peak_ops_per_s * 100.0).round());
        }
    }
    assert_eq!(percent, [55.0, 56.0, 75.0, 76.0, 81.0, 82.0]);
}

#[test]
fn the_nfs_reports_configuration_adds_up() {
    let table = "what the report says of the larger server's resources";
    let each = cell("nfs-pseries-v2-2002", table, "network adapter, load", 2);
    assert!((111_687.0 / 8.0 / each - 1.0).abs() < 0.01);
    assert_eq!((64 * 8, 64 * 7), (512, 448), "disks and file systems of its volume groups");
    assert_eq!(format!("{:.1}", 0.83 * 28.0), "23.2");
    let small = published("nfs-pseries-v2-2002").unwrap().results[1].peak_ops_per_s;
    assert_eq!(format!("{:.2}", 23.2e3 / small), "0.43");
    assert_eq!(format!("{:.1}", small * 1e-3), "53.7");
}

#[test]
fn the_bottleneck_figures_of_the_file_server_comparison_are_there() {
    let state = |row| cell("netbench-sun-1998", "processor time at the peak", row, 1);
    assert_eq!((state("system and user"), state("waiting"), state("idle")), (29.0, 70.0, 1.0));
    assert_eq!(state("system and user") + state("waiting"), 99.0, "what is called utilised");
    for (name, limits) in [("netbench-nt-1998", 1), ("netbench-sun-1998", 4)] {
        let tables = published(name).unwrap().tables;
        let table = tables.iter().find(|t| t.name == "what limits the server").unwrap();
        let yes_rows = table.rows.iter().filter(|row| row[2].starts_with("yes")).count();
        assert_eq!(yes_rows, limits, "{name}");
        assert_eq!(tables.iter().find(|t| t.place == "table 2").unwrap().rows.len(), 9);
    }
}

#[test]
fn the_transaction_and_netware_reports_are_there() {
    let transactions = published("transactions-netfinity-1999").unwrap();
    let threads = |row| cell(&transactions.name, "service threads of the server program", row, 1);
    let [some, processors] = [threads("with 60 clients, up to"), threads("for the two processors")];
    assert_eq!(some + processors, threads("in all"));
    assert!(
        transactions.notes.iter().any(|note| note.text.contains("32 segments of 16 MB are 512 MB"))
    );
    let parameters = &published("netbench-netfinity-1999").unwrap().tables[1];
    assert_eq!((parameters.name.as_str(), parameters.rows.len()), ("NetWare parameters", 24));
    let superlab = published("netbench-proliant-1995").unwrap();
    let think = superlab.tables[0].rows.iter().find(|row| row[0] == "Think Time").unwrap();
    assert_eq!(think[1], "2 to 120 s");
    let low_ends: f64 = superlab.tables[3]
        .rows
        .iter()
        .map(|row| row[1].split(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(low_ends, 140.0);
    assert_eq!((28 * 36, 406 - 323, 974 / 2 * 4), (1_008, 83, 1_948));
}

#[test]
fn the_server_comparison_is_made_with_ratios_as_printed_and_as_computed() {
    let made = compare("netbench-sun-1998", "netbench-nt-1998").unwrap();
    let rows: Vec<(String, Option<f64>)> =
        made.figures.iter().map(|f| (format!("{:.2}", f.ratio), f.printed_ratio)).collect();
    let ratio = |at: usize| rows[at].0.as_str();
    // Throughput, unrounded and rounded; price; price per unit, rounded and unrounded.
    assert_eq!([ratio(0), ratio(1), ratio(2)], ["4.30", "4.21", "0.38"]);
    assert_eq!((rows[0].1, rows[1].1), (None, Some(4.2)));
    let cheaper: Vec<String> =
        made.figures[3..].iter().map(|f| format!("{:.2}", 1.0 / f.ratio)).collect();
    assert_eq!(cheaper, ["11.22", "11.47"]);
    assert!((1.0 / rows[3].1.unwrap() - 11.2).abs() < 1e-9);
    assert_eq!(made.points.len(), 16);
    assert_eq!(made.points[7].participating, Some([24, 28]));
    let back = compare("netbench-nt-1998", "netbench-sun-1998").unwrap();
    assert!(back.figures[1].printed.starts_with("the other way round: over 4.2"));
    assert!((back.figures[1].printed_ratio.unwrap() * 4.2 - 1.0).abs() < 1e-9);
}

#[test]
fn systems_of_one_report_are_compared_by_name() {
    let web = |one: &str, two: &str| {
        compare(&format!("web-n440bx-1998/{one}"), &format!("web-n440bx-1998/{two}")).unwrap()
    };
    let scaled = web("1-cpu-350-mhz", "2-cpu-350-mhz");
    assert_eq!(format!("{:.3}", scaled.figures[0].ratio), "1.661");
    assert_eq!(scaled.figures[0].printed, "1.6x, 60 %");
    assert_eq!(scaled.points.len(), 10);
    let clock = web("2-cpu-350-mhz", "2-cpu-400-mhz");
    assert_eq!(
        (format!("{:.3}", clock.figures[0].ratio), clock.figures[0].printed_ratio),
        ("1.099".into(), Some(1.09))
    );
    let nfs = compare(
        "nfs-pseries-v2-2002/hp-server-rx4610-udp",
        "nfs-pseries-v2-2002/hp-server-rx4610-tcp",
    );
    assert_eq!(format!("{:.3}", nfs.unwrap().figures[0].ratio), "0.824");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_next_move() {
    let check = |one: &str, two: &str, message: &str| {
        let error = compare(one, two).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check(
        "web-n440bx-1998",
        "web-n440bx-1998",
        "it has 4 systems; write web-n440bx-1998/SYSTEM with one of: 1-cpu-350-mhz,",
    );
    check("web-n440bx-1998/3-cpu", "web-n440bx-1998", "it has no system \"3-cpu\"");
    check("netbench-netfinity-1999", "netbench-nt-1998", "prints ratios and charts only");
    check(
        "nfs-pseries-v2-2002/hp-server-rx4610-udp",
        "nfs-pseries-v3-2002/hp-server-rx4610-udp",
        "follow different methods (nfs-v2 and nfs-v3)",
    );
    check("nothing", "netbench-nt-1998", "no published result is called");
}

#[test]
fn every_suite_with_a_source_has_it_beside_its_runs_oldest_first_and_nothing_is_ranked() {
    let of = |suite: &str| -> Vec<String> {
        pages_for_suite(suite).unwrap().into_iter().map(|p| p.name).collect()
    };
    assert_eq!(of("disk-mix"), ["netbench-nt-1998", "netbench-sun-1998"]);
    assert_eq!(of("nfs-v3"), ["nfs-pseries-v3-2002"]);
    assert_eq!(of("transactions"), ["transactions-netfinity-1999"]);
    assert_eq!(of("web-url"), [""; 0]);
    for page in names().map(|name| published(name).unwrap().extract()) {
        assert!(!page.tables.is_empty() && page.year >= 1995, "{}", page.name);
    }
}
