//! What becomes of conditions on ratios: judged on the interval, as those of runs are.

use plimsoll_model::comparison::{Comparison, FigureRow, RatioGate, RatioGateResult};
use plimsoll_model::condition::Side;
use plimsoll_model::gate::GateState;

use super::Wishes;
use super::figures::interval_of_shared;

/// Each condition for each group after the first.
pub(super) fn judge(comparison: &Comparison, wishes: Wishes<'_>) -> Vec<RatioGateResult> {
    let others = 1..comparison.groups.len();
    let of = |index| wishes.gates.iter().map(move |gate| (index, gate));
    others
        .flat_map(of)
        .map(|(index, gate)| judge_one(comparison, gate, index, wishes.unsure_fails))
        .collect()
}

fn judge_one(
    comparison: &Comparison,
    gate: &RatioGate,
    index: usize,
    unsure_fails: bool,
) -> RatioGateResult {
    let wanted = |row: &&FigureRow| gate.at.is_none_or(|load| row.load == Some(load));
    let rows: Vec<&FigureRow> = comparison.rows(gate.figure).filter(wanted).collect();
    let known = rows.iter().filter(|row| row.ratios[index - 1].interval.is_some()).count();
    // The worst of several load points is chosen by looking: they share the 5 %.
    let interval = |row: &FigureRow| match known {
        0 | 1 => row.ratios[index - 1].interval,
        loads => interval_of_shared(row, index, comparison.paired, loads),
    };
    let judged = rows
        .into_iter()
        .filter_map(|row| Judged::of(row, interval(row), gate, index))
        .reduce(|worst, next| if next.is_worse_than(&worst, gate.side) { next } else { worst });
    let state = judged.as_ref().map_or(GateState::Unknown, |judged| judged.state);
    RatioGateResult {
        expr: gate.clone(),
        group: comparison.groups[index].label.clone(),
        state,
        fails: state.fails(unsure_fails),
        ratio: judged.as_ref().map(|judged| judged.ratio),
        interval: judged.as_ref().and_then(|judged| judged.interval),
        load: judged.and_then(|judged| judged.load),
    }
}

/// A row held against a condition.
struct Judged {
    state: GateState,
    ratio: f64,
    /// What it was judged by.
    interval: Option<[f64; 2]>,
    load: Option<f64>,
}

impl Judged {
    fn of(
        row: &FigureRow,
        interval: Option<[f64; 2]>,
        gate: &RatioGate,
        index: usize,
    ) -> Option<Self> {
        let ratio = row.ratios.get(index - 1)?.ratio?;
        let sides = interval.map(|[low, high]| {
            // A server that would have carried more leaves one side open.
            let low = if row.groups[0].at_least { 0.0 } else { low };
            let high = if row.groups[index].at_least { f64::INFINITY } else { high };
            [low, high]
        });
        let state = GateState::of(sides.and_then(|sides| gate.side.holds(gate.limit, sides)));
        Some(Self { state, ratio, interval, load: row.load })
    }

    fn is_worse_than(&self, other: &Self, side: Side) -> bool {
        let rank = |state| match state {
            GateState::Failed => 2,
            GateState::Unsure | GateState::Unknown => 1,
            GateState::Held => 0,
        };
        let further = match side {
            Side::Above => self.ratio > other.ratio,
            Side::Below => self.ratio < other.ratio,
        };
        match rank(self.state).cmp(&rank(other.state)) {
            std::cmp::Ordering::Equal => further,
            order => order.is_gt(),
        }
    }
}
