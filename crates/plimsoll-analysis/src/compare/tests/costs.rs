use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};

use super::*;

/// Runs that differ only in the CPU time of an op at each load, in microseconds.
fn costing(label: &str, of: CostOf, cpu_us: &[[f64; 2]]) -> GroupInput {
    let run = |cpu_us: &[f64; 2]| {
        let mut run = run(1_000_000);
        for (point, us) in run.result.points.iter_mut().zip(cpu_us) {
            let cost = |value| Cost { value, interval: None };
            let figures = [
                (CostFigure::CpuPerOp, cost(us * 1e3)),
                (CostFigure::ContextSwitchesPerOp, cost(2.0 + us % 0.7)),
            ];
            let (disks, interfaces, figures) = (Vec::new(), Vec::new(), figures.into());
            point.cost =
                vec![HostCost { source: None, of, cores: None, disks, interfaces, figures }];
        }
        run
    };
    GroupInput { label: label.to_owned(), is_named: false, runs: cpu_us.iter().map(run).collect() }
}

const BEFORE: [[f64; 2]; 5] =
    [[50.1, 40.0], [50.0, 40.2], [49.8, 40.1], [50.2, 39.9], [49.9, 40.1]];
const AFTER: [[f64; 2]; 5] = [[50.0, 36.5], [50.1, 36.4], [49.9, 36.3], [49.8, 36.6], [50.2, 36.4]];

const CPU: RatioFigure = RatioFigure::Cost(CostFigure::CpuPerOp);

fn before() -> GroupInput {
    costing("before", CostOf::ServerProcesses, &BEFORE)
}

#[test]
fn costs_are_compared_load_by_load_and_claimed_apart_from_speed() {
    let comparison = compared(&[before(), costing("after", CostOf::ServerProcesses, &AFTER)]);
    assert_eq!(comparison.load_of_costs(), Some(2_000.0), "where most was done");
    let [low, high] = row(&comparison, CPU, Some(2_000.0)).ratios[0].interval.unwrap();
    assert!(low > 0.89 && high < 0.93, "{low} to {high}");
    assert_eq!(row(&comparison, CPU, Some(2_000.0)).ratios[0].claim, Claim::Differs);
    assert_eq!(row(&comparison, CPU, Some(1_000.0)).ratios[0].claim, Claim::NotDetectable);
    let speed = comparison.figures.iter().filter(|row| !row.figure.is_cost());
    assert!(speed.flat_map(|row| &row.ratios).all(|it| it.claim != Claim::Differs));
}

#[test]
fn costs_take_nothing_of_what_the_times_share() {
    let [plain, costly] = [false, true].map(|costs| {
        let mut groups = [before(), before()];
        for run in groups.iter_mut().flat_map(|group| &mut group.runs).filter(|_| !costs) {
            run.result.points.iter_mut().for_each(|point| point.cost.clear());
        }
        compared(&groups)
    });
    let p99 = |comparison| row(comparison, RatioFigure::P99, Some(2_000.0)).ratios[0].clone();
    assert_eq!(p99(&plain), p99(&costly));
    assert!(costly.figures.len() > plain.figures.len());
}

#[test]
fn a_host_is_not_compared_with_the_processes_on_another() {
    let comparison = compared(&[before(), costing("after", CostOf::ServerHost, &AFTER)]);
    assert!(comparison.figures.iter().all(|row| !row.figure.is_cost()));
}

#[test]
fn conditions_on_costs_are_judged_at_the_worst_load_or_at_one() {
    let groups = [before(), costing("after", CostOf::ServerProcesses, &AFTER)];
    let evaluate = |expr: &str| {
        let gates = [expr.parse().unwrap()];
        let comparison =
            compare(&groups, CompareOptions { gates: &gates, ..CompareOptions::default() })
                .unwrap();
        (comparison.gates[0].state, comparison.gates[0].load)
    };
    assert_eq!(evaluate("cpu_per_op > 1.05x"), (GateState::Held, Some(1_000.0)));
    assert_eq!(evaluate("cpu_per_op@2000 < 0.95x"), (GateState::Failed, Some(2_000.0)));
    assert_eq!(evaluate("cpu_per_op < 0.95x"), (GateState::Failed, Some(2_000.0)));
    assert_eq!(evaluate("disk_busy > 2x"), (GateState::Unknown, None));
}
