//! Prices beside a run, and published results, with the real program.

use std::path::Path;

use plimsoll_testkit::program::{plimsoll, result, short};

const PRICES: &str = "format = 1\ncurrency = \"EUR\"\n\
    [[systems]]\nname = \"small\"\ntotal = 1000\n\
    [[systems.items]]\nname = \"server\"\nsource = \"list\"\ndate = 2026-11-01\nunit_price = 1000\n\
    [[systems]]\nname = \"large\"\n\
    [[systems.items]]\nname = \"server\"\nsource = \"list\"\ndate = 2026-11-01\nunit_price = 1500\n\
    [[systems.items]]\nname = \"rent\"\nsource = \"list\"\ndate = 2026-11-01\nprice_per_hour = 0.01\n";

fn write(file: &Path, text: &str) -> String {
    std::fs::write(file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_run_is_priced_in_its_report_and_against_another() {
    let temp_dir = tempfile::tempdir().unwrap();
    let [small, large] = ["small", "large"].map(|name| temp_dir.path().join(name));
    for bundle in [&small, &large] {
        let ended = plimsoll(&short("web-static", "builtin:", bundle, &["--points", "200"]));
        assert!(bundle.join("result.json").exists(), "{ended:?}");
    }
    let bytes = std::fs::read(small.join("result.json")).unwrap();
    let file = write(&temp_dir.path().join("prices.toml"), PRICES);
    let [small_text, large_text] = [&small, &large].map(|bundle| bundle.to_str().unwrap());
    let md = temp_dir.path().join("report.md");
    let more = ["report", small_text, "--prices", &file, "--md", md.to_str().unwrap()];
    plimsoll(&more).check(0, &["report.md"]);
    let text = std::fs::read_to_string(&md).unwrap();
    for part in ["## Price/performance", "EUR 1,000.00", "1998: Static web serving", "1,661"] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    plimsoll(&["report", small_text, "--prices", &file]).check(2, &["--html FILE or --md FILE"]);
    let page = temp_dir.path().join("priced.html");
    let more = ["report", small_text, "--prices", &file, "--html", page.to_str().unwrap()];
    plimsoll(&more).check(0, &["priced.html"]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(
        html.contains("The system costs EUR 1,000.00")
            && html.contains("Published results of this")
    );
    assert_eq!(std::fs::read(small.join("result.json")).unwrap(), bytes, "prices are not of it");

    let both = ["compare", small_text, large_text, "--prices", &file];
    let compared = plimsoll(&both);
    compared.check(0, &["Price/performance", "EUR 1,000.00", "EUR 1,762.80"]);
    // A busy host sustains no load: then there is no peak to divide by, which is reported.
    let peaks = [&small, &large].map(|bundle| !result(bundle)["summary"]["value"].is_null());
    match peaks {
        [true, true] => compared.check(0, &["peak", "× 1.76"]),
        _ => compared.check(0, &["the run has no peak that counts"]),
    }

    check_against_published(temp_dir.path(), [small_text, large_text], &file);

    write(Path::new(&file), &PRICES.replace("total = 1000", "total = 999"));
    plimsoll(&both).check(2, &["prices.toml", "^^^", "EUR 999.00", "EUR 1,000.00"]);
    write(Path::new(&file), &PRICES.replace("\"large\"", "\"larger\""));
    plimsoll(&both).check(2, &["no system of the price file is called \"large\"", "\"larger\""]);
    std::fs::remove_file(&file).unwrap();
    plimsoll(&both).check(2, &["cannot read the price file"]);
}

/// Bundles with published results: as lines of a table, and as curves.
fn check_against_published(temp_dir: &Path, [small, large]: [&str; 2], prices: &str) {
    let dir = temp_dir.to_str().unwrap();
    let files = ["board.html", "board.md", "board.csv"].map(|name| temp_dir.join(name));
    let [html, md, csv] = files.each_ref().map(|file| file.to_str().unwrap());
    let web = "published:web-n440bx-1998/2-cpu-350-mhz";
    let written = ["--prices", prices, "--html", html, "--md", md, "--csv", csv];
    let board = plimsoll(&[&["board", dir, web][..], &written].concat());
    board.check(0, &["web-static, quick", "1,661 ops/s", "830 ops/s", "✗ invalid", "no"]);
    assert_eq!(board.out.lines().count(), 4, "{board:?}");
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("published:web-n440bx-1998") && text.contains("small"), "{text}");
    }
    plimsoll(&["board", dir, "published:all", "--sort", "peak"]).check(0, &["111,687 ops/s"]);
    let empty = temp_dir.join("empty");
    std::fs::create_dir(&empty).unwrap();
    plimsoll(&["board", empty.to_str().unwrap()]).check(2, &["no bundle of a run lies there"]);
    plimsoll(&["board", "published:nothing"]).check(2, &["no published result is called"]);

    let html = temp_dir.join("curves.html");
    let arguments = ["compare", small, large, web, "published:netbench-nt-1998", "--force"];
    let compared = plimsoll(&[&arguments[..], &["--html", html.to_str().unwrap()]].concat());
    let expected =
        ["2 CPU 350 MHz (published, 1998), 10 load points", "no ratio to them is claimed"];
    compared.check(0, &expected);
    compared.check(0, &["is not drawn: it follows the method of disk-mix"]);
    assert!(std::fs::read_to_string(html).unwrap().contains("course c3 dashed"));
    plimsoll(&["compare", small, web]).check(0, &["beside published results"]);
    plimsoll(&["compare", small, web, "--fail-if", "peak < 9x"]).check(2, &["here is one group"]);
}

#[test]
fn published_results_are_shown_as_text_json_and_a_page() {
    let name = "netbench-nt-1998";
    plimsoll(&["published", "show", name])
        .check(0, &["1998: ", "8,398,371", "table 2", "11.22 times", "Slip of the source"]);
    let ended = plimsoll(&["published", "show", name, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["transcribed"]["byte_curves"][0]["bytes_per_s"][7], 8_398_371.0);
    assert_eq!(json["shown"]["year"], 1998);
    let temp_dir = tempfile::tempdir().unwrap();
    let page = temp_dir.path().join("page.html");
    plimsoll(&["published", "show", name, "--html", page.to_str().unwrap()]).check(0, &[]);
    assert!(std::fs::read_to_string(page).unwrap().contains("Overall NetBench Results"));
}

#[test]
fn published_results_are_compared_with_what_their_sources_say() {
    let compare = |one: &str, two: &str| {
        plimsoll(&["compare", &format!("published:{one}"), &format!("published:{two}")])
    };
    compare("netbench-sun-1998", "netbench-nt-1998")
        .check(0, &["× 4.21", "× 4.30", "over 4.2 times", "÷ 11.2", "÷ 11.5", "24 and 28"]);
    compare("web-n440bx-1998/1-cpu-350-mhz", "web-n440bx-1998/2-cpu-350-mhz")
        .check(0, &["× 1.66 (+66.1 %)", "1.6x, 60 %", "pages 7 and 8"]);
    compare("web-n440bx-1998/1-cpu-350-mhz", "web-n440bx-1998/1-cpu-400-mhz")
        .check(0, &["+15.0 %", "13 %"]);
    compare("web-n440bx-1998/2-cpu-350-mhz", "web-n440bx-1998/2-cpu-400-mhz")
        .check(0, &["+9.9 %", "9 %"]);
    compare("web-n440bx-1998", "netbench-nt-1998").check(2, &["web-n440bx-1998/SYSTEM"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let [html, md] = ["c.html", "c.md"].map(|name| temp_dir.path().join(name));
    let [html_text, md_text] = [&html, &md].map(|file| file.to_str().unwrap());
    let pair = ["published:netbench-sun-1998", "published:netbench-nt-1998"];
    let ended =
        plimsoll(&["compare", pair[0], pair[1], "--json", "--html", html_text, "--md", md_text]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["figures"][1]["printed_ratio"], 4.2);
    for file in [html, md] {
        assert!(std::fs::read_to_string(&file).unwrap().contains("over 4.2 times"), "{file:?}");
    }
    plimsoll(&["compare", "published:netbench-nt-1998", "somewhere"])
        .check(2, &["neither the bundle of a run"]);
    plimsoll(&["compare", pair[0], pair[1], pair[0]]).check(2, &["two at a time"]);
    plimsoll(&["compare", pair[0], pair[1], "--fail-if", "peak < 9x"])
        .check(2, &["--fail-if is for runs"]);
}
