//! What the factors of an experiment do: sentences, a table of the combinations, one of the effects.

mod words;

use plimsoll_model::comparison::experiment::{
    Basis, Cell, Effect, EffectClaim, Experiment, Missing, Setting,
};
use plimsoll_model::comparison::{Comparison, GroupFigure};
use plimsoll_model::units::whole_percent;
use serde::Serialize;

use super::ratios;
use crate::table::{Mark, Table, figures, words as texts};
use crate::text::ABSENT;

pub(crate) use words::{cell as cell_name, level as level_name};

const NOTE: &str = "Means are geometric; those of a combination are as they would be over all \
    repeats. Effects are ratios to the first level of the factor. In brackets the 95 % interval: \
    where it leaves 1 out the level makes a difference, where it holds 1 the effect is no larger \
    than its ends. Detectable is the difference that four of five such experiments would have \
    shown. Repeats that were slow or fast as a whole widen no interval.";

/// What the pairs of combinations are called, where they are folded.
pub(crate) const PAIRS: &str = "Each combination compared with the first, at each load point";
const HAND_NOTE: &str = "These intervals know the scatter of runs alone. What a person sets differs \
    by more from one setting to the next: the effects above are judged by that.";

/// An experiment in order of reading.
#[derive(Debug, Serialize)]
pub(crate) struct ExperimentView {
    pub(crate) sentences: Vec<String>,
    /// A combination with what became of its repeats.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) cells: Table,
    pub(crate) effects: Table,
    pub(crate) note: &'static str,
    /// What a reader of the pairs of combinations must know; may be empty.
    pub(crate) pairs_note: &'static str,
}

impl ExperimentView {
    pub(crate) fn new(comparison: &Comparison, it: &Experiment) -> Self {
        let mut sentences: Vec<String> = words::response(it).into_iter().collect();
        sentences.extend(words::effects(it));
        sentences.extend(words::interaction(it));
        sentences.extend(it.laws.iter().filter_map(|law| words::law(it, law)));
        // Of two combinations the effect says it.
        sentences.extend(words::best(it).filter(|_| it.cells.len() > 2));
        Self {
            sentences,
            missing: missing(it),
            cells: cells_table(comparison, it),
            effects: effects_table(it),
            note: NOTE,
            pairs_note: if is_made_by_hand(it) { HAND_NOTE } else { "" },
        }
    }
}

/// Some level was set once for all its runs.
pub(crate) fn is_set_once(it: &Experiment) -> bool {
    it.factors.iter().any(|factor| factor.set == Setting::Once)
}

fn is_made_by_hand(it: &Experiment) -> bool {
    it.factors.iter().any(|factor| factor.set != Setting::ByProgram)
}

/// `3 repeats of 4 combinations`.
pub(crate) fn repeats(it: &Experiment) -> String {
    match it.blocks {
        1 => format!("one run of each of {} combinations", it.cells.len()),
        blocks => format!("{blocks} repeats of {} combinations", it.cells.len()),
    }
}

/// What was changed: `processors and raid`.
pub(crate) fn factors(it: &Experiment) -> String {
    let names: Vec<&str> = it.factors.iter().map(|factor| factor.name.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn missing(it: &Experiment) -> Vec<(String, String)> {
    let of_cell = |cell: &Cell| {
        let name = cell_name(it, &cell.levels);
        let text = |missing: &Missing| (name.clone(), words::missing(missing));
        cell.missing.iter().map(text).collect::<Vec<_>>()
    };
    it.cells.iter().flat_map(of_cell).collect()
}

fn cells_table(comparison: &Comparison, it: &Experiment) -> Table {
    let mut columns: Vec<_> = it.factors.iter().map(|factor| texts(&factor.name)).collect();
    columns.extend([
        figures(ratios::name(it.response.figure), ""),
        figures("interval", ""),
        figures("to the first", ""),
        figures("runs", ""),
    ]);
    let place =
        it.response.load.map(|load| format!(" at {}", plimsoll_model::units::grouped(load)));
    let mut table =
        Table::new(format!("Combinations of levels{}", place.unwrap_or_default()), columns);
    for cell in &it.cells {
        let levels = it.factors.iter().zip(&cell.levels);
        let mut row: Vec<String> = levels
            .map(|(factor, at)| {
                let name = factor.levels.get(*at).map_or(ABSENT, |level| level.name.as_str());
                factor.unit.as_ref().map_or(name.to_owned(), |unit| format!("{name} {unit}"))
            })
            .collect();
        let value = |mean: f64, at_least: bool| {
            let group = GroupFigure { mean: Some(mean), at_least, ..GroupFigure::default() };
            ratios::value(comparison, it.response.figure, &group)
        };
        let absent = || ABSENT.to_owned();
        let ends = cell.interval.map(|ends| ends.map(|end| value(end, false)));
        row.extend([
            cell.mean.map_or_else(absent, |mean| value(mean, cell.at_least)),
            ends.map_or_else(absent, |[low, high]| format!("{low}–{high}")),
            cell.ratio.map_or_else(absent, |ratio| format!("× {}", ratios::times(ratio, 2.0))),
            match cell.missing.len() {
                0 => cell.runs.to_string(),
                missing => format!("{}, {missing} missing", cell.runs),
            },
        ]);
        let mark = if cell.mean.is_some() { Mark::Sound } else { Mark::Invalid };
        table.push_marked(row, mark);
    }
    table.without_empty_columns()
}

fn effects_table(it: &Experiment) -> Table {
    let columns = vec![
        texts("factor"),
        texts("level"),
        texts("against"),
        texts("with"),
        figures("ratio", ""),
        figures("detectable", ""),
        figures("efficiency", ""),
        texts("rests on"),
    ];
    let mut table = Table::new("Effects of the levels", columns);
    for effect in &it.effects {
        let Some(factor) = it.factors.get(effect.factor) else { continue };
        let name = |at: usize| factor.levels.get(at).map_or(ABSENT, |level| level.name.as_str());
        let held = words::held(it, &effect.at);
        let cells = vec![
            factor.name.clone(),
            name(effect.to).to_owned(),
            name(effect.from).to_owned(),
            match (held.is_empty(), it.factors.len()) {
                (false, _) => held,
                (true, 1) => ABSENT.to_owned(),
                (true, _) => "the mean of all".to_owned(),
            },
            ratio(effect),
            effect.detectable.map_or(ABSENT.to_owned(), |it| words::percent(it - 1.0)),
            effect.efficiency.map_or(ABSENT.to_owned(), whole_percent),
            basis(effect.basis).to_owned(),
        ];
        table.push(cells);
    }
    table.without_empty_columns()
}

fn ratio(effect: &Effect) -> String {
    let Some(ratio) = effect.ratio else { return ABSENT.to_owned() };
    let text = format!("× {}", ratios::times(ratio, effect.interval.map_or(2.0, |[a, b]| b / a)));
    match (effect.claim, effect.interval) {
        (EffectClaim::AtLeast, _) => format!("at least {text}"),
        (EffectClaim::AtMost, _) => format!("at most {text}"),
        (EffectClaim::Open, _) => ABSENT.to_owned(),
        (_, Some(interval)) => format!("{text} ({})", words::range(interval)),
        (_, None) => text,
    }
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Residual => "scatter of runs",
        Basis::BetweenBlocks => "scatter of settings made by hand",
        Basis::Both => "scatter of settings made by hand and of runs",
        Basis::SetOnce => "no interval: set once",
        Basis::TooFewRuns => "no interval: too few runs",
        Basis::Bound => "a bound",
    }
}

#[cfg(test)]
mod tests;
