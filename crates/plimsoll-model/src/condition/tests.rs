use proptest::prelude::*;

use super::*;
use crate::capacity::{Figure, LoadFigure, Within};
use crate::comparison::{RatioFigure, RatioGate};
use crate::figure::StreamFigure;
use crate::gate::{Gate, GateFigure};

#[track_caller]
fn read<F: ConditionFigure>(text: &str) -> (F, Option<f64>, Side, f64) {
    let condition: Condition<F> = text.parse().unwrap();
    let kept = serde_json::to_string(&condition).unwrap();
    assert_eq!(serde_json::from_str::<Condition<F>>(&kept).unwrap(), condition);
    (condition.figure, condition.at, condition.side, condition.limit)
}

/// The message for a text that is no `T`.
#[track_caller]
fn wrong<T: FromStr<Err = ConditionError> + fmt::Debug>(text: &str, parts: &[&str]) {
    let message = text.parse::<T>().unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

#[test]
fn conditions_read_as_people_write_them() {
    let p99 = GateFigure::Response(Figure::P99);
    assert_eq!(read("p99>50ms"), (p99, None, Side::Above, 50e6));
    let p999 = GateFigure::Service(Figure::P999);
    assert_eq!(read("service_p99.9@4000 >= 20ms"), (p999, Some(4_000.0), Side::Above, 20e6));
    assert_eq!(read("peak_ops_per_s < 20_000"), (GateFigure::PeakOps, None, Side::Below, 20_000.0));
    assert_eq!(read("errors > 0.1%"), (GateFigure::Errors, None, Side::Above, 0.1));
    let origin = GateFigure::OverallOrigin;
    assert_eq!(read("overall_response_ms.origin > 2 ms"), (origin, None, Side::Above, 2e6));
    assert_eq!(read("p99@4000>1.05x"), (RatioFigure::P99, Some(4_000.0), Side::Above, 1.05));
    assert_eq!(read("peak <= 0.97 ×"), (RatioFigure::Peak, None, Side::Below, 0.97));
    let chunk_p99 = GateFigure::Stream(StreamFigure::ChunkGap, Figure::P99);
    assert_eq!(read("chunk_gap.p99@8 > 200ms"), (chunk_p99, Some(8.0), Side::Above, 200e6));
    assert_eq!(read("goodput < 95%"), (GateFigure::Goodput, None, Side::Below, 0.95));
    assert_eq!(read("tokens_per_s<1000"), (GateFigure::TokensPerS, None, Side::Below, 1_000.0));
    let tpot = (RatioFigure::TpotP90, Some(64.0), Side::Above, 1.05);
    assert_eq!(read("tpot.p90@64 > 1.05x"), tpot);
    let errors = LoadFigure::Errors;
    assert_eq!(read(" errors<0.1 %"), (errors, None, Side::Below, 0.1));
}

#[test]
fn a_condition_is_kept_as_written_and_limits_in_their_shortest_form() {
    let text = |text: &str| text.parse::<Gate>().unwrap().to_string();
    assert_eq!(text("p99.9@4000>=0.05s"), "p99.9@4000 > 0.05s");
    let within: Within = " p99 < 50 ms, errors<0.1 %,mean<1.5ms,p99.9<2s".parse().unwrap();
    assert_eq!(within.to_string(), "p99<50ms,errors<0.1%,mean<1500us,p999<2s");
    assert!(within.limits_errors());
    let streams: Within = "first_output.p90<500ms, tpot.p90<50ms, goodput>95%".parse().unwrap();
    assert_eq!(streams.to_string(), "first_output.p90<500ms,tpot.p90<50ms,goodput>0.95");
}

#[test]
fn what_is_no_condition_of_a_run_says_what_to_write() {
    wrong::<Gate>("p99", &["no < or > in \"p99\"", "p99 > 50ms"]);
    wrong::<Gate>("p98 > 5ms", &["did you mean p9", "service_p99"]);
    wrong::<Gate>("ttft.p90 > 5ms", &["\"ttft.p90\" is no figure", "mean first_output.p90"]);
    wrong::<Gate>("p99 > 50", &["\"50\" is no span", "with its unit"]);
    wrong::<Gate>("p99 > 0ms", &["above zero"]);
    wrong::<Gate>("errors > 0.1", &["in percent"]);
    wrong::<Gate>("peak_ops_per_s@5 < 1", &["peak_ops_per_s is no figure of a load point", "@5"]);
    wrong::<Gate>("p99@x > 5ms", &["\"x\" after @ is no load"]);
    wrong::<Gate>("value < fast", &["\"fast\" is no number"]);
}

#[test]
fn what_is_no_condition_on_ratios_says_what_to_write() {
    wrong::<RatioGate>("p99", &["p99 > 1.05x"]);
    wrong::<RatioGate>("p98 > 1.1x", &["did you mean p9"]);
    wrong::<RatioGate>("p99 > 50ms", &["no ratio"]);
    wrong::<RatioGate>("p99 > 0x", &["no ratio"]);
    wrong::<RatioGate>("peak@5 < 1x", &["no figure of a load point"]);
}

#[test]
fn what_is_no_limit_of_a_load_says_which_and_what_to_write() {
    wrong::<Within>("", &["\"\"", "for example p99<50ms"]);
    wrong::<Within>("p99<50", &["\"p99<50\"", "\"50\" is no span of time", "50ms"]);
    let names = "p50, p90, p95, p99, p999, max, errors";
    wrong::<Within>("p99<50ms,p98<1s", &["\"p98<1s\"", names]);
    wrong::<Within>("errors<0.001", &["in percent", "0.1%"]);
    wrong::<Within>("errors<0%", &["above 0 %", "errors<0.1%"]);
    wrong::<Within>("p99<0ms", &["above zero"]);
    wrong::<Within>("p99<1s,p99<2s", &["p99 has a limit already"]);
    wrong::<Within>("p99>50ms", &["for example p99<50ms"]);
    wrong::<Within>("p99@40<50ms", &["leave out @40"]);
    wrong::<Within>("first_output.p98<1s", &["did you mean first_output.p9", "NAME.p90"]);
    wrong::<Within>("goodput<0.9", &["of goodput a lower one"]);
    wrong::<Within>("goodput>1.5", &["\"1.5\" is no part of 1", "0.95 or 95%"]);
}

#[test]
fn an_interval_is_on_a_side_or_the_limit_is_in_it() {
    assert_eq!(Side::Above.holds(5.0, [6.0, 7.0]), Some(true));
    assert_eq!(Side::Above.holds(5.0, [4.0, 5.0]), Some(false));
    assert_eq!(Side::Below.holds(5.0, [4.0, 4.5]), Some(true));
    assert_eq!(Side::Below.holds(5.0, [5.0, 6.0]), Some(false));
    assert_eq!(Side::Below.holds(5.0, [4.0, 6.0]), None);
}

/// Any figure of a flag, with and without a load, and any limit in its unit.
fn any<F: ConditionFigure>() -> impl Strategy<Value = String> {
    let figure = prop::sample::select(F::all_named());
    (figure, any_load(), prop::sample::select(vec!["<", ">"]), 1u64..1 << 50).prop_map(
        |((name, figure), load, sign, n)| {
            let at = load.filter(|_| figure.is_of_point()).map(|load| format!("@{load}"));
            let limit = match figure.unit() {
                LimitUnit::Time => format!("{n}ns"),
                LimitUnit::Share => format!("{}%", 100.0 / n as f64),
                LimitUnit::Part => format!("{}", 1.0 / n as f64),
                LimitUnit::Ratio => format!("{}x", n as f64 / 1e6),
                LimitUnit::Number => n.to_string(),
            };
            format!("{name}{} {sign} {limit}", at.unwrap_or_default())
        },
    )
}

fn any_load() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(0.1f64..1e6)
}

fn check<F: ConditionFigure>(text: &str) {
    let condition: Condition<F> = text.parse().unwrap();
    assert_eq!(condition.to_string(), text);
    let tight = text.replace(' ', "");
    assert_eq!(tight.parse::<Condition<F>>().unwrap(), condition);
}

proptest! {
    #[test]
    fn conditions_read_back_as_they_are_written(
        of_run in any::<GateFigure>(), of_ratio in any::<RatioFigure>(), of_load in any::<LoadFigure>(),
    ) {
        check::<GateFigure>(&of_run);
        check::<RatioFigure>(&of_ratio);
        check::<LoadFigure>(&of_load);
    }

    #[test]
    fn limits_read_back_as_they_are_written(
        spans in prop::collection::vec(1u64..1 << 50, 1..7), percent in 1e-9f64..100.0,
    ) {
        let times = Figure::ALL.iter().zip(spans).map(|(it, ns)| format!("{}<{ns}ns", it.as_str()));
        let text: Vec<String> = times.chain([format!("errors<{percent}%")]).collect();
        let within: Within = text.join(",").parse().unwrap();
        prop_assert_eq!(within.limits().len(), text.len());
        prop_assert_eq!(within.to_string().parse::<Within>().unwrap(), within);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_.@<>=0-9% x]{0,24}") {
        let _ = (text.parse::<Gate>(), text.parse::<RatioGate>(), text.parse::<Within>());
    }
}

#[test]
fn limits_of_a_good_op_read_as_people_write_them() {
    let limits: GoodLimits = "first_output < 500ms, tpot<50ms ,response<10s".parse().unwrap();
    assert_eq!(limits.text(), "first_output<500ms,tpot<50ms,response<10s");
    assert_eq!("response<2s".parse::<GoodLimits>().unwrap().response, Some(Nanos::from_secs(2)));
}

#[test]
fn what_is_no_limit_of_an_op_says_what_to_write() {
    let message = |text: &str| text.parse::<GoodLimits>().unwrap_err().to_string();
    assert!(message("first_output.p90<500ms").contains("no figure of a single op"));
    assert!(message("ttft<500ms").contains("known are first_output, tpot, response"));
    assert!(message("tpot>50ms").contains("upper bound"));
    assert!(message("tpot<50ms,tpot<60ms").contains("already"));
    assert!(message("tpot<50").contains("with its unit"));
}
