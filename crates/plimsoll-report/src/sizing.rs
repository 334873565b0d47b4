//! How big a server must be, as text for a terminal.

mod doubts;
mod page_cache;

use plimsoll_model::event::Bound;
use plimsoll_model::size::{
    CeilingBasis, Estimate, Need, PeakBound, PredictedPeak, ResponseAt, ResponseLaw, Sizing, Term,
    TermKind,
};
use plimsoll_model::units::{
    self, Bytes, BytesPerSec, Nanos, grouped, three_digits, whole_percent,
};

use crate::table::{Rows, Table};

/// From here on a load counts as extrapolated.
const BEYOND_RATIO: f64 = 1.005;

/// The sizing for a person: needs, evidence, and unknowns.
pub fn sizing_text(sizing: &Sizing) -> String {
    let mut lines = vec![heading(sizing)];
    if let Some(refusal) = &sizing.refused {
        lines.push(format!("Refused: {}", doubts::refusal(refusal)));
    }
    let table = needs(sizing);
    if !table.rows.is_empty() {
        lines.push(format!("\n{}", table.aligned()));
    }
    lines.extend(sizing.processors.as_ref().map(|need| law("Processor time of an op", need)));
    lines.extend(page_cache::lines(sizing.page_cache, sizing.asked.memory_bytes));
    lines.extend(sizing.servers.map(|servers| {
        let count = counted(servers);
        format!("Servers like the one measured: {} ({count})", grouped(servers.whole()))
    }));
    lines.extend(sizing.response.iter().map(response));
    lines.extend(sizing.users.map(|users| {
        let users = grouped(users.round());
        match (sizing.asked.think, sizing.asked.users_per_client) {
            (Some(think), _) => format!("Users with {think} between two requests: {users}"),
            (None, Some(each)) => {
                format!("Users, {} to a client of the suite: {users}", grouped(each))
            }
            (None, None) => format!("Users with the suite's think time: {users}"),
        }
    }));
    lines.extend(sizing.money.as_ref().map(|money| {
        let least = if money.bound == Bound::AtLeast { "at least " } else { "" };
        format!(
            "Price: {least}{} for {} × {:?} ({} each); {} for 1,000 ops/s",
            money.total,
            grouped(money.servers),
            money.system,
            money.one,
            grouped(money.per_thousand_ops_per_s),
        )
    }));
    let bounded = sizing.peaks.iter().filter(|peak| peak.bound != PeakBound::Open);
    lines.extend(bounded.map(peak));
    if !sizing.unknown.is_empty() {
        lines.push("\nNot known:".to_owned());
        lines.extend(sizing.unknown.iter().map(|it| format!("  - {}", doubts::unknown(it))));
    }
    lines.join("\n") + "\n"
}

fn heading(sizing: &Sizing) -> String {
    let (request, measured) = (&sizing.asked, &sizing.measured);
    let within = request.within.as_ref().map(|within| format!(" within {within}"));
    let runs = units::counted(measured.runs.len(), "run");
    let busy = measured
        .busy_highest_ratio
        .map(|busy| format!(", where the processors were {} busy", whole_percent(busy)));
    let ops = format!("{} ops/s", grouped(request.load_ops_per_s));
    let load = match (request.users, request.load_bytes_per_s) {
        (Some(users), _) => format!("{} users ({ops})", grouped(users)),
        (None, Some(rate)) => format!("{} ({ops})", BytesPerSec(rate)),
        (None, None) => ops,
    };
    format!(
        "For {load}{} at up to {} of each resource; from {runs} with {} load points up to {} \
         ops/s{}",
        within.unwrap_or_default(),
        whole_percent(request.headroom_ratio),
        measured.loads,
        grouped(measured.highest_ops_per_s),
        busy.unwrap_or_default(),
    )
}

/// The unit of a need.
#[derive(Clone, Copy)]
enum Unit {
    Cores,
    PerSecond,
    BytesPerSecond,
    Bytes,
}

impl Unit {
    fn total(self, value: f64) -> String {
        match self {
            Self::Cores => format!("{} cores", three_digits(value)),
            Self::PerSecond => format!("{}/s", three_digits(value)),
            Self::BytesPerSecond => BytesPerSec(value).to_string(),
            Self::Bytes => Bytes(value as u64).to_string(),
        }
    }

    fn per_op(self, value: f64) -> String {
        match self {
            Self::Cores => Nanos(value as u64).to_string(),
            Self::PerSecond => three_digits(value),
            Self::BytesPerSecond | Self::Bytes if value < 10.0 => {
                format!("{} B", three_digits(value))
            }
            Self::BytesPerSecond | Self::Bytes => Bytes(value as u64).to_string(),
        }
    }
}

fn needs(sizing: &Sizing) -> Table {
    let needs = [
        ("processors", &sizing.processors, Unit::Cores),
        ("disks, by transfers", &sizing.disks_by_iops, Unit::PerSecond),
        ("disks, by bytes", &sizing.disks_by_bytes, Unit::BytesPerSecond),
        ("adapters", &sizing.adapters, Unit::BytesPerSecond),
        ("memory", &sizing.memory, Unit::Bytes),
    ];
    let needs =
        needs.into_iter().filter_map(|(name, need, unit)| Some((name, need.as_ref()?, unit)));
    Rows::new("", needs)
        .text("need", |(name, ..)| *name)
        .figures("how many", "", |(_, need, _)| need.count.map(|count| grouped(count.whole())))
        .text("95 %", |(_, need, unit)| {
            need.count.map_or_else(|| interval(need.total, |value| unit.total(value)), counted)
        })
        .figures("an op takes", "", |(_, need, unit)| {
            need.per_op.map(|per_op| unit.per_op(per_op.value))
        })
        .figures("in all", "", |(_, need, unit)| unit.total(need.total.value))
        .text("one can do", |(_, need, unit)| {
            need.each.map(|each| match each.basis {
                CeilingBasis::Time => "1 core".to_owned(),
                CeilingBasis::Stated => format!("{}, as stated", unit.total(each.value)),
                CeilingBasis::Limit => format!("{}, its limit", unit.total(each.value)),
                CeilingBasis::LinkSpeed => format!("{}, its speed", unit.total(each.value)),
                CeilingBasis::Utilisation => {
                    format!("{}, as busy as it was", unit.total(each.value))
                }
            })
        })
        .figures("load ÷ highest measured", "", |(_, need, _)| {
            format!("{} x", three_digits(need.load_ratio))
        })
        .table()
}

/// `4.20 (4.02–4.51)`, or `at least 4.02`.
fn counted(count: Estimate) -> String {
    match count.high {
        Some(_) => {
            let value = three_digits(count.value);
            format!("{value} ({})", interval(count, three_digits))
        }
        None => format!("at least {}", three_digits(count.low)),
    }
}

fn interval(estimate: Estimate, text: impl Fn(f64) -> String) -> String {
    match estimate.high {
        Some(high) => format!("{}–{}", text(estimate.low), text(high)),
        None => format!("at least {}", text(estimate.low)),
    }
}

/// `Processor time of an op: 61.2 µs + 22.1 µs × (1 − ρ), …`.
fn law(of: &str, need: &Need) -> String {
    let terms: Vec<String> = need.law.iter().map(term).collect();
    let here = need.per_op.map(|per_op| {
        let text = |value: f64| Nanos(value as u64).to_string();
        format!("; at this load {} ({})", text(per_op.value), interval(per_op, text))
    });
    format!("{of}: {}{}", terms.join(" + "), here.unwrap_or_default())
}

fn term(term: &Term) -> String {
    let time = Nanos(term.value as u64);
    match term.kind {
        TermKind::Constant => time.to_string(),
        TermKind::WakeUps => format!("{time} × (1 − ρ) of waking up, ρ how busy processors are"),
        TermKind::Background => {
            format!(
                "{} core without any load, divided among the ops",
                three_digits(term.value / 1e9)
            )
        }
        TermKind::Contention => {
            format!("{} for each 1,000 ops/s of load", Nanos((term.value * 1e3) as u64))
        }
        TermKind::Processors => format!("{time} for each further processor"),
    }
}

fn response(at: &ResponseAt) -> String {
    let text = |value: f64| Nanos(value as u64).to_string();
    let limit = at.below_ns.map(|below| format!(", limit {}", text(below)));
    let law = match at.law {
        ResponseLaw::Measured => "between two measured loads",
        ResponseLaw::Queue => "by the law of a queue",
    };
    format!(
        "Response time, {}: {} ({}{}) with the processors {} busy, {law}",
        at.figure.as_str(),
        text(at.ns.value),
        interval(at.ns, text),
        limit.unwrap_or_default(),
        whole_percent(at.busy_ratio),
    )
}

fn peak(peak: &PredictedPeak) -> String {
    let cores = match peak.processors {
        1.0 => "1 core".to_owned(),
        cores => format!("{} cores", grouped(cores)),
    };
    let which = if peak.measured { "the size measured" } else { "twice that" };
    let ops_per_s = match peak.bound {
        PeakBound::AtLeast | PeakBound::Open => interval(peak.ops_per_s, three_digits),
        PeakBound::AtMost => format!("at most {}", counted(peak.ops_per_s)),
        PeakBound::Exact => counted(peak.ops_per_s),
    };
    let beyond = match peak.load_ratio > BEYOND_RATIO {
        true => format!(", {} x the highest load measured", three_digits(peak.load_ratio)),
        false => String::new(),
    };
    format!("Where {cores} would be full ({which}), as predicted: {ops_per_s} ops/s{beyond}")
}
