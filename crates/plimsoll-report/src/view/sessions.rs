//! Sessions that clients opened one after the other and kept.

use plimsoll_model::result::RunResult;
use plimsoll_model::sessions::{SessionStep, Sessions};

use crate::table::{Table, figures, words};
use crate::text::{ABSENT, TimeUnit, count};

/// How many there were at each load point.
pub(super) fn sessions_table(run: &RunResult) -> Table {
    let columns = vec![
        figures("point", ""),
        figures("asked for", ""),
        figures("opened", ""),
        figures("held at the end", ""),
        figures("clients lost", ""),
        words("errors"),
    ];
    let mut table = Table::new("Sessions held", columns);
    for (position, sessions) in held(run) {
        table.push(vec![
            position.to_string(),
            count(Some(u64::from(sessions.asked))),
            count(Some(sessions.opened)),
            count(Some(sessions.held)),
            count(Some(u64::from(sessions.lost))),
            errors(sessions),
        ]);
    }
    table
}

/// What opening a session took, by the number of sessions there were.
pub(super) fn steps_table(run: &RunResult) -> Table {
    let steps = || held(run).flat_map(|(_, sessions)| &sessions.steps);
    let largest = steps().map(|step| step.p50_ns).fold(1e6, f64::max);
    let unit = TimeUnit::for_largest(largest);
    let columns = vec![
        figures("point", ""),
        figures("opened before", ""),
        figures("opened in the step", ""),
        figures("time to open p50", unit.name()),
        figures("p99", unit.name()),
        figures("max", unit.name()),
    ];
    let mut table =
        Table::new("Opening a session, by the number of sessions opened before", columns);
    for (position, sessions) in held(run) {
        for SessionStep { from, to, p50_ns, p99_ns, max_ns } in &sessions.steps {
            let times = [p50_ns, p99_ns, max_ns].map(|ns| unit.text(Some(*ns)));
            let mut row = vec![position.to_string(), count(Some(*from)), count(Some(to - from))];
            row.extend(times);
            table.push(row);
        }
    }
    table
}

fn held(run: &RunResult) -> impl Iterator<Item = (u32, &Sessions)> {
    run.points.iter().filter_map(|point| Some((point.position, point.sessions.as_ref()?)))
}

fn errors(sessions: &Sessions) -> String {
    let some = sessions.errors.iter().filter(|(_, n)| **n > 0);
    let texts: Vec<String> = some.map(|(class, n)| format!("{class} {n}")).collect();
    match texts.is_empty() {
        true => ABSENT.to_owned(),
        false => texts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::result::PointResult;

    #[test]
    fn a_run_of_held_sessions_has_a_line_for_each_point_and_each_step() {
        let step = |from, to| SessionStep { from, to, p50_ns: 2e6, p99_ns: 3e6, max_ns: 4e6 };
        let sessions = Sessions {
            asked: 20,
            opened: 18,
            held: 17,
            lost: 3,
            errors: [("transport".to_owned(), 2)].into(),
            steps: vec![step(0, 10), step(10, 18)],
        };
        let point = PointResult { position: 1, sessions: Some(sessions), ..Default::default() };
        let run = RunResult { points: vec![point, PointResult::default()], ..Default::default() };
        let table = sessions_table(&run);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(steps_table(&run).rows.len(), 2);
        let text = format!("{:?}", table.rows);
        assert!(text.contains("transport 2") && text.contains("17"), "{text}");
    }
}
