//! Each disk of a server or a database, with what it is for.

use plimsoll_model::result::{PointResult, RunResult};

use super::THIS_HOST;
use crate::table::{Rows, Table};
use crate::text::{ResourceUnit, number, three_digits};

/// Of the load point where most was done; `None` where no role is known.
pub(super) fn disk_table(run: &RunResult) -> Option<Table> {
    let has_roles = |point: &&PointResult| point.disks.iter().any(|it| it.role.is_some());
    let rate = |point: &PointResult| point.achieved_ops_per_s.unwrap_or_default();
    let points = run.points.iter().filter(has_roles);
    let point = points.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let largest = point.disks.iter().filter_map(|it| it.bytes_per_s).fold(0.0, f64::max);
    let bytes = ResourceUnit::for_largest("bytes/s", largest);
    let load = format!("{} {}", number(Some(point.requested)), run.axis.unit);
    let caption = format!(
        "Disks by role, where most was done ({load}). Over mean is 1 if the disks of a role are \
         used evenly; a transfer's time includes its wait."
    );
    let table = Rows::new(caption, &point.disks)
        .text("role", |it| it.role.map_or("not known", |role| role.as_str()))
        .text("disk", |it| it.disk.clone())
        .text("host", |it| it.source.as_deref().unwrap_or(THIS_HOST).to_owned())
        .figures("busy", "%", |it| it.busy_ratio.map(|busy| three_digits(busy * 100.0)))
        .figures("over mean", "", |it| it.busy_over_mean.map(three_digits))
        .figures("transfers", "1/s", |it| it.transfers_per_s.map(three_digits))
        .figures("bytes", &bytes.name, |it| it.bytes_per_s.map(|all| bytes.text(all)))
        .figures("time per transfer", "ms", |it| it.transfer_s.map(|s| three_digits(s * 1e3)));
    Some(table.table().without_empty_columns())
}
