//! Use of resources, one row each, so that a reader sees it grow with the load.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::result::RunResult;

use crate::table::{Table, figures, words};
use crate::text::{ABSENT, number, three_digits};

/// How the values of one row are written.
struct Scale {
    divisor: f64,
    unit: String,
}

/// Mean and highest sample of each resource at each load point.
pub(super) fn table(run: &RunResult) -> Table {
    let watched: Vec<_> = run.points.iter().filter(|p| !p.resources.is_empty()).collect();
    let mut columns = vec![words("resource"), words("unit")];
    columns.extend(watched.iter().map(|p| figures(&number(Some(p.requested)), &run.axis.unit)));
    let caption = "Use of resources at each requested load: mean, and highest sample in brackets";
    let mut table = Table::new(caption, columns);
    let mut names: Vec<&str> = Vec::new();
    for resource in watched.iter().flat_map(|p| &p.resources) {
        if !names.contains(&resource.name.as_str()) {
            names.push(&resource.name);
        }
    }
    for name in names {
        let uses: Vec<Option<&ResourceUse>> =
            watched.iter().map(|p| p.resources.iter().find(|r| r.name == name)).collect();
        let scale = scale(uses.iter().copied().flatten());
        let mut row = vec![name.to_owned(), scale.unit.clone()];
        row.extend(uses.into_iter().map(|found| cell(found, &scale)));
        table.push(row);
    }
    table
}

fn cell(found: Option<&ResourceUse>, scale: &Scale) -> String {
    found.map_or_else(
        || ABSENT.to_owned(),
        |r| {
            let [mean, max] = [r.mean, r.max].map(|v| three_digits(v / scale.divisor));
            format!("{mean} ({max})")
        },
    )
}

fn scale<'a>(uses: impl Iterator<Item = &'a ResourceUse> + Clone) -> Scale {
    let largest = uses.clone().map(|r| r.max.abs()).fold(0.0, f64::max);
    let unit = uses.into_iter().next().map_or("", |r| r.unit.as_str());
    match unit {
        "ratio" => Scale { divisor: 0.01, unit: "%".to_owned() },
        "bytes" => binary(largest, ""),
        "bytes/s" => binary(largest, "/s"),
        "s" if largest < 1.0 => Scale { divisor: 1e-3, unit: "ms".to_owned() },
        "" => Scale { divisor: 1.0, unit: "count".to_owned() },
        other => Scale { divisor: 1.0, unit: other.to_owned() },
    }
}

fn binary(largest: f64, per: &str) -> Scale {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len() as i32 - 1).find(|p| largest < 1000.0 * 1024f64.powi(*p));
    let power = power.unwrap_or(units.len() as i32 - 1);
    Scale { divisor: 1024f64.powi(power), unit: format!("{}{per}", units[power as usize]) }
}
