//! Lines of a table of results: of a run, and of what a published report prints.

use std::collections::BTreeSet;

use plimsoll_model::board::{BoardPrice, BoardRow, BoardSource};
use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::Bound;
use plimsoll_model::host::Host;
use plimsoll_model::limit::{Limit, LimitKind};
use plimsoll_model::prices::{PriceList, SystemPrices};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;

use crate::point::throughput;
use crate::price::{Performance, priced};

/// The line of a run, as far as its result has the facts; without price and signature.
pub fn row_of(bundle: String, run: &RunResult) -> BoardRow {
    let at_peak = at_peak(run);
    let times = at_peak.and_then(|point| point.response_ns);
    let limit = limit(run, at_peak);
    let is_full = limit.as_ref().is_some_and(|limit| limit.kind.is_resource());
    let at_least = run.summary.bound == Bound::AtLeast;
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
        at_least,
        response_mean_ns: times.and_then(|times| times.mean),
        response_p99_ns: times.and_then(|times| times.p99).map(|nanos| nanos as f64),
        overall_response_ms: run.summary.overall_response_ms.origin.filter(|_| capped),
        // A resource that was full at a lower load did not end this one.
        limit: limit.filter(|_| !(at_least && is_full)),
        price: None,
        valid: Some(run.verdict.valid),
        signed: None,
    }
}

/// The system of a price file that has the first of these labels in the file. The only system of a
/// file stands for any label.
pub fn system_among<'l>(list: &'l PriceList, labels: &[String]) -> Option<&'l SystemPrices> {
    match list.systems.as_slice() {
        [only] => Some(only),
        _ => labels.iter().find_map(|label| list.system(label)),
    }
}

/// Price per unit of the run's peak; `None` where no peak counts.
pub fn price_of(list: &PriceList, system: &SystemPrices, run: &RunResult) -> Option<BoardPrice> {
    let priced = priced(list, system, &Performance::from_run(run));
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
    let metric = run.suite.as_ref().map_or(Metric::Ops, |suite| suite.metric);
    let rate = |point: &PointResult| throughput(metric, point).unwrap_or(0.0);
    run.points.iter().filter(|point| point.counts()).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// The last limit named along the ladder; else that of the point.
fn limit(run: &RunResult, at_peak: Option<&PointResult>) -> Option<Limit> {
    let is_named = |limit: &&Limit| match limit.kind {
        LimitKind::Unknown => false,
        // Where the server was saturated, the limit of a lower load point does not explain the
        // peak.
        LimitKind::None => run.summary.bound == Bound::AtLeast,
        _ => true,
    };
    let spans = run.summary.limits.iter().map(|span| &span.limit);
    spans.rev().find(is_named).or_else(|| Some(&at_peak?.limit).filter(is_named)).cloned()
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
        target.system().or_else(|| target.software.clone()).unwrap_or_else(|| target.target.clone())
    };
    let software = match disclosure.targets.as_slice() {
        [] => run.targets.join(", "),
        targets => once(targets.iter().map(name)),
    };
    let model = |target: &TargetDisclosure| {
        host_of(disclosure, target)?.cpu_model.as_deref().map(short_processor)
    };
    let processors = once(disclosure.targets.iter().filter_map(model));
    if processors.is_empty() { software } else { format!("{software}, {processors}") }
}

/// `Intel Xeon Platinum 8481C` of `Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz`.
fn short_processor(model: &str) -> String {
    let model = model.split(" @").next().unwrap_or(model).replace("(R)", "").replace("(TM)", "");
    let tokens = model.split_whitespace().filter(|word| !["CPU", "Processor"].contains(word));
    tokens.collect::<Vec<_>>().join(" ")
}

/// The host of a server: the generator's own, or one whose inventory was given.
fn host_of<'d>(disclosure: &'d Disclosure, target: &TargetDisclosure) -> Option<&'d Host> {
    if target.same_host {
        return Some(&disclosure.generator);
    }
    let mut given = disclosure.systems.iter();
    given.find(|it| it.of_targets.contains(&target.target)).map(|it| &it.inventory.host)
}

/// Processors that the servers had: the cores that they were pinned to, or all of a host of their
/// own. Unknown where the generator shares a host with a server that is not pinned.
fn processors(disclosure: &Disclosure) -> Option<u32> {
    let mut cores: BTreeSet<u32> = BTreeSet::new();
    // Several targets may be on one host.
    let mut hosts: Vec<&Host> = Vec::new();
    for target in &disclosure.targets {
        if target.same_host && target.cores.is_empty() {
            return None;
        }
        if target.same_host {
            cores.extend(&target.cores);
            continue;
        }
        let host = host_of(disclosure, target)?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let of_hosts: Option<u32> = hosts.iter().map(|host| host.cpus_online).sum();
    Some(cores.len() as u32 + of_hosts?).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests;
