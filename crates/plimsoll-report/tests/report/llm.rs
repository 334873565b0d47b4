//! Reports of servers of language models.

use crate::fixture;

fn file(name: &str) -> String {
    let all = plimsoll_report::charts(&fixture::llm(30));
    all.into_iter().find(|(file, _)| file == name).unwrap().1
}

#[test]
fn the_first_screen_says_what_users_get() {
    let text = plimsoll_report::markdown(&fixture::llm(30));
    for expected in [
        "At 64 clients it generated 931 output tokens/s",
        "time to first output was",
        "time per output token was",
        "Goodput: 31\u{a0}% of the requests kept first\\_output &lt; 500ms, tpot &lt; 50ms",
        "time to first output p90: 9.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn answers_have_their_tables_and_mlperf_its_own_with_what_it_is_not() {
    let text = plimsoll_report::markdown(&fixture::llm(30));
    for expected in [
        "## Generation and goodput",
        "per output token (MLPerf) p90",
        "chunk gap p50",
        "### By the rules of MLPerf Endpoints",
        "Regions between 1 and 64 streams: low 2–5, medium 6–17, high 18–64.",
        "a point in the low region; 7 valid points or more (there are 6)",
        "This is no MLPerf result",
        "steady for 30.0 s",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("first visible output p90"), "output is visible from the first on");
}

#[test]
fn without_usage_chunks_take_the_place_of_tokens() {
    let run = fixture::llm_without_usage(30);
    let text = plimsoll_report::markdown(&run);
    assert!(text.contains("chunks/s with output (its answers do not say their tokens)"), "{text}");
    assert!(!text.contains("output tokens/s |"), "{text}");
    let charts = plimsoll_report::charts(&run);
    let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"output-tokens.svg") && names.contains(&"first-output.svg"));
    assert!(!names.contains(&"output-tokens-over-those-of-a-user.svg"), "{names:?}");
}

#[test]
fn the_curve_over_what_a_user_gets_goes_by_steps_and_names_its_loads() {
    let svg = file("output-tokens-over-those-of-a-user.svg");
    assert!(svg.contains(">64</text>") && svg.contains("64: 931 output tokens/s"), "{svg}");
    let path = svg.split("curve s1\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(path.matches(['M', 'L']).count(), 2 * 8 - 1, "{path}");
}

#[test]
fn the_numbers_are_in_the_csv_files() {
    let files = plimsoll_report::csv(&fixture::llm(3));
    let rows: Vec<Vec<&str>> = files[0].1.lines().map(|line| line.split(',').collect()).collect();
    let value = |name: &str| {
        let at = rows[0].iter().position(|header| *header == name);
        rows[1][at.unwrap_or_else(|| panic!("{name}: {:?}", rows[0]))]
    };
    assert_eq!(value("tpot_p50_ns"), "4600000");
    assert_eq!(value("first_output_p90_high_ns"), "110976000");
    assert_eq!((value("cut_short_requests"), value("goodput_ratio")), ("0", "0.991"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
}
