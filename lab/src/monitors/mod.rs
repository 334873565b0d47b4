//! `cargo lab monitors`: our monitors compared with sar, iostat and vmstat, under a bounded load.

mod load;
mod tools;

use std::fmt::Write as _;
use std::time::Duration;

use clap::Parser;
use plimsoll_model::event::ResourceUse;
use plimsoll_monitor::{ClockReading, Monitor, MonitorConfig};
use xtask::verb::Result;

use crate::page::Table;
use tools::Figure;

const TABLE: Table<'_> = Table { page: "docs/reports/monitors.md", name: "monitors" };
/// From the start of the load to the window.
const SETTLES: Duration = Duration::from_secs(2);
/// From when a window is given to its begin.
const AHEAD: Duration = Duration::from_millis(300);
/// Part of a figure by which two programs may differ.
const ALIKE: f64 = 0.02;

/// Options of `cargo lab monitors`.
#[derive(Parser)]
pub struct Options {
    /// Length of the comparison, at least 5.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..))]
    seconds: u64,
    /// Replace the table in docs/monitors.md.
    #[arg(long)]
    write: bool,
}

/// Runs them side by side and prints the table.
pub fn monitors(options: &Options) -> Result<()> {
    let Options { seconds, write } = *options;
    let (ours, theirs) = load::under_load(|| side_by_side(seconds))??;
    let compared: Vec<Compared> =
        theirs.iter().filter_map(|figure| Compared::from_figure(figure, &ours, seconds)).collect();
    let table = table(&compared);
    println!("{table}");
    if write {
        TABLE.write(&format!("Means over {seconds} s.\n\n{table}"))?;
    }
    match compared.iter().filter(|c| !c.is_alike()).count() {
        0 => Ok(()),
        off => {
            Err(format!("{off} of {} figures differ; is something else running?", compared.len()))
        }
    }
}

/// What our monitors and the others report for the same seconds.
fn side_by_side(seconds: u64) -> Result<(Vec<ResourceUse>, Vec<Figure>)> {
    let monitor = Monitor::start(MonitorConfig::default()).map_err(|e| e.to_string())?;
    std::thread::sleep(SETTLES);
    let now = Duration::from_nanos(ClockReading::now().unix_ns);
    let begin = now + AHEAD;
    monitor.point_started("point-01");
    let ns = |time: Duration| time.as_nanos() as u64;
    monitor.point_window(ns(begin), ns(begin + Duration::from_secs(seconds)));
    std::thread::sleep(AHEAD);
    let theirs = tools::watch(seconds)?;
    let ours = monitor.point_finished().resources;
    monitor.stop().map_err(|e| e.to_string())?;
    Ok((ours, theirs))
}

/// One figure of two programs.
struct Compared<'a> {
    figure: &'a Figure,
    ours: f64,
    /// Effect of one sample more or less on our mean.
    sample: f64,
}

impl<'a> Compared<'a> {
    /// `None` if there was nothing to count.
    fn from_figure(figure: &'a Figure, ours: &[ResourceUse], seconds: u64) -> Option<Self> {
        let matched = ours.iter().find(|resource| resource.name == figure.name);
        let (ours, max) = matched.map_or((0.0, 0.0), |resource| (resource.mean, resource.max));
        let is_active = ours > 0.0 || figure.value > 0.0;
        is_active.then_some(Self { figure, ours, sample: max / seconds as f64 })
    }

    fn difference(&self) -> f64 {
        (self.ours - self.figure.value).abs()
    }

    fn is_alike(&self) -> bool {
        // The last digit that the other program prints.
        let rounding = self.figure.step / 2.0;
        self.difference() <= (ALIKE * self.figure.value).max(self.sample) + rounding
    }
}

fn table(compared: &[Compared<'_>]) -> String {
    let mut text = String::from(
        "| figure | program | its value | Plimsoll | difference | one sample | |\n\
         | --- | --- | ---: | ---: | ---: | ---: | --- |",
    );
    for it in compared {
        let of = |value: f64| match it.figure.value {
            whole if whole > 0.0 => format!("{:.2} %", 100.0 * value / whole),
            _ => "-".to_owned(),
        };
        let _ = write!(
            text,
            "\n| `{}` | `{}` | {} | {} | {} | {} | {} |",
            it.figure.name,
            it.figure.tool,
            shown(it.figure.value),
            shown(it.ours),
            of(it.difference()),
            of(it.sample),
            if it.is_alike() { "agrees" } else { "differs" },
        );
    }
    text
}

fn shown(value: f64) -> String {
    match value {
        large if large >= 100.0 => format!("{large:.0}"),
        small => format!("{small:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ours: f64, max: f64, theirs: f64) -> bool {
        let figure = Figure { name: "n".into(), tool: "sar", value: theirs, step: 0.0 };
        let resource = ResourceUse {
            name: "n".into(),
            unit: String::new(),
            mean: ours,
            max,
            ..ResourceUse::default()
        };
        Compared::from_figure(&figure, &[resource], 10).unwrap().is_alike()
    }

    #[test]
    fn figures_agree_within_two_percent_or_one_sample() {
        assert!(verdict(101.0, 101.0, 100.0));
        assert!(verdict(109.0, 100.0, 100.0), "one of ten samples");
        assert!(!verdict(120.0, 100.0, 100.0));
        assert!(!verdict(0.0, 0.0, 100.0), "nothing seen");
    }
}
