use plimsoll_model::limit::{Limit, LimitKind};

use super::*;

fn rows() -> Vec<BoardRow> {
    let run = BoardRow {
        source: BoardSource::Bundle("runs/a-1".to_owned()),
        date: Some("2026-11-23T20:41:07.5Z".to_owned()),
        system: "nginx/1.22.1, <Xeon>".to_owned(),
        suite: "web-static".to_owned(),
        profile: Some("quick".to_owned()),
        processors: Some(2),
        peak: Some(30_000.0),
        unit: "ops/s".to_owned(),
        at_least: true,
        response_mean_ns: Some(1_234_000.0),
        response_p99_ns: Some(9_870_000.0),
        limit: Some(Limit {
            kind: LimitKind::Core,
            place: Some("core 1".to_owned()),
            ..Limit::default()
        }),
        price: Some(BoardPrice {
            currency: "EUR".to_owned(),
            per_unit: 0.05,
            unit: "ops/s".to_owned(),
            at_most: true,
        }),
        valid: Some(false),
        signed: Some(true),
        ..BoardRow::default()
    };
    let published = BoardRow {
        source: BoardSource::Published("web-n440bx-1998/2-cpu-400-mhz".to_owned()),
        date: Some("1998".to_owned()),
        system: "web-n440bx-1998, 2 CPU 400 MHz".to_owned(),
        suite: "web-static".to_owned(),
        processors: Some(2),
        peak: Some(1_825.0),
        unit: "ops/s".to_owned(),
        ..BoardRow::default()
    };
    let files = BoardRow {
        date: Some("1999".to_owned()),
        peak: Some(8_398_371.0),
        unit: "bytes/s".to_owned(),
        ..published.clone()
    };
    vec![run, published, files]
}

#[test]
fn a_line_says_what_its_source_says_and_nothing_where_it_is_silent() {
    let text = board_text(&rows()[..2]);
    let lines: Vec<&str> = text.lines().collect();
    let parts = [
        "2026-11-23 20:41",
        "nginx/1.22.1, <Xeon>",
        "web-static, quick",
        "≥\u{a0}30,000 ops/s",
        "≥\u{a0}15,000 ops/s",
        "1.23",
        "9.87",
        "core 1",
        "≤\u{a0}EUR 0.0500 per ops/s",
        "✗ invalid",
        "yes",
    ];
    for part in parts {
        assert!(lines[1].contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("overall"), "a column that nobody has is left out: {text}");
    assert!(lines[2].contains("912 ops/s"), "{text}");
    // Where a line is from; of a long path its end.
    assert!(lines[1].ends_with("runs/a-1") && lines[2].ends_with("1998/2-cpu-400-mhz"), "{text}");
    assert!(lines[2].contains("…") && !lines[2].contains("published:"), "{text}");
    let md = board_markdown(&rows());
    assert!(md.contains("published:web-n440bx-1998/2-cpu-400-mhz") && md.contains("runs/a-1"));
    assert!(md.contains("1 run, 2 published results"), "{md}");
    let csv = board_csv(&rows());
    assert!(
        csv.contains(
            "30000,ops/s,at_least,15000,1234000,9870000,,core 1,0.05,EUR,ops/s,false,true"
        )
    );
}

#[test]
fn the_page_holds_the_place_of_each_cell_in_its_column_and_escapes_names() {
    let page = board_html(&rows()).unwrap();
    assert!(page.contains("&lt;Xeon&gt;") && !page.contains("<Xeon>"));
    assert!(page.contains("<tr class=\"invalid\">") && page.contains("sortableBoard()"));
    // Units are not compared; what is absent has no rank.
    let with_rank = |text: &str| format!("data-rank=\"{text}</td>");
    for cell in ["0\">≥\u{a0}30,000 ops&#x2f;s", "1\">1,825 ops&#x2f;s", "2\">8.01 MiB&#x2f;s"] {
        assert!(page.contains(&with_rank(cell)), "{cell} in {page}");
    }
    assert!(page.contains("<td class=\"n\">–</td>") && !page.contains("https://"));
}
