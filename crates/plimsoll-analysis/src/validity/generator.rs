//! Did the generator measure the server, or itself? Where many agents make the load, each is
//! evaluated by itself. The generator's host: who had a worker's core when the worker was ready,
//! which other programs were at work, and whether the network links could carry the counted bytes.

use plimsoll_model::disclosure::Network;
use plimsoll_model::event::{AgentPoint, CoreUser, OpTimes, PointRecord, ResourceUse};
use plimsoll_model::finding::{Missing, PartOf, Rule, WorkerCore};
use plimsoll_model::suite::Suite;
use plimsoll_model::units::Nanos;

use super::load::chance_of_share;
use super::{Check, Evidence, SHORT_WINDOW};
use crate::health::{
    ClientTime, busy_ratio_max, cpu_demand_ratio_max, generator_part_of_p50, part_of, poll_pauses,
    run_delay_ratio_max,
};
use crate::raw::PointView;
use crate::times::quantile_ns;

/// Share of response p50 that send lag p99 may be when that is more than the suite's limit.
const SEND_LAG_OF_RESPONSE_RATIO: f64 = 0.05;
/// Below this many ops p99 is the maximum again, and one hiccup would decide: p90 is evaluated.
const SEND_LAG_P99_SAMPLES_MIN: u64 = 100;
/// Share of a figure that may be the generator's own: beyond it the figure shows more of the
/// generator than of the server.
const OWN_PART_MAX_RATIO: f64 = 0.5;
/// Share of one core the monitors may use.
const MONITOR_CPU_MAX_RATIO: f64 = 0.01;
/// CPU time that they may use in any window: they sample at its borders, however short it is.
const MONITOR_CPU_ALLOWED: Nanos = Nanos::from_millis(10);

/// A worker that demands more than its core gives reads replies late, in open and closed loads
/// alike. Its demand is its work and the time it was ready and another thread had the core.
pub(super) fn generator_cpu(e: &Evidence<'_>) -> Option<Rule> {
    if e.window_is_short() { None } else { of_each(e, excess_cpu_demand) }
}

/// The generator's own delays may be all there is to a figure: then it shows nothing about the
/// server.
pub(super) fn generator_error(e: &Evidence<'_>) -> Option<Rule> {
    if e.window_is_short() { None } else { own_part_too_large(e) }
}

/// In a window of a few requests connections are opened and one pause of the host is a large part:
/// the intervals are wide enough for that, and the point stays valid.
pub(super) fn short_window(e: &Evidence<'_>) -> Option<Rule> {
    let breaks = of_each(e, excess_cpu_demand).or_else(|| own_part_too_large(e));
    let breaks = breaks.filter(|_| e.window_is_short())?;
    Some(Rule::ShortWindow {
        window_ns: e.view.record.measured_ns,
        limit_ns: SHORT_WINDOW,
        breaks: Box::new(breaks),
    })
}

fn excess_cpu_demand(e: &Evidence<'_>) -> Option<Rule> {
    let limit_ratio = e.suite.rules.generator_cpu_max_ratio;
    let record = e.view.record;
    let (Some(busy_ratio), Some(demand_ratio)) =
        (busy_ratio_max(record), cpu_demand_ratio_max(record))
    else {
        return Some(Rule::MissingEvidence { missing: Missing::WorkerHealth });
    };
    (demand_ratio > limit_ratio).then(|| Rule::GeneratorCpu {
        wanted_ratio: demand_ratio,
        limit_ratio,
        busy_ratio,
        waiting_ratio: run_delay_ratio_max(record).unwrap_or_default(),
        core: worker_core(e),
    })
}

fn own_part_too_large(e: &Evidence<'_>) -> Option<Rule> {
    let times = e.times.filter(|times| !times.response.is_empty())?;
    let Some((p50_ns, own_ns)) = generator_part_of_p50(times) else {
        return Some(Rule::MissingEvidence { missing: Missing::Arrivals });
    };
    let too_large = |part_of, own_ns: f64, of_ns: f64, ops: f64| {
        (own_ns > OWN_PART_MAX_RATIO * of_ns).then(|| Rule::GeneratorError {
            part_of,
            own_ns: Nanos((own_ns / ops) as u64),
            of_ns: Nanos((of_ns / ops) as u64),
            ratio: own_ns / of_ns,
            limit_ratio: OWN_PART_MAX_RATIO,
            core: worker_core(e),
        })
    };
    too_large(PartOf::ResponseP50, own_ns, p50_ns, 1.0).or_else(|| {
        let time = ClientTime::from_record(e.view.record, times)?;
        let (answering_ns, ops) = (time.answering_ns().max(1.0), times.response.len() as f64);
        too_large(PartOf::ServerTime, time.own_ns, answering_ns, ops)
    })
}

/// Some ops were sent late. The effect on the figures is in their intervals.
pub(super) fn send_lag(e: &Evidence<'_>) -> Option<Rule> {
    let lag = lag(e).filter(|lag| lag.own > lag.limit)?;
    Some(Rule::SendLag {
        percentile: lag.percentile.to_owned(),
        own_ns: lag.own,
        limit_ns: lag.limit,
        core: worker_core(e),
    })
}

/// Requests of a replay that were sent late, by name.
pub(super) fn late_ops(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let late = Some(&totals.late).filter(|late| !late.is_empty())?;
    Some(Rule::LateOps { late: late.clone(), of_ops: totals.due })
}

/// Lateness that is not the generator's: ops waited for a connection. The load was offered and the
/// wait is in the response time, so it is a warning.
pub(super) fn connections(e: &Evidence<'_>) -> Option<Rule> {
    let lag = lag(e).filter(|lag| lag.all > lag.limit && lag.own <= lag.limit)?;
    Some(Rule::Connections {
        percentile: lag.percentile.to_owned(),
        all_ns: lag.all,
        own_ns: lag.own,
        limit_ns: lag.limit,
    })
}

/// Percentiles of send lag.
struct Lag {
    percentile: &'static str,
    limit: Nanos,
    /// With waits for a connection.
    all: Nanos,
    own: Nanos,
}

fn lag(e: &Evidence<'_>) -> Option<Lag> {
    let times = e.times.filter(|times| !times.send_lag.is_empty())?;
    let (percentile_e2, percentile) = match times.send_lag.len() {
        n if n >= SEND_LAG_P99_SAMPLES_MIN => (9_900, "p99"),
        _ => (9_000, "p90"),
    };
    Some(Lag {
        percentile,
        limit: lateness_limit(e.suite, times),
        all: Nanos(quantile_ns(&times.send_lag, percentile_e2)),
        own: Nanos(quantile_ns(&times.lateness, percentile_e2)),
    })
}

/// The suite's limit, or a twentieth of response p50 when that is more.
pub(crate) fn lateness_limit(suite: &Suite, times: &OpTimes) -> Nanos {
    let response_p50 = quantile_ns(&times.response, 5_000);
    let of_response = Nanos((response_p50 as f64 * SEND_LAG_OF_RESPONSE_RATIO).round() as u64);
    suite.rules.send_lag_p99_max.max(of_response)
}

/// Monitoring must not change the measurement.
pub(super) fn monitors(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, watched_too_much)
}

fn watched_too_much(e: &Evidence<'_>) -> Option<Rule> {
    let record = e.view.record;
    let used_ratio = record.monitor_cpu_ns as f64 / (record.measured_ns.0 as f64).max(1.0);
    let too_much =
        used_ratio > MONITOR_CPU_MAX_RATIO && record.monitor_cpu_ns > MONITOR_CPU_ALLOWED.0;
    too_much.then_some(Rule::Monitors { used_ratio, limit_ratio: MONITOR_CPU_MAX_RATIO })
}

/// An agent's clock may be uncertain by this much …
const CLOCK_BOUND_MAX: Nanos = Nanos::from_millis(1);
/// … or by this part of the window, if that is less.
const CLOCK_BOUND_OF_WINDOW_RATIO: f64 = 0.01;

/// The finding of a rule for this program, or for the first of its agents that breaks it. With
/// fewer clients than agents some have no work.
pub(super) fn of_each(e: &Evidence<'_>, check: Check) -> Option<Rule> {
    if e.view.record.agents.is_empty() {
        return check(e);
    }
    let agents = e.view.record.agents.iter().enumerate();
    let findings = agents.filter(|(_, agent)| agent.workers > 0).filter_map(|(index, agent)| {
        let record = part_of(e.view.record, index);
        let view = PointView { record: &record, samples: e.view.samples, lost: e.view.lost };
        Some((agent, check(&Evidence { view: &view, ..*e })?))
    });
    named(findings)
}

/// The start of an agent's load is known less precisely than required.
pub(super) fn clock(e: &Evidence<'_>) -> Option<Rule> {
    let agents = e.view.record.agents.iter();
    named(agents.filter_map(|agent| Some((agent, clock_of(e.view.record, agent)?))))
}

fn clock_of(record: &PointRecord, agent: &AgentPoint) -> Option<Rule> {
    let of_window = Nanos((record.measured_ns.0 as f64 * CLOCK_BOUND_OF_WINDOW_RATIO) as u64);
    let limit_ns = CLOCK_BOUND_MAX.min(of_window);
    let (bound_ns, drift_ns) = (agent.clock.bound, agent.clock.drift_ns);
    (bound_ns > limit_ns).then_some(Rule::AgentClock { bound_ns, limit_ns, drift_ns })
}

/// Each agent's ops against the share of its workers. Where the load is to be spread evenly over
/// networks, agents are on these networks, and their shares follow their workers.
pub(super) fn shares(e: &Evidence<'_>) -> Option<Rule> {
    let limit_ratio = e.suite.rules.target_share_max_ratio?;
    let agents = &e.view.record.agents;
    let workers: u32 = agents.iter().map(|agent| agent.workers).sum();
    let done: u64 = agents.iter().map(|agent| agent.done).sum();
    let uneven = |agent: &AgentPoint| {
        let share = f64::from(agent.workers) / f64::from(workers);
        let part = share * done as f64;
        let off_ratio = (agent.done as f64 - part).abs() / part;
        (off_ratio > limit_ratio.max(chance_of_share(share, done))).then(|| Rule::AgentShares {
            ops: agent.done,
            part_ops: part.round() as u64,
            off_ratio,
            limit_ratio,
        })
    };
    let working = agents.iter().filter(|agent| agent.workers > 0 && done > 0);
    named(working.filter_map(|agent| Some((agent, uneven(agent)?))))
}

/// The first finding, with its agent and the number of the others.
fn named<'a>(mut findings: impl Iterator<Item = (&'a AgentPoint, Rule)>) -> Option<Rule> {
    let (agent, rule) = findings.next()?;
    Some(Rule::OfAgent {
        agent: agent.name.clone(),
        host: agent.host.clone(),
        others: findings.count() as u32,
        rule: Box::new(rule),
    })
}

/// A hundredth of the time lost is enough to make one op in a hundred late.
const TAKEN_MIN_RATIO: f64 = 0.01;
/// A core that was taken for this part of the time is reported even where every figure includes the
/// effect.
const REPORTED_MIN_RATIO: f64 = 0.1;
/// Below it a worker has time to spare.
const BUSY_RATIO: f64 = 0.5;

/// Use of the core of a worker that is slow or late.
fn worker_core(e: &Evidence<'_>) -> WorkerCore {
    let idle = || busy_ratio_max(e.view.record).is_some_and(|busy| busy < BUSY_RATIO);
    match taken_by(e) {
        Some(core) => core,
        None if idle() => WorkerCore::Slept,
        None => WorkerCore::UsedUp,
    }
}

/// A worker's core was taken for more than a tenth of the time.
pub(super) fn core_taken(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, taken_for_long)
}

fn taken_for_long(e: &Evidence<'_>) -> Option<Rule> {
    run_delay_ratio_max(e.view.record).filter(|ratio| *ratio >= REPORTED_MIN_RATIO)?;
    let core = taken_by(e).filter(|core| *core != WorkerCore::UsedUp)?;
    Some(Rule::CoreTaken { core })
}

fn taken_by(e: &Evidence<'_>) -> Option<WorkerCore> {
    let record = e.view.record;
    let delayed = run_delay_ratio_max(record).filter(|ratio| *ratio >= TAKEN_MIN_RATIO);
    if let Some(ratio) = delayed {
        return Some(by_a_thread(e, ratio));
    }
    if let Some(ratio) = mean(e, "host.cpu_steal").filter(|ratio| *ratio >= TAKEN_MIN_RATIO) {
        return Some(WorkerCore::Stolen { ratio });
    }
    let (ratio, longest) = poll_pauses(record).filter(|(ratio, _)| *ratio >= TAKEN_MIN_RATIO)?;
    Some(WorkerCore::Paused { ratio, longest_ns: Nanos(longest) })
}

fn by_a_thread(e: &Evidence<'_>, delayed_ratio: f64) -> WorkerCore {
    let window_ns = e.view.record.measured_ns.0.max(1) as f64;
    let users = e.view.record.core_users.as_deref().unwrap_or_default();
    let largest = users.iter().max_by_key(|user| user.cpu_ns);
    let share = |user: &CoreUser| user.cpu_ns as f64 / window_ns;
    // The kernel counts in ticks: over a short window that shows nothing.
    let largest = largest.filter(|_| !e.window_is_short());
    match largest.filter(|user| share(user) >= TAKEN_MIN_RATIO / 2.0) {
        Some(user) => WorkerCore::Taken { ratio: share(user), user: user.clone() },
        // The kernel counts waits for a quota as waits for a core.
        None if mean(e, "host.throttled") > Some(TAKEN_MIN_RATIO) => WorkerCore::UsedUp,
        None => WorkerCore::TakenByUnknown { ratio: delayed_ratio },
    }
}

/// Work of other programs is reported from a tenth of the host's cores …
const OTHER_WORK_MIN_RATIO: f64 = 0.1;
/// … but at least this much of one core, below which the samples themselves are not certain.
const OTHER_WORK_MIN_CORES: f64 = 0.2;
/// Share of time that the hypervisor may keep for others before it is reported.
const STOLEN_MIN_RATIO: f64 = 0.02;

/// Other programs used the host's processors during the window. The usual cause of lateness.
pub(super) fn other_work(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, others_at_work)
}

fn others_at_work(e: &Evidence<'_>) -> Option<Rule> {
    let resource = |name: &str| mean(e, name);
    let ours = ["process.generator.cpu", "process.server.cpu"];
    if same_host_server(e) && resource(ours[1]).is_none() {
        // A server that another program started here cannot be distinguished from the rest.
        return None;
    }
    let cores = e.view.record.resources.iter().filter(|r| is_here(r) && is_core(&r.name)).count();
    let busy_cores = resource("host.cpu_busy")? * cores as f64;
    let used_cores = busy_cores - ours.iter().filter_map(|name| resource(name)).sum::<f64>();
    let is_reported = used_cores >= OTHER_WORK_MIN_CORES.max(OTHER_WORK_MIN_RATIO * cores as f64);
    is_reported.then_some(Rule::OtherWork { used_cores, cores: cores as u32 })
}

/// The hypervisor gave the host's processors to others.
pub(super) fn stolen(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, stolen_here)
}

fn stolen_here(e: &Evidence<'_>) -> Option<Rule> {
    let ratio = mean(e, "host.cpu_steal").filter(|ratio| *ratio >= STOLEN_MIN_RATIO)?;
    Some(Rule::Stolen { ratio })
}

/// Mean of a watched resource over the window.
fn mean(e: &Evidence<'_>, name: &str) -> Option<f64> {
    e.view.record.resources.iter().find(|r| is_here(r) && r.name == name).map(|r| r.mean)
}

/// It was read on the generator's host, not on that of a source.
fn is_here(resource: &ResourceUse) -> bool {
    resource.source.is_none()
}

/// `cpu.0.busy`, `cpu.1.busy` …
fn is_core(name: &str) -> bool {
    name.strip_prefix("cpu.").is_some_and(|rest| rest.ends_with(".busy"))
}

fn same_host_server(e: &Evidence<'_>) -> bool {
    e.disclosure.is_none_or(|disclosure| disclosure.targets.iter().any(|target| target.same_host))
}

/// An interface that carried less than this part of the load's bytes had no part in it.
const CARRIED_MIN_RATIO: f64 = 0.01;

/// More bytes than the links carry: a counter or a clock is wrong. Not evaluated when a target is
/// on this host, which has no link to it, nor where a virtual interface names no speed.
pub(super) fn link_capacity(e: &Evidence<'_>) -> Option<Rule> {
    let speeds: Option<Vec<u64>> = carriers(e)?.iter().map(|link| link.speed_mbit_per_s).collect();
    let limit_mbit_per_s = speeds.filter(|speeds| !speeds.is_empty())?.iter().sum::<u64>() as f64;
    let used_mbit_per_s = bytes_per_s(e) * 8.0 / 1e6;
    let too_much = used_mbit_per_s > limit_mbit_per_s;
    too_much.then_some(Rule::LinkCapacity { used_mbit_per_s, limit_mbit_per_s })
}

/// The interfaces that carried the load, as far as the monitors show, else all of them. `None`
/// where a target is on this host, or where nothing is known of targets.
fn carriers<'e>(e: &'e Evidence<'_>) -> Option<Vec<&'e Network>> {
    let disclosure = e.disclosure?;
    if disclosure.targets.is_empty() || disclosure.targets.iter().any(|t| t.same_host) {
        return None;
    }
    let is_link = |network: &&Network| network.name != "lo";
    if !e.view.record.agents.is_empty() {
        // The bytes of each interface of an agent's host are not reported: all of them may have
        // carried some.
        let hosts = disclosure.agent_hosts.iter().map(|of| &of.host);
        return Some(hosts.flat_map(|host| &host.networks).filter(is_link).collect());
    }
    let all: Vec<&Network> = disclosure.generator.networks.iter().filter(is_link).collect();
    let least = bytes_per_s(e) * CARRIED_MIN_RATIO;
    let carried = |network: &&Network| {
        let of = |direction: &str| mean(e, &format!("network.{}.{direction}", network.name));
        let bytes_per_s = of("received").unwrap_or(0.0) + of("sent").unwrap_or(0.0);
        bytes_per_s > 0.0 && bytes_per_s >= least
    };
    let carried: Vec<&Network> = all.iter().copied().filter(carried).collect();
    Some(if carried.is_empty() { all } else { carried })
}

/// Of the direction that carried more, by the worker's own count.
fn bytes_per_s(e: &Evidence<'_>) -> f64 {
    let totals = &e.view.record.totals;
    let seconds = e.view.record.measured_ns.as_secs_f64().max(f64::MIN_POSITIVE);
    totals.wire_bytes_in.max(totals.wire_bytes_out) as f64 / seconds
}

#[cfg(test)]
mod tests;
