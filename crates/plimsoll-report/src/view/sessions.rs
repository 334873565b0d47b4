//! Sessions that clients opened one after the other and kept.

use plimsoll_model::result::RunResult;
use plimsoll_model::sessions::Sessions;

use crate::table::{Rows, Table};
use crate::text::{ABSENT, TimeUnit, count};

/// How many there were at each load point.
pub(super) fn sessions_table(run: &RunResult) -> Table {
    Rows::new("Sessions held", session_points(run))
        .figures("point", "", |(position, _)| *position)
        .figures("asked for", "", |(_, it)| count(Some(u64::from(it.asked))))
        .figures("opened", "", |(_, it)| count(Some(it.opened)))
        .figures("held at the end", "", |(_, it)| count(Some(it.held)))
        .figures("clients lost", "", |(_, it)| count(Some(u64::from(it.lost))))
        .text("errors", |(_, it)| errors(it))
        .table()
}

/// Time to open a session, by the number of open sessions.
pub(super) fn steps_table(run: &RunResult) -> Table {
    let steps = session_points(run)
        .flat_map(|(position, sessions)| sessions.steps.iter().map(move |step| (position, step)));
    let unit = TimeUnit::for_largest(steps.clone().map(|(_, it)| it.p50_ns).fold(1e6, f64::max));
    Rows::new("Opening a session, by the number of sessions opened before", steps)
        .figures("point", "", |(position, _)| *position)
        .figures("opened before", "", |(_, step)| count(Some(step.from)))
        .figures("opened in the step", "", |(_, step)| count(Some(step.to - step.from)))
        .figures("time to open p50", unit.name(), |(_, step)| unit.text(Some(step.p50_ns)))
        .figures("p99", unit.name(), |(_, step)| unit.text(Some(step.p99_ns)))
        .figures("max", unit.name(), |(_, step)| unit.text(Some(step.max_ns)))
        .table()
}

fn session_points(run: &RunResult) -> impl Iterator<Item = (u32, &Sessions)> + Clone {
    run.points.iter().filter_map(|point| Some((point.position, point.sessions.as_ref()?)))
}

fn errors(sessions: &Sessions) -> String {
    let some = sessions.errors.iter().filter(|(_, n)| **n > 0);
    let texts: Vec<String> = some.map(|(class, n)| format!("{class} {n}")).collect();
    if texts.is_empty() { ABSENT.to_owned() } else { texts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::result::PointResult;
    use plimsoll_model::sessions::SessionStep;

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
