//! Use of resources, one row each, so that a reader sees it grow with the load.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::result::{PointResult, RunResult};

use super::names::words_for;
use crate::table::{Table, figures, words};
use crate::text::{ABSENT, ResourceUnit, number};

/// What a resource without a source was read on.
pub(crate) const THIS_HOST: &str = "this host";

/// What tells one resource from the others: its name, and where it was read.
type Key<'r> = (&'r str, Option<&'r str>);

/// Mean and highest sample of each resource at each load point. What was zero all the time is left
/// out: the files have it.
pub(super) fn table(run: &RunResult) -> Table {
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
