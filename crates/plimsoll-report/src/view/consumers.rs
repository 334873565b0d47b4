//! Where the processor time of each host went at a load point, and its interrupts.

use plimsoll_model::consumers::{Consumer, HostConsumers, InterruptKind};
use plimsoll_model::event::CoreUserKind;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::server_profile::ProfileScope;
use plimsoll_model::units::counted;
use serde::Serialize;

use super::headline::headline_point;
use super::limits::THIS_HOST;
use crate::table::{Rows, Table};
use crate::text::{count, load, number, percent, three_digits};

/// Below the tables.
pub(super) const NOTE: &str = "CPU time by the name of the processes, from one reading shortly \
     before the window and one at its end; the kernel counts in ticks, as a rule of 10 ms. Not \
     seen is the busy time that no process had which was there at the end: of processes that \
     began and ended in between, and of interrupts of an idle processor.";

/// The hosts of the point the headline speaks of, and those of the other points.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ConsumersView {
    pub(crate) shown: Vec<HostView>,
    pub(crate) folded: Vec<HostView>,
    pub(crate) note: &'static str,
}

/// A host at a load point.
#[derive(Debug, Serialize)]
pub(crate) struct HostView {
    pub(crate) title: String,
    pub(crate) consumers: Table,
    pub(crate) interrupts: Table,
}

pub(super) fn view(run: &RunResult) -> ConsumersView {
    let top = headline_point(run).or(run.points.last()).map(|point| point.position);
    let (shown, folded): (Vec<&PointResult>, Vec<&PointResult>) =
        run.points.iter().partition(|point| Some(point.position) == top);
    let hosts = |points: Vec<&PointResult>| points.iter().flat_map(|p| of_point(run, p)).collect();
    ConsumersView { shown: hosts(shown), folded: hosts(folded), note: NOTE }
}

/// The host of the server first.
fn of_point(run: &RunResult, point: &PointResult) -> Vec<HostView> {
    let is_server = |it: &Consumer| it.kind == CoreUserKind::Server;
    let mut hosts: Vec<&HostConsumers> = point.consumers.iter().collect();
    hosts.sort_by_key(|host| !host.consumers.iter().any(is_server));
    let title = |host: &HostConsumers| {
        let name = host.source.as_deref().unwrap_or(THIS_HOST);
        format!("Point {} · {} · {name}", point.position, load(point.requested, &run.axis))
    };
    let host = |host: &HostConsumers| HostView {
        title: title(host),
        consumers: consumers_table(host, title(host)),
        interrupts: interrupts_table(host, format!("Interrupts · {}", title(host))),
    };
    hosts.into_iter().map(host).collect()
}

fn consumers_table(host: &HostConsumers, title: String) -> Table {
    let capacity_s = host.seconds * f64::from(host.processors.max(1));
    let share = |seconds: f64| percent(Some(seconds / capacity_s));
    let mut caption = format!(
        "{title} · {}, {} busy: {} in soft interrupts, {} in hard ones",
        counted(host.processors as usize, "processor"),
        share(host.busy_s),
        share(host.softirq_s),
        share(host.irq_s),
    );
    if let Some(forks) = host.forks_per_s {
        caption =
            format!("{caption} · {} processes and threads started per s", three_digits(forks));
    }
    let others = Some(("all others".to_owned(), &host.others));
    let others = others.filter(|(_, others)| others.share_ratio > 0.0);
    let rows = host.consumers.iter().map(|it| (name_of(it), it)).chain(others);
    // The last row is what was not seen.
    Rows::new(caption, rows.map(Some).chain([None]))
        .text("consumer", |row| row.as_ref().map_or("not seen".to_owned(), |it| it.0.clone()))
        .figures("processes", "", |row| {
            let processes = row.as_ref()?.1.processes;
            (processes > 0).then(|| number(Some(f64::from(processes))))
        })
        .figures("user", "s", |row| Some(format!("{:.2}", row.as_ref()?.1.user_s)))
        .figures("system", "s", |row| Some(format!("{:.2}", row.as_ref()?.1.system_s)))
        .figures("share of the host", "%", |row| {
            let unaccounted = host.not_seen_s / capacity_s;
            let ratio = row.as_ref().map_or(unaccounted, |(_, it)| it.share_ratio);
            format!("{:.1}", 100.0 * ratio)
        })
        .table()
}

fn name_of(it: &Consumer) -> String {
    let whose = match it.kind {
        CoreUserKind::Own => " (load generator)",
        CoreUserKind::Server => " (server)",
        CoreUserKind::Kernel => " (kernel)",
        CoreUserKind::Other => "",
    };
    match it.ended {
        true => format!("{}{whose}: children that ended", it.name),
        false => format!("{}{whose}", it.name),
    }
}

fn interrupts_table(host: &HostConsumers, caption: String) -> Table {
    Rows::new(caption, &host.interrupts)
        .text("interrupt", |it| it.name.clone())
        .text("kind", |it| match it.kind {
            InterruptKind::Soft => "soft",
            InterruptKind::Hard => "hard",
        })
        .figures("per second", "", |it| three_digits(it.per_s))
        .figures("per op", "", |it| it.per_op.map(three_digits))
        .table()
        .without_empty_columns()
}

/// Text about a profile, and its functions.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ProfileView {
    pub(crate) note: String,
    pub(crate) functions: Table,
}

pub(super) fn profile(run: &RunResult) -> Option<ProfileView> {
    let profile = run.server_profile.as_ref()?;
    let what = match profile.scope {
        ProfileScope::Processes => "the server's processes",
        ProfileScope::Host => "everything",
    };
    let caption = format!(
        "{} · {what} on {}, {} s by {}: {} samples{}",
        load(profile.requested, &run.axis),
        profile.source.as_deref().unwrap_or(THIS_HOST),
        profile.seconds,
        profile.sampled_by,
        count(Some(profile.samples)),
        match profile.idle_samples {
            0 => String::new(),
            idle => format!(", and {} of idle processors", count(Some(idle))),
        },
    );
    let share = |ratio: f64| format!("{:.1}", 100.0 * ratio);
    let functions = Rows::new(caption, &profile.functions)
        .text("function", |it| it.name.clone())
        .text("module", |it| it.module.clone())
        .figures("itself", "%", |it| share(it.self_ratio))
        .figures("with what it calls", "%", |it| share(it.total_ratio))
        .table();
    let note = format!(
        "The profile was made at a load point of its own after all others ({} ops/s were done), \
         since perf takes time itself; no other figure contains it. {} has the folded stacks, from \
         which flame graphs are drawn. Shares are those of a sample: 10 % of 400 samples are 7 to 13 %. \
         Stacks of programs without frame pointers are short, and \
         names are missing where symbols are.",
        number(profile.achieved_ops_per_s),
        profile.file,
    );
    Some(ProfileView { note, functions })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::consumers::InterruptRate;
    use plimsoll_model::server_profile::{ProfiledFunction, ServerProfile};

    use super::*;

    fn consumer(name: &str, kind: CoreUserKind, share_ratio: f64) -> Consumer {
        let seconds = share_ratio * 60.0;
        let (name, processes, user_s) = (name.to_owned(), 2, seconds);
        Consumer { name, kind, processes, user_s, share_ratio, ..Consumer::default() }
    }

    #[test]
    fn a_profile_says_where_and_how_it_was_made() {
        let function = ProfiledFunction {
            name: "tcp_sendmsg".to_owned(),
            module: "kernel".to_owned(),
            self_ratio: 0.125,
            total_ratio: 0.5,
            ..ProfiledFunction::default()
        };
        let made = ServerProfile {
            requested: 500.0,
            file: "profile/point-04.folded".to_owned(),
            sampled_by: "cpu-clock".to_owned(),
            seconds: 10,
            samples: 812,
            functions: vec![function],
            ..ServerProfile::default()
        };
        let run = RunResult { server_profile: Some(made), ..RunResult::default() };
        let view = profile(&run).unwrap();
        assert!(view.functions.caption.contains("everything on this host, 10 s by cpu-clock"));
        assert_eq!(view.functions.rows[0].cells, ["tcp_sendmsg", "kernel", "12.5", "50.0"]);
        assert!(view.note.contains("profile/point-04.folded"), "{}", view.note);
    }

    #[test]
    fn the_servers_host_is_first_and_what_was_not_seen_is_last() {
        let cgi =
            Consumer { ended: true, processes: 0, ..consumer("sh", CoreUserKind::Other, 0.1) };
        let interrupt = InterruptRate {
            name: "NET_RX".to_owned(),
            kind: InterruptKind::Soft,
            count: 600,
            per_s: 20.0,
            per_op: None,
        };
        let there = HostConsumers {
            source: Some("ssh://db".to_owned()),
            seconds: 30.0,
            processors: 2,
            busy_s: 36.0,
            not_seen_s: 6.0,
            consumers: vec![consumer("nginx", CoreUserKind::Server, 0.4), cgi],
            interrupts: vec![interrupt],
            ..HostConsumers::default()
        };
        let here = HostConsumers { seconds: 30.0, processors: 1, ..HostConsumers::default() };
        let point = PointResult { position: 1, consumers: vec![here, there], ..Default::default() };
        let run = RunResult { points: vec![point], ..RunResult::default() };
        let view = view(&run);
        let [server, _] = &view.shown[..] else { panic!("{view:?}") };
        assert!(server.title.contains("ssh://db"), "{}", server.title);
        let caption = &server.consumers.caption;
        assert!(caption.contains("2 processors, 60\u{a0}% busy"), "{caption}");
        let rows: Vec<&[String]> = server.consumers.rows.iter().map(|row| &row.cells[..]).collect();
        assert_eq!(rows[0], ["nginx (server)", "2", "24.00", "0.00", "40.0"]);
        assert_eq!(rows[1][..2], ["sh: children that ended", "–"]);
        assert_eq!(rows[2], ["not seen", "–", "–", "–", "10.0"]);
        let columns: Vec<_> = server.interrupts.columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(columns, ["interrupt", "kind", "per second"], "no op, no share of one");
    }
}
