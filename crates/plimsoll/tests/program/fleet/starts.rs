//! Agents of one machine start at one instant by its own clock, whatever their own clocks say.

use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::program::{CheckOutcome, Served, one_is_right, plimsoll, short};

use super::agents::{RunDir, finished, flags};

/// Seconds by which each agent's monotonic clock is ahead of this machine's.
const AGENTS: [(&str, i64); 4] = [("one", 0), ("two", 1_000), ("three", 0), ("four", 5)];
const NANOS: i64 = 1_000_000_000;
/// Largest distance of two starts.
const APART_NS_MAX: i64 = 1_000_000;

#[test]
fn agents_with_shifted_clocks_start_within_a_millisecond_and_know_their_offsets() {
    if require_peer("unshare").is_none() || require_root("a time namespace").is_none() {
        return;
    }
    let server = Served::with("web", &[]);
    let points = ["--points", "50,60,70,80", "--set", "load.mode=open"];
    one_is_right(2, || {
        let run_dir = RunDir::new();
        let bundle = run_dir.bundle();
        let agents = AGENTS.map(|(name, ahead_s)| run_dir.recorded(name, &shifted(ahead_s)));
        let more = [&points[..], &flags(&agents)].concat();
        let run = plimsoll(&short("web-url", &server.url, &bundle, &more));
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        let records = finished(&bundle);
        assert_eq!(records.len(), 4);
        let all_points = AGENTS.map(|(name, _)| run_dir.recorded_points(name));
        let mut far_apart = Vec::new();
        for (index, record) in records.iter().enumerate() {
            let mut starts = Vec::new();
            for (agent, ((_, ahead_s), own_points)) in AGENTS.iter().zip(&all_points).enumerate() {
                let clock = &record["agents"][agent]["clock"];
                let of = |name: &str| clock[name].as_i64().unwrap();
                let off = of("offset_ns") - ahead_s * NANOS;
                assert!(off.abs() <= of("bound_ns"), "agent {agent} of point {index}: {record}");
                starts.push(own_points[index].report.started_ns.cast_signed() - ahead_s * NANOS);
            }
            let apart = starts.iter().max().unwrap() - starts.iter().min().unwrap();
            if apart > APART_NS_MAX {
                far_apart.push(format!("point {index}: {apart} ns"));
            }
        }
        // A machine that is busy with other work answers late, and the bounds say so.
        match far_apart.is_empty() {
            true => CheckOutcome::Right,
            false => CheckOutcome::Disturbed(far_apart.join("; ")),
        }
    });
}

/// A command that runs an agent with its clock this far ahead.
fn shifted(ahead_s: i64) -> String {
    match ahead_s {
        0 => String::new(),
        _ => format!("unshare --time --monotonic {ahead_s} --boottime {ahead_s}"),
    }
}
