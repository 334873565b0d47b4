//! The generator's host: who had a worker's core when the worker wanted it, who else was at work,
//! and whether the network links could carry what was counted.

use plimsoll_model::disclosure::Network;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_model::finding::{Rule, WorkerCore};
use plimsoll_model::units::Nanos;

use super::Evidence;
use super::agents::of_each;
use crate::health::{busy_ratio_max, gaps, run_delay_ratio_max};

/// A hundredth of the time lost is enough to make one op in a hundred late.
const TAKEN_MIN_RATIO: f64 = 0.01;
/// A core that was taken for this part of the time is worth saying even where every figure carries
/// what came of it.
const SAID_MIN_RATIO: f64 = 0.1;
/// Below it a worker has time to spare.
const BUSY_RATIO: f64 = 0.5;

/// What became of the core of a worker that is slow or late.
pub(super) fn worker_core(e: &Evidence<'_>) -> WorkerCore {
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
    run_delay_ratio_max(e.view.record).filter(|ratio| *ratio >= SAID_MIN_RATIO)?;
    Some(Rule::CoreTaken { core: taken_by(e)? })
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
    let (ratio, longest) = gaps(record).filter(|(ratio, _)| *ratio >= TAKEN_MIN_RATIO)?;
    Some(WorkerCore::Paused { ratio, longest_ns: Nanos(longest) })
}

fn by_a_thread(e: &Evidence<'_>, delayed_ratio: f64) -> WorkerCore {
    let window_ns = e.view.record.measured_ns.0.max(1) as f64;
    let users = e.view.record.core_users.as_deref().unwrap_or_default();
    let largest = users.iter().max_by_key(|user| user.cpu_ns);
    let share = |user: &CoreUser| user.cpu_ns as f64 / window_ns;
    // The kernel counts in ticks: over a short window that says nothing.
    let largest = largest.filter(|_| !e.window_is_short());
    match largest.filter(|user| share(user) >= TAKEN_MIN_RATIO / 2.0) {
        Some(user) => WorkerCore::Taken { ratio: share(user), user: user.clone() },
        None => WorkerCore::TakenByUnknown { ratio: delayed_ratio },
    }
}

/// Work of other programs from which a reader must know: a tenth of the host's cores …
const OTHER_WORK_MIN_RATIO: f64 = 0.1;
/// … but at least this much of one core, below which the samples themselves are not sure.
const OTHER_WORK_MIN_CORES: f64 = 0.2;
/// Share of time the hypervisor may keep for others before it is said.
const STOLEN_MIN_RATIO: f64 = 0.02;

/// Other programs used the host's processors during the window. The usual cause of lateness.
pub(super) fn other_work(e: &Evidence<'_>) -> Option<Rule> {
    of_each(e, others_at_work)
}

fn others_at_work(e: &Evidence<'_>) -> Option<Rule> {
    let resource = |name: &str| mean(e, name);
    let ours = ["process.generator.cpu", "process.server.cpu"];
    if same_host_server(e) && resource(ours[1]).is_none() {
        // A server that somebody else started here cannot be distinguished from the rest.
        return None;
    }
    let cores = e.view.record.resources.iter().filter(|r| is_here(r) && is_core(&r.name)).count();
    let busy_cores = resource("host.cpu_busy")? * cores as f64;
    let used_cores = busy_cores - ours.iter().filter_map(|name| resource(name)).sum::<f64>();
    let said = used_cores >= OTHER_WORK_MIN_CORES.max(OTHER_WORK_MIN_RATIO * cores as f64);
    said.then_some(Rule::OtherWork { used_cores, cores: cores as u32 })
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
pub(super) fn mean(e: &Evidence<'_>, name: &str) -> Option<f64> {
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

/// More bytes than the links carry: a counter or a clock is wrong. Not judged when a target is on
/// this host, which has no link to it, nor where a virtual interface names no speed.
pub(super) fn link_capacity(e: &Evidence<'_>) -> Option<Rule> {
    let links = carriers(e)?;
    let speeds: Option<Vec<u64>> = links.iter().map(|link| link.speed_mbit_per_s).collect();
    let speeds = speeds.filter(|speeds| !speeds.is_empty())?;
    let limit_mbit_per_s = speeds.iter().sum::<u64>() as f64;
    let used_mbit_per_s = bytes_per_s(e) * 8.0 / 1e6;
    let too_much = used_mbit_per_s > limit_mbit_per_s;
    too_much.then_some(Rule::LinkCapacity { used_mbit_per_s, limit_mbit_per_s })
}

/// The interfaces that carried the load, as far as the monitors tell, else all of them. `None`
/// where a target is on this host, or where nothing is known of targets.
fn carriers<'e>(e: &'e Evidence<'_>) -> Option<Vec<&'e Network>> {
    let disclosure = e.disclosure?;
    if disclosure.targets.is_empty() || disclosure.targets.iter().any(|t| t.same_host) {
        return None;
    }
    let is_link = |network: &&Network| network.name != "lo";
    if !e.view.record.agents.is_empty() {
        // What each interface of an agent's host carried is not told: all of them may have.
        let hosts = disclosure.agent_hosts.iter().map(|of| &of.host);
        return Some(hosts.flat_map(|host| &host.networks).filter(is_link).collect());
    }
    let all: Vec<&Network> = disclosure.generator.networks.iter().filter(is_link).collect();
    let least = bytes_per_s(e) * CARRIED_MIN_RATIO;
    let carried = |network: &&Network| {
        let of = |way: &str| mean(e, &format!("network.{}.{way}", network.name));
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
