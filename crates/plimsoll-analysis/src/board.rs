//! Lines of a table of results: of a run, and of what a published report prints.

use plimsoll_model::board::{BoardPrice, BoardRow, BoardSource};
use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::Bound;
use plimsoll_model::host::Host;
use plimsoll_model::limit::{Limit, LimitKind};
use plimsoll_model::prices::{PriceList, SystemPrices};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;

use crate::price::{Performance, priced};

/// The line of a run, as far as its result says; price and signature are not of it.
pub fn row_of(bundle: String, run: &RunResult) -> BoardRow {
    let at_peak = at_peak(run);
    let times = at_peak.and_then(|point| point.response_ns);
    let capped = run.suite.as_ref().is_some_and(|suite| suite.response_cap_ms.is_some());
    BoardRow {
        source: BoardSource::Bundle(bundle),
        date: run.started.clone(),
        system: system(run),
        suite: run.suite.as_ref().map_or_else(|| "curve".to_owned(), |suite| suite.name.clone()),
        profile: run.profile.clone(),
        processors: run.disclosure.as_ref().and_then(processors),
        peak: run.summary.value,
        unit: run.summary.unit.clone(),
        at_least: run.summary.bound == Bound::AtLeast,
        response_mean_ns: times.and_then(|times| times.mean),
        response_p99_ns: times.and_then(|times| times.p99).map(|nanos| nanos as f64),
        overall_response_ms: run.summary.overall_response_ms.origin.filter(|_| capped),
        limit: limit(run, at_peak),
        price: None,
        valid: Some(run.verdict.valid),
        signed: None,
    }
}

/// The system of a price file that has the first of these labels that it knows; the only system of
/// a file stands for any.
pub fn system_among<'l>(list: &'l PriceList, labels: &[String]) -> Option<&'l SystemPrices> {
    match list.systems.as_slice() {
        [only] => Some(only),
        _ => labels.iter().find_map(|label| list.system(label)),
    }
}

/// What a unit of the run's peak costs; absent where no peak counts.
pub fn price_of(list: &PriceList, system: &SystemPrices, run: &RunResult) -> Option<BoardPrice> {
    let priced = priced(list, system, &Performance::of(run));
    let figure = priced.figures.iter().find(|figure| figure.of == "peak")?;
    Some(BoardPrice {
        currency: priced.currency.clone(),
        per_unit: figure.money_per_unit,
        unit: figure.unit.clone(),
        at_most: figure.at_least,
    })
}

/// The load point with the highest throughput of those that count.
fn at_peak(run: &RunResult) -> Option<&PointResult> {
    let bytes = run.suite.as_ref().is_some_and(|suite| suite.metric == Metric::Bytes);
    let throughput = |point: &&PointResult| match bytes {
        true => point.achieved_bytes_per_s,
        false => point.achieved_ops_per_s,
    };
    let counted = run.points.iter().filter(|point| point.not_counted.is_none());
    counted.max_by(|a, b| throughput(a).unwrap_or(0.0).total_cmp(&throughput(b).unwrap_or(0.0)))
}

/// The last that is known along the ladder; else that of the point.
fn limit(run: &RunResult, at_peak: Option<&PointResult>) -> Option<Limit> {
    let known = |limit: &&Limit| limit.kind != LimitKind::Unknown;
    let spans = run.summary.limits.iter().map(|span| &span.limit);
    spans.rev().find(known).or_else(|| Some(&at_peak?.limit).filter(known)).cloned()
}

/// Each once, in their order.
fn once(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(" + ")
}

fn system(run: &RunResult) -> String {
    let Some(disclosure) = &run.disclosure else { return run.targets.join(", ") };
    let name = |target: &TargetDisclosure| {
        target.software.clone().unwrap_or_else(|| target.target.clone())
    };
    let software = match disclosure.targets.as_slice() {
        [] => run.targets.join(", "),
        targets => once(targets.iter().map(name)),
    };
    let model = |target: &TargetDisclosure| host_of(disclosure, target)?.cpu_model.clone();
    let processors = once(disclosure.targets.iter().filter_map(model));
    match processors.is_empty() {
        true => software,
        false => format!("{software}, {processors}"),
    }
}

/// The host of a server: the generator's own, or one whose inventory was given.
fn host_of<'d>(disclosure: &'d Disclosure, target: &TargetDisclosure) -> Option<&'d Host> {
    if target.same_host {
        return Some(&disclosure.generator);
    }
    let mut given = disclosure.systems.iter();
    given.find(|it| it.of_targets.contains(&target.target)).map(|it| &it.inventory.host)
}

/// Processors that the servers had: the cores they were held to, or all of a host of their own. On
/// a host that the generator shares with a server that may run anywhere, nobody knows.
fn processors(disclosure: &Disclosure) -> Option<u32> {
    let mut cores: Vec<u32> = Vec::new();
    let mut hosts: Vec<&Host> = Vec::new();
    for target in &disclosure.targets {
        let host = host_of(disclosure, target);
        match (target.same_host, host) {
            (true, _) if target.cores.is_empty() => return None,
            (true, _) => cores.extend(&target.cores),
            (false, Some(host)) => hosts.push(host),
            (false, None) => return None,
        }
    }
    cores.sort_unstable();
    cores.dedup();
    // Several targets may be on one host.
    let mut each: Vec<&Host> = Vec::new();
    for host in hosts {
        if each.iter().all(|other| *other != host) {
            each.push(host);
        }
    }
    let of_hosts: Option<u32> = each.iter().map(|host| host.cpus_online).sum();
    Some(cores.len() as u32 + of_hosts?).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests;
