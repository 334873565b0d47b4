//! Supplements to a run: prices and published results, on the page and in Markdown.

use plimsoll_model::prices::{Currency, Money, PriceFigure, PricedLine, PricedSystem, Sensitivity};
use plimsoll_model::published::{CitedFact, CitedText, PublishedPage, PublishedTable};
use plimsoll_report::Supplements;

use crate::fixture;

fn priced(name: &str) -> PricedSystem {
    let money = |units| Money::new(units, Currency::of_code("EUR").unwrap()).unwrap();
    PricedSystem {
        name: name.to_owned(),
        currency: "EUR".to_owned(),
        period_years: 3,
        lines: vec![PricedLine {
            name: name.to_owned(),
            part_number: None,
            source: "quote".to_owned(),
            date: "2026-11-02".to_owned(),
            quantity: 2,
            unit_price: 6_000.0,
            hourly: false,
            discount_percent: 7.5,
            price: money(11_100.0),
            maintenance_years: Some(3),
            maintenance_price: Some(money(1_800.0)),
            share_ratio: 1.0,
        }],
        total: money(12_900.0),
        dates: ["2026-11-01", "2026-11-02"].map(str::to_owned),
        available: None,
        figures: vec![PriceFigure {
            of: "peak".to_owned(),
            value: 25_977.0,
            interval: Some([25_800.0, 26_100.0]),
            unit: "ops/s".to_owned(),
            at_least: true,
            money_per_unit: 0.4966,
            money_per_unit_interval: Some([0.4943, 0.5]),
            units_per_money: 2.0137,
            units_per_money_interval: Some([2.0, 2.0233]),
        }],
        sensitivity: vec![Sensitivity {
            item: name.to_owned(),
            share_ratio: 1.0,
            totals: [11_610.0, 14_190.0, 0.0],
            money_per_unit: Some([0.4469, 0.5463, 0.0]),
        }],
        remarks: vec![format!("a remark on {name}")],
    }
}

fn published(text: &str) -> PublishedPage {
    let location = || "page 7".to_owned();
    PublishedPage {
        name: "web-1998".to_owned(),
        year: 1998,
        title: text.to_owned(),
        suites: vec!["web-static".to_owned()],
        source: text.to_owned(),
        places: "Pages of the source.".to_owned(),
        method: CitedText { text: text.to_owned(), place: location() },
        tables: vec![PublishedTable {
            name: "throughput".to_owned(),
            place: location(),
            columns: vec!["point".to_owned(), text.to_owned()],
            rows: vec![vec!["peak".to_owned(), "1,661".to_owned()]],
        }],
        disclosure: vec![CitedFact {
            name: "server".to_owned(),
            value: text.to_owned(),
            place: location(),
        }],
        notes: vec![CitedText { text: text.to_owned(), place: location() }],
        slips: vec![CitedText { text: "the sum is wrong".to_owned(), place: location() }],
    }
}

fn supplements(text: &str) -> Supplements {
    Supplements { price: Some(priced(text)), published: vec![published(text)] }
}

#[test]
fn a_run_shows_its_price_and_folds_what_others_published() {
    let html =
        plimsoll_report::html_with_supplements(&fixture::valid(10), &supplements("a server"))
            .unwrap();
    for text in [
        "The system costs EUR 12,900.00: at most EUR 0.497 per ops",
        "0.497 (0.494–0.500)",
        "2.01 (2.00–2.02)",
        "1,800.00 (3 years)",
        "a remark on a server",
        "<summary>1998: a server</summary>",
        "throughput (page 7)",
        "nothing here is ranked",
        "plimsoll published show web-1998",
    ] {
        assert!(html.contains(text), "{text:?} on the page");
    }
    assert!(!html.contains("the sum is wrong"), "mistakes are shown with the whole report only");
    let without = plimsoll_report::html(&fixture::valid(10)).unwrap();
    assert!(!without.contains("Price/performance") && !without.contains("Published results"));
}

#[test]
fn the_same_stands_in_markdown() {
    let md =
        plimsoll_report::markdown_with_supplements(&fixture::valid(3), &supplements("a server"));
    for text in [
        "## Price/performance",
        "| a server | quote | 2026-11-02 | 2 | 6,000 | 7.5 | 11,100.00 | 1,800.00 (3 years) | 100.0 |",
        "## Published results of this method",
        "<details><summary>1998: a server</summary>",
        "| peak | 1,661 |",
    ] {
        assert!(md.contains(text), "{text:?} in:\n{md}");
    }
}

#[test]
fn a_published_result_has_a_page_of_its_own_with_every_place() {
    let html = plimsoll_report::published_html(&published("a server")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("Mistakes in the source"));
    assert_eq!(html.matches("(page 7)").count(), 6, "method, fact, note, mistake, and table twice");
}

#[test]
fn markup_in_prices_and_reports_stays_text() {
    let evil = "<img src=x>|*a*";
    let html =
        plimsoll_report::html_with_supplements(&fixture::valid(3), &supplements(evil)).unwrap();
    let page = plimsoll_report::published_html(&published(evil)).unwrap();
    let md = plimsoll_report::markdown_with_supplements(&fixture::valid(3), &supplements(evil));
    for text in [html, page, md] {
        assert!(!text.contains("<img"), "{text}");
    }
}
