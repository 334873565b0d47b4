//! Who else was at work on the generator's host: what makes a generator late without its fault.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::finding::Rule;

use super::Evidence;

/// Work of other programs from which a reader must know: a tenth of the host's cores …
const OTHER_WORK_MIN_RATIO: f64 = 0.1;
/// … but at least this much of one core, below which the samples themselves are not sure.
const OTHER_WORK_MIN_CORES: f64 = 0.2;
/// Share of time the hypervisor may keep for others before it is said.
const STOLEN_MIN_RATIO: f64 = 0.02;

/// Other programs used the host's processors during the window. The usual cause of lateness.
pub(super) fn other_work(e: &Evidence<'_>) -> Option<Rule> {
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

#[cfg(test)]
mod tests {
    use plimsoll_model::event::ResourceUse;

    use crate::testing::{PointBuilder, TestPoint};

    fn with(resources: &[(&str, f64)]) -> TestPoint {
        let mut point = PointBuilder::open(1_000.0).build();
        let entry = |(name, mean): &(&str, f64)| ResourceUse {
            name: (*name).to_owned(),
            unit: String::new(),
            mean: *mean,
            max: *mean,
            ..ResourceUse::default()
        };
        point.record.resources = resources.iter().map(entry).collect();
        point
    }

    fn warns(point: &TestPoint, rule: &str) -> bool {
        let verdict = point.verdict();
        assert!(verdict.valid, "{verdict:?}");
        verdict.warnings.iter().any(|warning| warning.rule.name() == rule)
    }

    fn two_cores(busy: f64, server: f64) -> TestPoint {
        with(&[
            ("host.cpu_busy", busy),
            ("cpu.0.busy", busy),
            ("cpu.1.busy", busy),
            ("process.generator.cpu", 0.3),
            ("process.server.cpu", server),
        ])
    }

    #[test]
    fn work_of_other_programs_is_named_and_our_own_is_not() {
        assert!(warns(&two_cores(0.9, 0.3), "other_work"));
        assert!(!warns(&two_cores(0.9, 1.4), "other_work"));
        assert!(!warns(&with(&[]), "other_work"));
    }

    #[test]
    fn time_the_hypervisor_kept_is_named() {
        assert!(warns(&with(&[("host.cpu_steal", 0.05)]), "stolen"));
        assert!(!warns(&with(&[("host.cpu_steal", 0.01)]), "stolen"));
    }
}
