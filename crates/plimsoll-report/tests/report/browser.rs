//! The page as a browser lays it out: how far it is to the details, and that nothing is cut on a
//! narrow screen.

use std::path::Path;
use std::process::Command;

use plimsoll_model::result::RunResult;
use plimsoll_testkit::clock::thread_cpu_ns;
use plimsoll_testkit::skips::skip;
use serde_json::Value;

use crate::fixture;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Height of a screen, in pixels.
const SCREEN_HEIGHT: f64 = 800.0;
/// Before the details, on a wide page.
const SCREENS_MAX: f64 = 4.0;
/// Size of a report of ten load points.
const SIZE_MAX_BYTES: usize = 1_000_000;
/// CPU time to render a report of a hundred load points; a debug build is slower.
const RENDER_MAX_S: f64 = if cfg!(debug_assertions) { 4.0 } else { 1.0 };

/// What is measured in each frame. `open` opens all that is folded.
const MEASURE: &str = r#"
function measure(frame, open) {
  const page = frame.contentDocument;
  const width = frame.clientWidth;
  const name = (element) => `${element.tagName}.${element.getAttribute("class")} ${element.textContent.trim().slice(0, 40)}`;
  const detail = page.querySelector("details.section");
  const top = detail ? detail.getBoundingClientRect().top : page.documentElement.scrollHeight;
  const scrolls = [...page.querySelectorAll(".scroll")].filter((box) => !box.closest("details") && box.scrollWidth > box.clientWidth + 1);
  if (open) for (const folded of page.querySelectorAll("details")) folded.open = true;
  const shown = (element) => element.getClientRects().length > 0;
  const beyond = [...page.querySelectorAll("body *")].filter((element) =>
    shown(element) && !element.closest(".scroll, pre, svg") && element.getBoundingClientRect().right > width + 1);
  const cut = [...page.querySelectorAll("svg text")].filter((text) => {
    if (!shown(text)) return false;
    const [inner, outer] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
  });
  const box = (element) => element.getBoundingClientRect();
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const met = [...page.querySelectorAll("svg text.panel")].filter((title) => shown(title) &&
    [...title.closest("svg").querySelectorAll("text")].some((text) => text !== title && meet(box(title), box(text))));
  return { top, width, met: met.slice(0, 5).map(name), overflow: page.documentElement.scrollWidth - width, beyond: beyond.slice(0, 5).map(name), scrolls: scrolls.map(name), cut: cut.slice(0, 5).map(name) };
}
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map((frame) => [measure(frame, false), measure(frame, true)]);
  document.body.textContent = `SEEN ${JSON.stringify(seen)} SEEN`;
});
"#;

/// The page in a wide and in a narrow frame, each with its details folded and open.
fn laid_out(html: &str) -> Option<[[Value; 2]; 2]> {
    let browser = BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let Some(browser) = browser else {
        skip("no Chromium is installed (apt: chromium)");
        return None;
    };
    let page = html.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |width: u32| {
        format!(
            "<iframe style=\"width:{width}px;height:800px;border:0\" srcdoc=\"{page}\"></iframe>"
        )
    };
    let (wide, narrow) = (frame(1_280), frame(390));
    let all = format!(
        "<!doctype html><meta charset=\"utf-8\"><body>{wide}{narrow}<script>{MEASURE}</script>"
    );
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("page").replace("::", "-");
    let file = dir.join(format!("{test}.html"));
    std::fs::write(&file, all).unwrap();
    let flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom"];
    let output = Command::new(browser)
        .args(flags)
        .arg(format!("--user-data-dir={}", dir.join(test).display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let measured = text.split("SEEN ").nth(1).and_then(|rest| rest.split(" SEEN").next());
    let measured = measured.unwrap_or_else(|| panic!("the browser measured nothing: {output:?}"));
    let measured = measured.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&measured).unwrap())
}

fn check(run: &RunResult) {
    let html = plimsoll_report::html(run).unwrap();
    let Some([wide, narrow]) = laid_out(&html) else { return };
    for view in wide.iter().chain(&narrow) {
        let width = &view["width"];
        assert_eq!(view["overflow"], 0, "the page scrolls sideways at {width} px: {view}");
        assert_eq!(view["beyond"], Value::Array(Vec::new()), "cut at {width} px");
        assert_eq!(view["met"], Value::Array(Vec::new()), "written over at {width} px");
        assert_eq!(view["scrolls"], Value::Array(Vec::new()), "scrolls at {width} px");
        assert_eq!(view["cut"], Value::Array(Vec::new()), "cut in a chart at {width} px");
    }
    let screens = wide[0]["top"].as_f64().unwrap() / SCREEN_HEIGHT;
    assert!(screens <= SCREENS_MAX, "{screens:.1} screens before the details");
}

#[test]
fn a_web_report_has_room() {
    check(&fixture::valid(30));
}

#[test]
fn an_invalid_report_has_room() {
    check(&fixture::invalid(30));
}

#[test]
fn a_report_of_file_serving_has_room() {
    check(&fixture::nfs(30));
}

#[test]
fn a_report_of_clients_has_room() {
    check(&fixture::smb(30));
    check(&fixture::sweep(30));
}

#[test]
fn a_report_of_a_language_model_has_room() {
    check(&fixture::llm(30));
    check(&fixture::llm_without_usage(30));
}

#[test]
fn a_curve_from_elsewhere_and_a_single_point_have_room() {
    check(&fixture::curve());
    check(&fixture::single());
}

#[test]
fn a_report_of_ten_points_is_small_and_one_of_a_hundred_is_fast() {
    for run in [fixture::valid(30), fixture::valid(600), fixture::nfs(600)] {
        let size = plimsoll_report::html(&run).unwrap().len();
        assert!(size < SIZE_MAX_BYTES, "{size} bytes");
    }
    let mut run = fixture::nfs(30);
    let ten = run.points.clone();
    run.points = (0..100)
        .map(|i| {
            let mut point = ten[i % ten.len()].clone();
            (point.position, point.requested) = (i as u32 + 1, 100.0 * (i as f64 + 1.0));
            point
        })
        .collect();
    let begun_ns = thread_cpu_ns();
    let size = plimsoll_report::html(&run).unwrap().len();
    let seconds = (thread_cpu_ns() - begun_ns) as f64 / 1e9;
    assert!(seconds < RENDER_MAX_S, "{seconds:.2} s, {size} bytes");
}
