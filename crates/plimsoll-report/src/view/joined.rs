//! Speed and cost in one sentence: *b, compared with a, is 12 % faster at 9 % less CPU per op;
//! disks 25 % busier.*

use plimsoll_model::comparison::{Claim, Comparison, FigureRow, Ratio, RatioFigure};
use plimsoll_model::cost::CostFigure;
use plimsoll_model::units::grouped;

use super::ratios::{percent_off, two_sided};

/// From here on a factor is plainer than a percentage.
const FACTOR_MIN: f64 = 2.0;
/// With too few runs, only a ratio further from 1 is worth mentioning.
const WORTH_SAYING_RATIO: f64 = 0.05;

/// `None` where no cost is known for both.
pub(crate) fn joined(comparison: &Comparison, index: usize) -> Option<String> {
    let load = comparison.load_of_costs()?;
    let at = |figure| {
        let mut rows = comparison.rows(RatioFigure::Cost(figure));
        let row = rows.find(|row| row.load == Some(load))?;
        row.ratios.get(index).filter(|it| it.ratio.is_some()).map(|it| (row, it))
    };
    let of_cpu = at(CostFigure::CpuPerOp).map(|(_, it)| it);
    let others = CostFigure::ALL.into_iter().filter(|figure| *figure != CostFigure::CpuPerOp);
    let others = others.filter_map(|figure| {
        let (row, it) = at(figure)?;
        worth_saying(it).then(|| changed(figure, row, index))?
    });
    let others: Vec<String> = others.collect();
    // Without a known peak, the highest rate of saturated servers.
    let is_speed =
        |row: &&FigureRow| row.figure.is_headline() || row.figure == RatioFigure::PeakOpsPerS;
    let speed = comparison.figures.iter().filter(is_speed);
    let headline = speed.clone().filter(|row| row.figure.is_headline());
    let speed = headline.chain(speed).find_map(|row| speed_text(row, index));
    let joins = of_cpu.is_some() && speed.is_some();
    if !joins && others.is_empty() && !of_cpu.is_some_and(worth_saying) {
        return None;
    }
    let cpu = of_cpu.and_then(cpu);
    let lead = [speed, cpu].into_iter().flatten().collect::<Vec<_>>().join(" at ");
    let parts: Vec<String> =
        [lead, others.join(", ")].into_iter().filter(|part| !part.is_empty()).collect();
    let [first, other] = [0, index + 1].map(|group| comparison.groups[group].name());
    let unit = match comparison.axis.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let few = comparison.figures.iter().filter(|row| row.figure.is_cost());
    let few = few.filter_map(|row| row.ratios.get(index)).any(|it| it.claim == Claim::TooFewRuns);
    let unclaimed = if few { "; too few runs for a claim" } else { "" };
    Some(format!(
        "{other} compared with {first}: {}. (Costs at {}{unit}, the load of the peak{unclaimed}.)",
        parts.join("; "),
        grouped(load)
    ))
}

fn worth_saying(it: &Ratio) -> bool {
    let off = it.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    match it.claim {
        Claim::Differs => true,
        Claim::TooFewRuns => off >= WORTH_SAYING_RATIO,
        _ => false,
    }
}

fn speed_text(row: &FigureRow, index: usize) -> Option<String> {
    let it = row.ratios.get(index)?;
    let ratio = it.ratio?;
    let is_bound = row.groups[0].at_least || row.groups[index + 1].at_least;
    let least = if is_bound { "at least " } else { "" };
    let (more, less, factor) = match row.figure {
        RatioFigure::Score => ("higher score", "lower score", "times the score"),
        RatioFigure::Capacity => ("more capacity", "less capacity", "times the capacity"),
        _ => ("faster", "slower", "times as fast"),
    };
    Some(match it.claim {
        Claim::Differs | Claim::TooFewRuns => {
            format!("{least}{}", off(ratio, [more, less, factor]))
        }
        Claim::AtLeast => return None,
        _ => "no difference in speed seen".to_owned(),
    })
}

fn cpu(it: &Ratio) -> Option<String> {
    let ratio = it.ratio?;
    Some(match it.claim {
        Claim::Differs | Claim::TooFewRuns => {
            off(ratio, ["more CPU per op", "less CPU per op", "times the CPU per op"])
        }
        Claim::NotDetectable | Claim::MayBeChance => {
            let bounds = it.interval.map(two_sided).unwrap_or_default();
            format!("no detectable difference in CPU per op{bounds}")
        }
        _ => return None,
    })
}

/// The text for a figure that differs between the two.
fn changed(figure: CostFigure, row: &FigureRow, index: usize) -> Option<String> {
    let ratio = row.ratios.get(index)?.ratio?;
    let [before, after] = [0, index + 1].map(|group| row.groups.get(group)?.mean);
    let shares = || {
        let percent = |ratio: f64| format!("{:.0}\u{a0}%", ratio * 100.0);
        before.zip(after).map(|(before, after)| [percent(before), percent(after)])
    };
    Some(match figure {
        CostFigure::CpuBusy => {
            let [before, after] = shares()?;
            format!("processors {after} busy instead of {before}")
        }
        CostFigure::SystemShare => {
            let [before, after] = shares()?;
            format!("{after} of the CPU time in the kernel instead of {before}")
        }
        CostFigure::DiskBusy
        | CostFigure::DataDisksBusy
        | CostFigure::LogDisksBusy
        | CostFigure::DatabaseDisksBusy => {
            let disks = super::cost::cost_name(figure).trim_end_matches(" busy");
            format!("{disks} {}", off(ratio, ["busier", "less busy", "times as busy"]))
        }
        CostFigure::CpuPerOp => return None,
        CostFigure::ContextSwitchesPerOp
        | CostFigure::DiskTransfersPerOp
        | CostFigure::NicPacketsPerOp => {
            let name = super::cost::cost_name(figure);
            off(
                ratio,
                [&format!("more {name}"), &format!("fewer {name}"), &format!("times the {name}")],
            )
        }
        CostFigure::DiskBytesPerOp
        | CostFigure::NicBytesPerOp
        | CostFigure::Memory
        | CostFigure::PageCache => {
            let name = super::cost::cost_name(figure);
            off(
                ratio,
                [&format!("more {name}"), &format!("less {name}"), &format!("times the {name}")],
            )
        }
    })
}

/// `25 % busier`, `9 % less busy`, `twice as busy`, `2.3 times as busy`.
fn off(ratio: f64, [more, less, factor]: [&str; 3]) -> String {
    match ratio {
        ratio if ratio >= FACTOR_MIN => match format!("{ratio:.1}").as_str() {
            "2.0" => factor.replacen("times", "twice", 1),
            times => format!("{times} {factor}"),
        },
        ratio if ratio >= 1.0 => format!("{} % {more}", percent_off(ratio)),
        ratio => format!("{} % {less}", percent_off(ratio)),
    }
}

#[cfg(test)]
mod tests;
