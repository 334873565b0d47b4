//! What an op costs, in the page, the Markdown and the tables.

use plimsoll_model::cost::{Cost, CostFigure, CostOf, HostCost};
use plimsoll_model::disks::{DiskRole, DiskSet, DiskUse};
use plimsoll_model::result::RunResult;

use crate::fixture;

/// The simulated run with the cost of a server that shares its host: less CPU an op with load.
pub fn costed(seconds: u32) -> RunResult {
    let mut run = fixture::valid(seconds);
    for point in &mut run.points {
        point.data_set_bytes = Some(209_715_200);
        let cost = |value: f64| Cost { value, interval: Some([value * 0.98, value * 1.02]) };
        let host = |of, figures: &[(CostFigure, Cost)]| HostCost {
            source: None,
            of,
            cores: (of == CostOf::ServerProcesses).then_some(1.0),
            disks: if of == CostOf::SharedHost { vec!["vda".into()] } else { Vec::new() },
            interfaces: if of == CostOf::SharedHost { vec!["lo".into()] } else { Vec::new() },
            figures: figures.iter().copied().collect(),
        };
        let cpu = cost(31e3 - point.requested / 10.0);
        let switches = Cost { value: 1.3, interval: None };
        let memory = Cost { value: 52_428_800.0, interval: None };
        let processes = [
            (CostFigure::CpuPerOp, cpu),
            (CostFigure::ContextSwitchesPerOp, switches),
            (CostFigure::Memory, memory),
        ];
        let carried = [
            (CostFigure::DiskBytesPerOp, cost(4_096.0)),
            (CostFigure::NicBytesPerOp, cost(14_801.0)),
            (CostFigure::DiskBusy, Cost { value: 0.25, interval: None }),
        ];
        point.cost =
            vec![host(CostOf::ServerProcesses, &processes), host(CostOf::SharedHost, &carried)];
    }
    run
}

#[test]
fn the_page_draws_the_cost_over_load_and_says_whose_it_is() {
    let page = plimsoll_report::html(&costed(4)).unwrap();
    assert!(page.contains("<a href=\"#cost\">What an op costs</a>"), "in the contents");
    assert!(page.contains("CPU per op, µs") && page.contains("NIC bytes per op, KiB"), "drawn");
    assert!(page.contains("The server&#x27;s processes (this host)."), "said");
    assert!(page.contains("carried is that of both. Disks: vda. Interfaces: lo."), "named");
    let plain = plimsoll_report::html(&fixture::valid(4)).unwrap();
    assert!(!plain.contains("#cost"), "an old bundle has no costs");
}

#[test]
fn markdown_and_tables_hold_the_same_figures() {
    let run = costed(3);
    let text = plimsoll_report::markdown(&run);
    assert!(text.contains("## What an op costs"), "{text}");
    assert!(
        text.contains("| requested, ops/s | CPU per op, µs | context switches per op | memory, MiB | data set, MiB |"),
        "{text}"
    );
    let sheets = plimsoll_report::csv(&run);
    let sheet = |name: &str| &sheets.iter().find(|(it, _)| it == name).unwrap().1;
    let costs = sheet("costs.csv");
    assert!(
        costs.starts_with("kind,position,requested_ops_per_s,of,source,figure,value,low,high\n")
    );
    assert!(costs.contains(",shared_host,,disk_busy_ratio,0.25,,\n"), "{costs}");
    let points = sheet("points.csv");
    assert!(points.lines().next().unwrap().contains(",server_cpu_per_op_ns,"), "{points}");
}

#[test]
fn the_charts_are_files_too() {
    let names: Vec<String> =
        plimsoll_report::charts(&costed(3)).into_iter().map(|(name, _)| name).collect();
    for name in ["cost-processors.svg", "cost-disks-and-network.svg"] {
        assert!(names.iter().any(|it| it == name), "{names:?}");
    }
}

#[test]
fn disks_are_shown_by_role_with_how_evenly_they_are_used() {
    let mut run = costed(3);
    let disk = |name: &str, role, busy: f64| DiskUse {
        source: None,
        disk: name.to_owned(),
        role,
        busy_ratio: Some(busy),
        busy_over_mean: role.map(|_| busy / 0.5),
        transfers_per_s: Some(400.0),
        bytes_per_s: Some(4_194_304.0),
        transfer_s: Some(0.0025),
    };
    let data = Some(DiskRole::Data);
    let disks = vec![disk("sdb", data, 0.4), disk("sdc", data, 0.6), disk("vda", None, 0.1)];
    run.points.iter_mut().for_each(|point| point.disks.clone_from(&disks));
    let set = DiskSet {
        source: None,
        role: DiskRole::Data,
        disks: vec!["sdb".to_owned(), "sdc".to_owned()],
        basis: "/srv".to_owned(),
    };
    run.disclosure.as_mut().unwrap().disk_sets = vec![set];
    let text = plimsoll_report::markdown(&run).replace('\u{a0}', " ");
    for part in [
        "*Disks by role, where most was done (",
        "| data | sdc | this host | 60.0 | 1.20 | 400 | 4.00 | 2.50 |",
        "| not known | vda | this host | 10.0 | – |",
        "- data, this host: sdb, sdc (from /srv)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    run.points.iter_mut().for_each(|point| point.disks.retain(|it| it.role.is_none()));
    assert!(!plimsoll_report::markdown(&run).contains("*Disks by role"), "no role is known");
}
