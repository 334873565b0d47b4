//! What limited each load point, and the use of resources.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::{Evidence, Limit, LimitKind};
use plimsoll_model::result::{AgentResult, PointResult, RunResult};

use super::names::display_name;
use crate::sentences;
use crate::table::{Mark, Rows, Table};
use crate::text::{ResourceUnit, load, number};

/// Kind and location of a load point's limit, with others reached at the same load: `disk: vda and
/// network: eth0`. A point without a limit is *not saturated*.
pub fn limit_name(limit: &Limit) -> String {
    let all: Vec<_> = std::iter::once(limit).chain(&limit.also).map(one_name).collect();
    all.join(" and ")
}

/// What limited the run, in the order of the ladder: `core 1 from 4 clients on, then disk: vda
/// from 32 clients on`. A run that nothing limited is *not saturated*.
pub fn limit_line(run: &RunResult) -> String {
    let names = run.summary.limits.iter().map(|span| match run.points.len() {
        1 => limit_name(&span.limit),
        _ => format!("{} from {} on", limit_name(&span.limit), load(span.from, &run.axis)),
    });
    let names: Vec<String> = names.collect();
    match (names.as_slice(), run.points.as_slice()) {
        ([], []) => limit_name(&Limit::default()),
        ([], _) => limit_name(&Limit { kind: LimitKind::None, ..Limit::default() }),
        _ => names.join(", then "),
    }
}

fn one_name(limit: &Limit) -> String {
    let kind = match limit.kind {
        LimitKind::None => "not saturated",
        LimitKind::Cap => "response cap",
        LimitKind::Quota => "CPU quota",
        LimitKind::KvCache => "KV cache",
        other => other.as_str(),
    };
    let name = match limit.place.as_deref().filter(|location| !location.is_empty()) {
        // The location names the kind: `core 1`.
        Some(location) if location.split(' ').any(|word| word == kind) => location.to_owned(),
        Some(location) => format!("{kind}: {location}"),
        None => kind.to_owned(),
    };
    match limit.host.as_ref().map(|host| host.source.as_deref()) {
        Some(source) => format!("{name} of {}", source.unwrap_or(THIS_HOST)),
        None => name,
    }
}

/// Does the result have limits? A curve from elsewhere does not.
pub(crate) fn has_limits(run: &RunResult) -> bool {
    run.suite.is_some() || run.points.iter().any(|p| p.limit != Limit::default())
}

/// The figures on which the points rest whose limit is a resource.
pub(super) fn evidence_table(run: &RunResult) -> Table {
    let mut rows: Vec<(&PointResult, &Limit, Option<&Evidence>)> = Vec::new();
    for point in &run.points {
        let all = std::iter::once(&point.limit).chain(&point.limit.also);
        for limit in all.filter(|it| it.kind.is_resource() || !it.evidence.is_empty()) {
            rows.extend(limit.evidence.iter().map(|evidence| (point, limit, Some(evidence))));
            rows.extend(limit.evidence.is_empty().then_some((point, limit, None)));
        }
    }
    Rows::new("The figures that say so, of load points that a resource held back", rows)
        .marked(|(point, ..)| Mark::of_point(point))
        .figures("point", "", |(point, ..)| point.position)
        .text("load", |(point, ..)| load(point.requested, &run.axis))
        .text("limit", |(_, limit, _)| one_name(limit))
        .text("figure", |(.., evidence)| evidence.map(|it| display_name(&it.name)))
        .figures("value", "", |(.., evidence)| evidence.map(|it| evidence_text(it, it.value)))
        .figures("ceiling", "", |(.., evidence)| {
            evidence.and_then(|it| Some(evidence_text(it, it.ceiling?)))
        })
        .figures("at the lowest load", "", |(.., evidence)| {
            evidence.and_then(|it| Some(evidence_text(it, it.low_load_value?)))
        })
        .table()
        .without_empty_columns()
}

/// In the unit of the largest value of the row.
fn evidence_text(evidence: &Evidence, value: f64) -> String {
    let values = [Some(evidence.value), evidence.ceiling, evidence.low_load_value];
    let finite = values.into_iter().flatten().filter(|value| value.is_finite());
    ResourceUnit::for_largest(&evidence.unit, finite.fold(0.0, f64::max)).named_text(value)
}

/// Each limit of the ladder with its text; neighbours with the same are together.
pub(super) fn texts(run: &RunResult) -> Vec<(String, String)> {
    if !has_limits(run) {
        return Vec::new();
    }
    let same = |a: &PointResult, b: &PointResult| limit_text(&a.limit) == limit_text(&b.limit);
    let entries = run.points.chunk_by(same).filter_map(|group| {
        let (first, last) = (group.first()?, group.last()?);
        let points = match group.len() {
            1 => format!("Point {}", first.position),
            _ => format!("Points {}–{}", first.position, last.position),
        };
        Some((points, limit_text(&first.limit)))
    });
    entries.collect()
}

/// The text for a limit and others at the same load; their names where there is none.
fn limit_text(limit: &Limit) -> String {
    let text = sentences::limit::text_with_others(limit);
    if text.is_empty() { limit_name(limit) } else { text }
}

/// What a resource without a source was read on.
pub(crate) const THIS_HOST: &str = "this host";

/// Identity of a resource: its name, and where it was read.
type Key<'r> = (&'r str, Option<&'r str>);

/// Mean and highest sample of each resource at each load point. What was zero all the time is left
/// out: the files have it.
pub(super) fn resource_table(run: &RunResult) -> Table {
    let watched: Vec<_> = run.points.iter().filter(|p| !p.resources.is_empty()).collect();
    let elsewhere = watched.iter().flat_map(|p| &p.resources).any(|r| r.source.is_some());
    let caption = "Use of resources at each requested load: mean, and highest sample in brackets. \
                   What was zero at every load is left out.";
    let uses = keys(&watched).into_iter().map(|key| {
        let uses: Vec<_> = watched.iter().map(|p| find(p, key)).collect();
        (key, unit(uses.iter().copied().flatten()), uses)
    });
    let is_used = |r: &&ResourceUse| r.mean != 0.0 || r.max != 0.0;
    let uses = uses.filter(|(.., uses)| uses.iter().flatten().any(is_used));
    let begin = Rows::new(caption, uses).text("resource", |((name, _), ..)| display_name(name));
    let begin = match elsewhere {
        true => begin.text("host", |((_, source), ..)| source.unwrap_or(THIS_HOST)),
        false => begin,
    };
    let begin = begin.text("unit", |(_, unit, _)| match unit.name.as_str() {
        "" => "count".to_owned(),
        name => name.to_owned(),
    });
    let all = watched.iter().enumerate().fold(begin, |rows, (at, point)| {
        rows.figures(&number(Some(point.requested)), &run.axis.unit, |(_, unit, uses)| {
            uses[at].map(|r| format!("{} ({})", unit.text(r.mean), unit.text(r.max)))
        })
    });
    all.table()
}

/// In the order of their first mention.
fn keys<'r>(points: &[&'r PointResult]) -> Vec<Key<'r>> {
    let mut keys: Vec<Key<'r>> = Vec::new();
    for (point, resource) in points.iter().flat_map(|p| p.resources.iter().map(move |r| (p, r))) {
        let key = (resource.name.as_str(), resource.source.as_deref());
        if !keys.contains(&key) && !stands_already(point, resource) {
            keys.push(key);
        }
    }
    keys
}

/// Another agent on the same host has reported it already. An agent's process is its own.
fn stands_already(point: &PointResult, resource: &ResourceUse) -> bool {
    let of = |agent: &&AgentResult| resource.source.as_ref() == Some(&agent.name);
    let Some(own) = point.agents.iter().find(of) else { return false };
    let first = point.agents.iter().find(|agent| agent.host == own.host);
    !resource.name.starts_with("process.") && first.is_some_and(|first| first.name != own.name)
}

/// A resource of a load point.
pub(crate) fn find<'p>(point: &'p PointResult, (name, source): Key<'_>) -> Option<&'p ResourceUse> {
    point.resources.iter().find(|r| r.name == name && r.source.as_deref() == source)
}

fn unit<'a>(uses: impl Iterator<Item = &'a ResourceUse> + Clone) -> ResourceUnit {
    let largest = uses.clone().map(|r| r.max.abs()).fold(0.0, f64::max);
    ResourceUnit::for_largest(uses.into_iter().next().map_or("", |r| &r.unit), largest)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::limit::LimitSpan;

    use super::*;

    fn limit(kind: LimitKind, location: &str) -> Limit {
        Limit { kind, place: Some(location.to_owned()), ..Limit::default() }
    }

    #[test]
    fn the_line_of_a_run_tells_what_held_it_back_from_which_load_on() {
        let mut run = RunResult { points: vec![PointResult::default(); 2], ..RunResult::default() };
        run.axis.unit = "clients".to_owned();
        assert_eq!(limit_line(&run), "not saturated");
        let spans = [(4.0, limit(LimitKind::Core, "core 1")), (56.0, Limit::default())];
        run.summary.limits = spans.map(|(from, limit)| LimitSpan { from, limit }).into();
        assert_eq!(limit_line(&run), "core 1 from 4 clients on, then unknown from 56 clients on");
        run.points.truncate(1);
        run.summary.limits.truncate(1);
        assert_eq!(limit_line(&run), "core 1");
    }

    #[test]
    fn a_host_that_two_agents_tell_of_has_its_rows_once() {
        let agent = |name: &str, host: &str| AgentResult {
            name: name.to_owned(),
            host: host.to_owned(),
            ..AgentResult::default()
        };
        let resource = |name: &str, source: &str| ResourceUse {
            source: Some(source.to_owned()),
            ..ResourceUse::of_window(name, "ratio", 0.5, 0.5)
        };
        let names = ["host.cpu_busy", "cpu.0.busy", "process.generator.cpu"];
        let of = |source: &'static str| names.map(|name| resource(name, source));
        let point = PointResult {
            agents: vec![agent("a", "h"), agent("a#2", "h"), agent("b", "i")],
            resources: [of("a"), of("a#2"), of("b")].concat(),
            ..PointResult::default()
        };
        let all = keys(&[&point, &point]);
        let by = |source: &str| all.iter().filter(|(_, of)| *of == Some(source)).count();
        assert_eq!([by("a"), by("a#2"), by("b")], [3, 1, 3], "{all:?}");
    }

    #[test]
    fn a_limit_is_called_by_its_kind_and_place() {
        assert_eq!(limit_name(&limit(LimitKind::Core, "core 1")), "core 1");
        assert_eq!(limit_name(&limit(LimitKind::Core, "one core")), "one core");
        assert_eq!(limit_name(&limit(LimitKind::Quota, "")), "CPU quota");
        let also = vec![limit(LimitKind::Network, "veth0")];
        let two = Limit { also, ..limit(LimitKind::Disk, "vda") };
        assert_eq!(limit_name(&two), "disk: vda and network: veth0");
        assert_eq!(limit_name(&Limit::default()), "unknown");
        let none = Limit { kind: LimitKind::None, ..Limit::default() };
        assert_eq!(limit_name(&none), "not saturated");
    }
}
