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
    let place = tempfile::tempdir().unwrap();
    let [small, large] = ["small", "large"].map(|name| place.path().join(name));
    for bundle in [&small, &large] {
        let ended = plimsoll(&short("web-static", "builtin:", bundle, &["--points", "200"]));
        assert!(bundle.join("result.json").exists(), "{ended:?}");
    }
    let bytes = std::fs::read(small.join("result.json")).unwrap();
    let file = write(&place.path().join("prices.toml"), PRICES);
    let [small_text, large_text] = [&small, &large].map(|bundle| bundle.to_str().unwrap());
    let md = place.path().join("report.md");
    let more = ["report", small_text, "--prices", &file, "--md", md.to_str().unwrap()];
    plimsoll(&more).check(0, &["report.md"]);
    let text = std::fs::read_to_string(&md).unwrap();
    for part in ["## Price/performance", "EUR 1,000.00", "1998: Static web serving", "1,661"] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    plimsoll(&["report", small_text, "--prices", &file]).check(2, &["--html FILE or --md FILE"]);
    let page = place.path().join("priced.html");
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
    // A busy host holds no load: then there is no peak to divide by, which is said.
    let peaks = [&small, &large].map(|bundle| !result(bundle)["summary"]["value"].is_null());
    match peaks {
        [true, true] => compared.check(0, &["peak", "× 1.76"]),
        _ => compared.check(0, &["the run has no peak that counts"]),
    }

    write(Path::new(&file), &PRICES.replace("total = 1000", "total = 999"));
    plimsoll(&both).check(2, &["prices.toml", "^^^", "EUR 999.00", "EUR 1,000.00"]);
    write(Path::new(&file), &PRICES.replace("\"large\"", "\"larger\""));
    plimsoll(&both).check(2, &["no system of the price file is called \"large\"", "\"larger\""]);
    std::fs::remove_file(&file).unwrap();
    plimsoll(&both).check(2, &["cannot read the price file"]);
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
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("page.html");
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
    let place = tempfile::tempdir().unwrap();
    let [html, md] = ["c.html", "c.md"].map(|name| place.path().join(name));
    let [html_text, md_text] = [&html, &md].map(|file| file.to_str().unwrap());
    let pair = ["published:netbench-sun-1998", "published:netbench-nt-1998"];
    let ended =
        plimsoll(&["compare", pair[0], pair[1], "--json", "--html", html_text, "--md", md_text]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(json["figures"][1]["printed_ratio"], 4.2);
    for file in [html, md] {
        assert!(std::fs::read_to_string(&file).unwrap().contains("over 4.2 times"), "{file:?}");
    }
    plimsoll(&["compare", "published:netbench-nt-1998", "somewhere"]).check(2, &["two at a time"]);
    plimsoll(&["compare", pair[0], pair[1], "--fail-if", "peak < 9x"])
        .check(2, &["--fail-if is for runs"]);
}
