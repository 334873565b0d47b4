use plimsoll_report::sentences::finding;

use super::*;

const CURVE: &str = "\
# from a published table
load,throughput,response_ms,note
25000,25025,0.9,a
50000,49940,1.2,b
75000,74807,1.3,c
100000,99889,1.5,d
125000,128059,1.4,e
150000,154587,1.6,f
175000,178734,1.8,g
200000,202428,2.2,h
225000,225822,2.5,i
250000,250573,3.0,j
";

#[test]
fn a_published_curve_gives_its_published_overall_response_time() {
    let result = analyse_curve(CURVE).unwrap();
    assert_eq!(format!("{:.2}", result.summary.overall_response_ms.origin.unwrap()), "1.58");
    assert_eq!(result.summary.peak_ops_per_s, Some(250_573.0));
    assert_eq!(result.points.len(), 10);
    let last = &result.points[9];
    assert_eq!((last.position, last.requested), (10, 250_000.0));
    assert_eq!(last.achieved_ops_per_s, Some(250_573.0));
    assert_eq!(last.service_ns.unwrap().mean, Some(3_000_000.0));
    assert_eq!((last.response_ns, last.bytes_read), (None, None));
}

#[test]
fn a_sound_file_is_valid_and_says_that_only_the_file_was_judged() {
    let result = analyse_curve(CURVE).unwrap();
    assert!(result.verdict.valid && result.points.iter().all(|p| p.valid));
    assert_eq!(result.verdict.reasons, []);
    assert_eq!(result.verdict.warnings[0].rule.name(), "foreign_curve");
}

#[test]
fn a_point_at_which_nothing_was_measured_makes_the_curve_invalid() {
    for (line, what) in [("2,0,3", "throughput"), ("2,3,0", "response_ms")] {
        let text = format!("load,throughput,response_ms\n1,2,3\n{line}\n");
        let verdict = analyse_curve(&text).unwrap().verdict;
        assert!(!verdict.valid);
        let reason = &verdict.reasons[0];
        assert_eq!((reason.rule.name(), reason.point), ("curve_point", Some(2)));
        assert!(finding::text(&reason.rule).starts_with(what), "{:?}", reason.rule);
    }
}

#[test]
fn columns_may_stand_in_any_order_quoted_and_with_line_ends_of_dos() {
    let text = "\u{feff}\"response_ms\", load ,throughput\r\n\"2\",10,9.5\r\n\r\n";
    let result = analyse_curve(text).unwrap();
    assert_eq!(result.points[0].requested, 10.0);
    assert_eq!(result.points[0].achieved_ops_per_s, Some(9.5));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let check = |text: &str, message: &str| {
        let error = analyse_curve(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check("", "the curve is empty");
    check("\n# only a comment\n", "the curve is empty");
    check("\nload,throughput\n1,2\n", "line 2: the header has no column \"response_ms\"");
    check("load,throughput,response_ms\n", "no point");
    check("load,throughput,response_ms\n\n1,2\n", "line 3: 2 fields where the header has 3");
    for bad in ["x", "-1", "NaN", "inf", "1e999", ""] {
        let text = format!("load,throughput,response_ms\n1,{bad},3\n");
        check(&text, &format!("line 2: throughput is {bad:?}"));
    }
    check(&"\n".repeat(CURVE_LINES_MAX + 1), "more than 100000 lines");
}

fn curve(points: &[(f64, f64)]) -> Vec<CurvePoint> {
    points
        .iter()
        .map(|&(achieved_ops_per_s, response_ms)| CurvePoint { achieved_ops_per_s, response_ms })
        .collect()
}

fn origin_to_the_published_digit(points: &[(f64, f64)]) -> String {
    format!("{:.2}", overall_response(&curve(points)).origin.unwrap())
}

#[test]
fn curves_with_a_known_origin_figure_give_it() {
    // Test data: where these two curves were published is not recorded.
    let first = [
        (25_025.0, 0.9),
        (49_940.0, 1.2),
        (74_807.0, 1.3),
        (99_889.0, 1.5),
        (128_059.0, 1.4),
        (154_587.0, 1.6),
        (178_734.0, 1.8),
        (202_428.0, 2.2),
        (225_822.0, 2.5),
        (250_573.0, 3.0),
    ];
    let second = [
        (29_435.0, 0.6),
        (58_907.0, 0.7),
        (88_372.0, 0.8),
        (117_878.0, 1.0),
        (147_284.0, 1.2),
        (177_021.0, 1.6),
        (206_422.0, 1.9),
        (236_207.0, 2.5),
        (265_729.0, 3.4),
        (293_128.0, 6.4),
    ];
    assert_eq!(origin_to_the_published_digit(&first), "1.58");
    assert_eq!(origin_to_the_published_digit(&second), "1.67");
}

#[test]
fn span_ignores_what_lies_below_the_first_point() {
    let overall = overall_response(&curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]));
    assert_eq!(overall.span, Some(2.0));
    assert_eq!(overall.origin, Some((50.0 + 200.0) / 200.0));
}

#[test]
fn points_past_the_peak_do_not_count() {
    let up_to_peak = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]);
    let beyond = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0), (150.0, 9.0)]);
    assert_eq!(overall_response(&up_to_peak), overall_response(&beyond));
}

#[test]
fn of_two_points_at_the_peak_the_first_ends_the_area() {
    let once = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0)]);
    let twice = curve(&[(100.0, 1.0), (150.0, 2.0), (200.0, 3.0), (150.0, 9.0), (200.0, 9.0)]);
    assert_eq!(overall_response(&once), overall_response(&twice));
}

#[test]
fn fewer_than_three_points_have_no_overall_response() {
    let points = [(100.0, 1.0), (200.0, 3.0), (300.0, 4.0)];
    for few in 0..3 {
        assert_eq!(overall_response(&curve(&points[..few])), OverallResponse::default());
    }
    assert!(overall_response(&curve(&points)).origin.is_some());
    let idle = overall_response(&curve(&[(0.0, 1.0); 3]));
    assert_eq!(idle, OverallResponse::default());
}
