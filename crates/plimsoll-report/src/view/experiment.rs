//! What the factors of an experiment do: sentences, a table of the combinations, one of the
//! effects.

mod wording;

use plimsoll_model::comparison::experiment::{
    Basis, Cell, Effect, EffectClaim, Experiment, Factor, Missing, Setting,
};
use plimsoll_model::comparison::{Comparison, GroupFigure};
use plimsoll_model::units::{grouped, whole_percent};
use serde::Serialize;

use super::ratios;
use crate::table::{Mark, Rows, Table};
use crate::text::ABSENT;

pub(crate) use wording::{cell as cell_name, level as level_name};

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
    /// A combination with the outcomes of its repeats.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) cells: Table,
    pub(crate) effects: Table,
    pub(crate) note: &'static str,
    /// What a reader of the pairs of combinations must know; may be empty.
    pub(crate) pairs_note: &'static str,
}

impl ExperimentView {
    pub(crate) fn new(comparison: &Comparison, it: &Experiment) -> Self {
        let mut sentences: Vec<String> = wording::combinations_missing(it).into_iter().collect();
        sentences.extend(wording::response(comparison, it));
        sentences.extend(wording::effects(it));
        sentences.extend(wording::interaction(it));
        sentences.extend(it.laws.iter().filter_map(|law| wording::law(it, law)));
        // For two combinations the effect is enough.
        sentences.extend(wording::best(it).filter(|_| it.cells.len() > 2));
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
        let text = |missing: &Missing| (name.clone(), wording::missing(missing));
        cell.missing.iter().map(text).collect::<Vec<_>>()
    };
    it.cells.iter().flat_map(of_cell).collect()
}

fn cells_table(comparison: &Comparison, it: &Experiment) -> Table {
    let at_load = it.response.load.map(|load| format!(" at {}", grouped(load)));
    let caption = format!("Combinations of levels{}", at_load.unwrap_or_default());
    let figure = it.response.figure;
    let value = |mean: f64, at_least: bool| {
        let group = GroupFigure { mean: Some(mean), at_least, ..GroupFigure::default() };
        ratios::value(comparison, figure, &group)
    };
    let begin = Rows::new(caption, &it.cells).marked(|cell| match cell.mean {
        Some(_) => Mark::Sound,
        None => Mark::Invalid,
    });
    let all = it.factors.iter().enumerate().fold(begin, |rows, (number, factor)| {
        rows.text(&factor.name, |cell| {
            let level = cell.levels.get(number).and_then(|at| factor.levels.get(*at));
            let name = level.map_or(ABSENT, |level| level.name.as_str());
            factor.unit.as_ref().map_or(name.to_owned(), |unit| format!("{name} {unit}"))
        })
    });
    all.figures(ratios::name(figure), "", |cell| cell.mean.map(|mean| value(mean, cell.at_least)))
        .figures("interval", "", |cell| {
            let [low, high] = cell.interval?.map(|end| value(end, false));
            Some(format!("{low}–{high}"))
        })
        .figures("to the first", "", |cell| {
            cell.ratio.map(|ratio| format!("× {}", ratios::times(ratio, 2.0)))
        })
        .figures("runs", "", |cell| match cell.missing.len() {
            0 => cell.runs.to_string(),
            missing => format!("{}, {missing} missing", cell.runs),
        })
        .table()
        .without_empty_columns()
}

fn effects_table(it: &Experiment) -> Table {
    let effects = it.effects.iter();
    let effects = effects.filter_map(|effect| Some((effect, it.factors.get(effect.factor)?)));
    let name = |factor: &Factor, at: usize| factor.levels.get(at).map(|level| level.name.clone());
    Rows::new("Effects of the levels", effects)
        .text("factor", |(_, factor)| factor.name.clone())
        .text("level", |(effect, factor)| name(factor, effect.to))
        .text("against", |(effect, factor)| name(factor, effect.from))
        .text("with", |(effect, _)| {
            let fixed = wording::fixed_levels(it, &effect.at);
            match (fixed.is_empty(), effect.over.is_empty(), it.factors.len()) {
                (false, ..) => Some(fixed),
                (true, false, _) => Some(wording::averaged_levels(it, effect)),
                (true, true, 1) => None,
                (true, true, _) => Some("the mean of all".to_owned()),
            }
        })
        .figures("ratio", "", |(effect, _)| ratio(effect))
        .figures("detectable", "", |(effect, _)| {
            effect.detectable.map(|ratio| wording::percent(ratio - 1.0))
        })
        .figures("efficiency", "", |(effect, _)| effect.efficiency.map(whole_percent))
        .text("rests on", |(effect, _)| basis(effect.basis))
        .table()
        .without_empty_columns()
}

fn ratio(effect: &Effect) -> String {
    let Some(ratio) = effect.ratio else { return ABSENT.to_owned() };
    let text = format!("× {}", ratios::times(ratio, effect.interval.map_or(2.0, |[a, b]| b / a)));
    match (effect.claim, effect.interval) {
        (EffectClaim::AtLeast, _) => format!("at least {text}"),
        (EffectClaim::AtMost, _) => format!("at most {text}"),
        (EffectClaim::Open, _) => ABSENT.to_owned(),
        (_, Some(interval)) => format!("{text} ({})", wording::range(interval)),
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
