//! What held each load point back, and the use of resources.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::limit::{Evidence, Limit, LimitKind};
use plimsoll_model::result::{PointResult, RunResult};

use super::names::words_for;
use crate::table::{Mark, Table, figures, words};
use crate::text::{ABSENT, ResourceUnit, load, number};

/// Kind and place of what held a load point back, with what held it back as much: `disk: vda and
/// network: eth0`. A point that was not held back is *not saturated*.
pub fn limit_name(limit: &Limit) -> String {
    let all: Vec<_> = std::iter::once(limit).chain(&limit.also).map(one_name).collect();
    all.join(" and ")
}

/// What held the run back, in the order of the ladder: `core 1 from 4 clients on, then disk: vda
/// from 32 clients on`. A run that nothing held back is *not saturated*.
pub fn limit_line(run: &RunResult) -> String {
    let told = run.summary.limits.iter().map(|span| match run.points.len() {
        1 => limit_name(&span.limit),
        _ => format!("{} from {} on", limit_name(&span.limit), load(span.from, &run.axis)),
    });
    let told: Vec<String> = told.collect();
    match (told.as_slice(), run.points.as_slice()) {
        ([], []) => limit_name(&Limit::default()),
        ([], _) => limit_name(&Limit { kind: LimitKind::None, ..Limit::default() }),
        _ => told.join(", then "),
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
    match limit.place.as_deref().filter(|place| !place.is_empty()) {
        // The place says the kind: `core 1`.
        Some(place) if place.split(' ').any(|word| word == kind) => place.to_owned(),
        Some(place) => format!("{kind}: {place}"),
        None => kind.to_owned(),
    }
}

/// Does the result say anything of limits? A curve from elsewhere does not.
pub(crate) fn has_limits(run: &RunResult) -> bool {
    run.suite.is_some() || run.points.iter().any(|p| p.limit != Limit::default())
}

/// The figures on which the points rest whose limit is a resource.
pub(super) fn evidence_table(run: &RunResult) -> Table {
    let mut table = Table::new(
        "The figures that say so, of load points that a resource held back",
        vec![
            figures("point", ""),
            words("load"),
            words("limit"),
            words("figure"),
            figures("value", ""),
            figures("ceiling", ""),
            figures("at the lowest load", ""),
        ],
    );
    for point in &run.points {
        let all = std::iter::once(&point.limit).chain(&point.limit.also);
        for limit in all.filter(|it| it.kind.is_resource() || !it.evidence.is_empty()) {
            for row in rows(run, point, limit) {
                table.push_marked(row, Mark::of(point));
            }
        }
    }
    table.without_empty_columns()
}

fn rows(run: &RunResult, point: &PointResult, limit: &Limit) -> Vec<Vec<String>> {
    let load = load(point.requested, &run.axis);
    let begin = [point.position.to_string(), load, one_name(limit)];
    let row = |figures: [String; 4]| begin.iter().cloned().chain(figures).collect();
    match limit.evidence.as_slice() {
        [] => vec![row([0; 4].map(|_| ABSENT.to_owned()))],
        all => all.iter().map(|evidence| row(evidence_cells(evidence))).collect(),
    }
}

fn evidence_cells(evidence: &Evidence) -> [String; 4] {
    let values = [Some(evidence.value), evidence.ceiling, evidence.low_load_value];
    let finite = values.into_iter().flatten().filter(|value| value.is_finite());
    let unit = ResourceUnit::for_largest(&evidence.unit, finite.fold(0.0, f64::max));
    let text = |value: Option<f64>| {
        value.map_or_else(|| ABSENT.to_owned(), |value| unit.named_text(value))
    };
    let [value, ceiling, low_load] = values.map(text);
    [words_for(&evidence.name), value, ceiling, low_load]
}

/// Each limit of the ladder with what is said of it: neighbours with the same stand together.
pub(super) fn texts(run: &RunResult) -> Vec<(String, String)> {
    if !has_limits(run) {
        return Vec::new();
    }
    let same = |a: &PointResult, b: &PointResult| said_of(&a.limit) == said_of(&b.limit);
    let groups = run.points.chunk_by(same);
    let said = groups.filter_map(|group| {
        let (first, last) = (group.first()?, group.last()?);
        let points = match group.len() {
            1 => format!("Point {}", first.position),
            _ => format!("Points {}–{}", first.position, last.position),
        };
        Some((points, said_of(&first.limit)))
    });
    said.collect()
}

/// What is said of a limit and of those beside it; their names where nothing is.
fn said_of(limit: &Limit) -> String {
    let said = limit.sentence();
    if said.is_empty() { limit_name(limit) } else { said }
}

/// What a resource without a source was read on.
pub(crate) const THIS_HOST: &str = "this host";

/// What tells one resource from the others: its name, and where it was read.
type Key<'r> = (&'r str, Option<&'r str>);

/// Mean and highest sample of each resource at each load point. What was zero all the time is left
/// out: the files have it.
pub(super) fn resource_table(run: &RunResult) -> Table {
    let watched: Vec<_> = run.points.iter().filter(|p| !p.resources.is_empty()).collect();
    let elsewhere = watched.iter().flat_map(|p| &p.resources).any(|r| r.source.is_some());
    let mut columns = vec![words("resource")];
    columns.extend(elsewhere.then(|| words("host")));
    columns.push(words("unit"));
    columns.extend(watched.iter().map(|p| figures(&number(Some(p.requested)), &run.axis.unit)));
    let mut table = Table::new(
        "Use of resources at each requested load: mean, and highest sample in brackets. What was \
         zero at every load is left out.",
        columns,
    );
    for key @ (name, source) in keys(&watched) {
        let uses: Vec<_> = watched.iter().map(|p| find(p, key)).collect();
        if uses.iter().flatten().all(|r| r.mean == 0.0 && r.max == 0.0) {
            continue;
        }
        let unit = unit(uses.iter().copied().flatten());
        let mut row = vec![words_for(name)];
        row.extend(elsewhere.then(|| source.unwrap_or(THIS_HOST).to_owned()));
        row.push(if unit.name.is_empty() { "count".to_owned() } else { unit.name.clone() });
        row.extend(uses.into_iter().map(|found| cell(found, &unit)));
        table.push(row);
    }
    table
}

/// In the order of their first mention.
fn keys<'r>(points: &[&'r PointResult]) -> Vec<Key<'r>> {
    let mut keys: Vec<Key<'r>> = Vec::new();
    for resource in points.iter().flat_map(|p| &p.resources) {
        let key = (resource.name.as_str(), resource.source.as_deref());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// A resource of a load point.
pub(crate) fn find<'p>(point: &'p PointResult, (name, source): Key<'_>) -> Option<&'p ResourceUse> {
    point.resources.iter().find(|r| r.name == name && r.source.as_deref() == source)
}

fn cell(found: Option<&ResourceUse>, unit: &ResourceUnit) -> String {
    found.map_or_else(
        || ABSENT.to_owned(),
        |r| format!("{} ({})", unit.text(r.mean), unit.text(r.max)),
    )
}

fn unit<'a>(uses: impl Iterator<Item = &'a ResourceUse> + Clone) -> ResourceUnit {
    let largest = uses.clone().map(|r| r.max.abs()).fold(0.0, f64::max);
    ResourceUnit::for_largest(uses.into_iter().next().map_or("", |r| &r.unit), largest)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::limit::LimitSpan;

    use super::*;

    fn limit(kind: LimitKind, place: &str) -> Limit {
        Limit { kind, place: Some(place.to_owned()), ..Limit::default() }
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
