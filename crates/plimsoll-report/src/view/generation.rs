//! What servers of language models are measured by: times within answers, output, goodput, and the
//! ladder by the rules of MLPerf Endpoints.

use plimsoll_model::capacity::Figure;
use plimsoll_model::figure::StreamFigure;
use plimsoll_model::goodput::Goodput;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{
    CountSummary, Endpoints, EndpointsPoint, Generation, PointResult, RegionName, RunResult,
    SteadyVerdict, Wanting,
};
use plimsoll_model::units::{Nanos, grouped};
use serde::Serialize;

use crate::table::{Rows, Table};
use crate::text::{ABSENT, TimeUnit, count, load, number, percent, three_digits, time};

/// How the two definitions of a time per output token differ, and who counts tokens.
const NOTE: &str = "Times run from the instant at which a request was due. Time to first output ends \
    with the first chunk that holds output of any kind, reasoning and calls of tools too. Time per \
    output token is vLLM's: (last chunk − first chunk) / (tokens − 1); MLPerf's divides by the tokens \
    after the first chunk. Tokens are counted by the server (usage).";
/// Where no answer reported its tokens.
const UNCOUNTED_NOTE: &str = "The server did not say how many tokens its answers have, so there are \
    chunks and characters a second, and no tokens.";
/// What the rules of MLPerf Endpoints are here.
const ENDPOINTS_NOTE: &str = "This is no MLPerf result: MLCommons' own client, data sets, tokenizer \
    and checker make one. Regions, points and status words follow draft v1.0 of the rules of MLPerf \
    Endpoints; equal parts of the window take the place of passes over a data set, and tokens are \
    those that the server counts.";

/// All that a report shows of the answers of a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct GenerationView {
    /// Times within answers, by load point.
    pub(crate) times: Table,
    /// Output and its lengths.
    pub(crate) output: Table,
    /// Ops that were good ones, of suites without streams too.
    pub(crate) goodput: Table,
    pub(crate) note: String,
    pub(crate) endpoints: Option<EndpointsView>,
}

/// The ladder by the rules of MLPerf Endpoints.
#[derive(Debug, Serialize)]
pub(crate) struct EndpointsView {
    pub(crate) lead: String,
    pub(crate) points: Table,
    pub(crate) note: &'static str,
}

pub(super) fn view(run: &RunResult) -> GenerationView {
    let generations = || run.points.iter().filter_map(|point| point.generation.as_ref());
    let note = match generations().any(|it| it.output_tokens_per_s.is_some()) {
        true => NOTE,
        false => UNCOUNTED_NOTE,
    };
    GenerationView {
        times: times_table(run),
        output: output_table(run),
        goodput: goodput_table(run),
        note: generations().next().map(|_| note.to_owned()).unwrap_or_default(),
        endpoints: run.summary.endpoints.as_ref().map(endpoints),
    }
}

/// Position and load of each point that has what the table shows.
fn rows<'r>(
    run: &'r RunResult,
    caption: &str,
    has: fn(&PointResult) -> bool,
) -> Rows<&'r PointResult> {
    let unit = if run.axis.unit == run.axis.name { "" } else { &run.axis.unit };
    Rows::of_points(caption, run.points.iter().filter(|point| has(point)))
        .figures("point", "", |p| p.position)
        .figures(&run.axis.name, unit, |p| number(Some(p.requested)))
}

fn has_generation(point: &PointResult) -> bool {
    point.generation.is_some()
}

/// Figure of each time, and the name of its column.
const TIMES: [(StreamFigure, Figure, &str); 13] = [
    (StreamFigure::FirstByte, Figure::P90, "first byte p90"),
    (StreamFigure::FirstOutput, Figure::P50, "first output p50"),
    (StreamFigure::FirstOutput, Figure::P90, "p90"),
    (StreamFigure::FirstOutput, Figure::P99, "p99"),
    (StreamFigure::FirstVisible, Figure::P90, "first visible output p90"),
    (StreamFigure::Tpot, Figure::P50, "per output token p50"),
    (StreamFigure::Tpot, Figure::P90, "p90"),
    (StreamFigure::Tpot, Figure::P99, "p99"),
    (StreamFigure::LaterTpot, Figure::P90, "per output token (MLPerf) p90"),
    (StreamFigure::ChunkGap, Figure::P50, "chunk gap p50"),
    (StreamFigure::ChunkGap, Figure::P99, "p99"),
    (StreamFigure::ChunkGap, Figure::P999, "p99.9"),
    (StreamFigure::ChunkGap, Figure::Max, "max"),
];

fn times_table(run: &RunResult) -> Table {
    let largest = |of: StreamFigure| {
        let p50 = |p: &PointResult| ReportedFigure::stream(p, of, Figure::P50).map(|it| it.value);
        run.points.iter().filter_map(p50).fold(1e6, f64::max)
    };
    let visible = run.points.iter().any(|point| {
        let at = |of| ReportedFigure::stream(point, of, Figure::P90).map(|it| it.value);
        at(StreamFigure::FirstVisible) != at(StreamFigure::FirstOutput)
    });
    let shown = |of: StreamFigure| of != StreamFigure::FirstVisible || visible;
    let caption = "Times within answers, with their uncertainty intervals";
    let times = TIMES.into_iter().filter(|(of, ..)| shown(*of));
    let all = times.fold(rows(run, caption, has_generation), |rows, (of, figure, name)| {
        let unit = TimeUnit::for_largest(largest(of));
        rows.figures(name, unit.name(), |p| unit.figure_text(ReportedFigure::stream(p, of, figure)))
    });
    all.table().without_empty_columns()
}

type CountOf = fn(&Generation) -> u64;

/// What is wrong with the tokens of answers; shown where any has it.
const COUNTS: [(&str, CountOf); 6] = [
    ("without usage", |it| it.uncounted_requests),
    ("usage cannot be right", |it| it.mismatched_requests),
    ("usage contradicts itself", |it| it.contradictory_requests),
    ("first chunk estimated", |it| it.estimated_first_chunks),
    ("shorter than asked for", |it| it.cut_short_requests),
    ("chunks of failed answers", |it| it.failed_chunks),
];

fn counted(run: &RunResult, of: CountOf) -> bool {
    run.points.iter().filter_map(|point| point.generation.as_ref()).any(|it| of(it) > 0)
}

fn output_table(run: &RunResult) -> Table {
    fn cell<'a>(
        cell: impl Fn(&Generation) -> String + 'a,
    ) -> impl Fn(&&PointResult) -> Option<String> + 'a {
        move |point| point.generation.as_ref().map(&cell)
    }
    let whole = |value: Option<f64>| number(value.map(f64::round));
    let all = rows(run, "Output within the window", has_generation)
        .figures("output tokens/s", "", |p| {
            ReportedFigure::tokens_per_s(p).map(|rate| rate.rate_text())
        })
        .figures("by its own counter", "", cell(|it| rate(it.server_output_tokens_per_s)))
        .figures("a user, mean", "tokens/s", cell(|it| rate(it.tokens_per_s_per_user)))
        .figures("a user, MLPerf", "tokens/s", cell(|it| rate(it.tps_per_user)))
        .figures("chunks/s", "", cell(|it| whole(it.chunks_per_s)))
        .figures("characters/s", "", cell(|it| whole(it.characters_per_s)))
        .figures("prompt tokens, mean", "", cell(|it| mean(it.prompt_tokens)))
        .figures("output tokens, mean", "", cell(|it| mean(it.output_tokens)))
        .figures("p90", "", cell(|it| count(it.output_tokens.and_then(|it| it.p90))))
        .figures("prompt cached", "", cell(|it| percent(it.cached_prompt_ratio)));
    let counts = COUNTS.iter().filter(|(_, of)| counted(run, *of));
    let all = counts.fold(all, |rows, (name, of)| {
        rows.figures(name, "", cell(|generation| count(Some(of(generation)))))
    });
    all.table().without_empty_columns()
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), three_digits)
}

fn mean(counts: Option<CountSummary>) -> String {
    rate(counts.and_then(|counts| counts.mean))
}

fn goodput_table(run: &RunResult) -> Table {
    let limits = run.points.iter().find_map(|point| Some(limits_text(point.goodput.as_ref()?)));
    let Some(limits) = limits else { return Table::default() };
    let caption = format!("Goodput: ops that ended well within {limits}, of all that were due");
    let percent = |ratio: f64| three_digits(ratio * 100.0);
    rows(run, &caption, |point| point.goodput.is_some())
        .figures("goodput", "%", |p| {
            let reported = ReportedFigure::goodput(p)?;
            let ends = reported.interval.map(|ends| ends.map(percent));
            let interval = ends.map(|[low, high]| format!("\u{a0}({low}–{high})"));
            Some(format!("{}{}", percent(reported.value), interval.unwrap_or_default()))
        })
        .figures("good ops/s", "", |p| {
            let goodput = p.goodput.as_ref()?;
            Some(ReportedFigure::new(goodput.per_s?, goodput.interval_per_s).rate_text())
        })
        .table()
        .without_empty_columns()
}

/// `first_output < 500ms, tpot < 50ms`.
fn limits_text(goodput: &Goodput) -> String {
    goodput.limits.text().replace(',', ", ").replace('<', " < ")
}

/// What the users of a load point got.
pub(super) fn sentence(run: &RunResult, point: &PointResult) -> Option<String> {
    let generation = point.generation.as_ref()?;
    let load_text = load(point.requested, &run.axis);
    let text =
        |of, figure| ReportedFigure::stream(point, of, figure).map(|it| it.short_time_text());
    let mut parts = vec![match ReportedFigure::tokens_per_s(point) {
        Some(rate) => {
            format!("At {load_text} it generated {} output tokens/s", grouped(rate.value))
        }
        None => format!(
            "At {load_text} it sent {} chunks/s with output (its answers do not say their tokens)",
            number(generation.chunks_per_s.map(f64::round))
        ),
    }];
    let two = |of: StreamFigure| {
        let name = of.title();
        match (text(of, Figure::P50), text(of, Figure::P90)) {
            (Some(median), Some(p90)) => {
                Some(format!("{name} was {median} at the median and {p90} at p90"))
            }
            (Some(median), None) => Some(format!("{name} was {median} at the median")),
            _ => text(of, Figure::Mean).map(|mean| format!("{name} was {mean} on average")),
        }
    };
    parts.extend([StreamFigure::FirstOutput, StreamFigure::Tpot].into_iter().filter_map(two));
    Some(format!("{}.", parts.join("; ")))
}

/// What part of its ops was good.
pub(super) fn goodput_sentence(point: &PointResult) -> Option<String> {
    let goodput = point.goodput.as_ref()?;
    let share = percent(goodput.share_ratio);
    let limits = limits_text(goodput);
    Some(format!("Goodput: {share} of the requests kept {limits}."))
}

/// As large figures: what people compare servers of language models by.
pub(super) fn large_figures(point: &PointResult) -> Vec<(String, String, String)> {
    if point.generation.is_none() {
        return Vec::new();
    }
    let of = |figure: StreamFigure| {
        let at = |(name, which)| Some((name, ReportedFigure::stream(point, figure, which)?));
        // A sample too small for the one may be enough for the other.
        let candidates = [("p90", Figure::P90), ("p50", Figure::P50), ("mean", Figure::Mean)];
        let (name, reported) = candidates.into_iter().find_map(at)?;
        let (value, unit) = reported.time_parts();
        Some((format!("{} {name}", figure.title()), value, unit))
    };
    let tokens = ReportedFigure::tokens_per_s(point).map(|rate| {
        let unit = rate.rate_interval_text().map_or_else(String::new, |text| format!("({text})"));
        ("output tokens/s".to_owned(), grouped(rate.value), unit)
    });
    let times = [StreamFigure::FirstOutput, StreamFigure::Tpot].into_iter().filter_map(of);
    tokens.into_iter().chain(times).collect()
}

fn endpoints(endpoints: &Endpoints) -> EndpointsView {
    let points = Rows::new("Load points by the rules of MLPerf Endpoints", &endpoints.points)
        .figures("point", "", |p| p.position)
        .figures("concurrency", "", |p| grouped(f64::from(p.concurrency)))
        .text("region", |p| p.region.map(RegionName::as_str))
        .figures("system_tps", "", |p| rate(p.system_tps))
        .figures("tps_per_user", "", |p| rate(p.tps_per_user))
        .figures("ttft p90", "", |p| time(p.ttft_p90_ns))
        .figures("tpot p90", "", |p| time(p.tpot_p90_ns))
        .figures("tpot p90, early stopping", "", |p| time(p.tpot_p90_early_ns))
        .text("steady window", |p| steady_text(p))
        .table();
    EndpointsView { lead: lead(endpoints), points, note: ENDPOINTS_NOTE }
}

fn lead(endpoints: &Endpoints) -> String {
    let bounds = endpoints.regions.iter().filter(|region| region.name != RegionName::UltraLow);
    let bounds = bounds
        .filter(|region| region.from <= region.to)
        .map(|region| format!("{} {}–{}", region.name.as_str(), region.from, region.to));
    let bounds: Vec<String> = bounds.collect();
    let regions = format!(
        "Regions between {} and {} streams: {}.",
        endpoints.c_min,
        endpoints.c_max,
        bounds.join(", ")
    );
    let wanting: Vec<String> = endpoints.wanting.iter().map(wanting_text).collect();
    match wanting.is_empty() {
        true => format!("{regions} The ladder has all the points that the rules require."),
        false => format!("{regions} The rules also require: {}.", wanting.join("; ")),
    }
}

fn wanting_text(wanting: &Wanting) -> String {
    match wanting {
        Wanting::Points { points, points_min } => {
            format!("{points_min} valid points or more (there are {points})")
        }
        Wanting::Region { name } => format!("a point in the {} region", name.as_str()),
        Wanting::HighestConcurrency => "a highest concurrency above 32".to_owned(),
    }
}

fn steady_text(point: &EndpointsPoint) -> String {
    let steady = &point.steady;
    match (steady.verdict, steady.seconds) {
        (Some(SteadyVerdict::Steady), Some(seconds)) => {
            format!("steady for {}", Nanos::from_secs_f64(seconds))
        }
        (Some(verdict), _) => verdict.as_str().replace('_', " "),
        (None, _) => steady.status.as_str().replace('_', " "),
    }
}
