//! Where the processor time of each host went at a load point, and its interrupts.

use plimsoll_model::consumers::{Consumer, HostConsumers, InterruptKind};
use plimsoll_model::event::CoreUserKind;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::server_profile::ProfileScope;
use serde::Serialize;

use super::headline::headline_point;
use super::limits::THIS_HOST;
use crate::table::{Table, figures, words};
use crate::text::{ABSENT, count, load, number, percent, three_digits};

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
        match host.processors {
            1 => "1 processor".to_owned(),
            several => format!("{several} processors"),
        },
        share(host.busy_s),
        share(host.softirq_s),
        share(host.irq_s),
    );
    if let Some(forks) = host.forks_per_s {
        caption =
            format!("{caption} · {} processes and threads started per s", three_digits(forks));
    }
    let columns = vec![
        words("consumer"),
        figures("processes", ""),
        figures("user", "s"),
        figures("system", "s"),
        figures("share of the host", "%"),
    ];
    let mut table = Table::new(caption, columns);
    for it in &host.consumers {
        table.push(row(&name_of(it), it));
    }
    if host.others.share_ratio > 0.0 {
        table.push(row("all others", &host.others));
    }
    let not_seen = format!("{:.1}", 100.0 * host.not_seen_s / capacity_s);
    let absent = ABSENT.to_owned();
    table.push(vec!["not seen".to_owned(), absent.clone(), absent.clone(), absent, not_seen]);
    table
}

fn row(name: &str, it: &Consumer) -> Vec<String> {
    let processes = (it.processes > 0).then(|| f64::from(it.processes));
    vec![
        name.to_owned(),
        number(processes),
        format!("{:.2}", it.user_s),
        format!("{:.2}", it.system_s),
        format!("{:.1}", 100.0 * it.share_ratio),
    ]
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
    let columns =
        vec![words("interrupt"), words("kind"), figures("per second", ""), figures("per op", "")];
    let mut table = Table::new(caption, columns);
    for it in &host.interrupts {
        let kind = match it.kind {
            InterruptKind::Soft => "soft",
            InterruptKind::Hard => "hard",
        };
        let per_op = it.per_op.map_or_else(|| ABSENT.to_owned(), three_digits);
        let per_second = three_digits(it.per_s);
        table.push(vec![it.name.clone(), kind.to_owned(), per_second, per_op]);
    }
    table.without_empty_columns()
}

/// What is said of a profile, and its functions.
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
    let columns = vec![
        words("function"),
        words("module"),
        figures("itself", "%"),
        figures("with what it calls", "%"),
    ];
    let mut functions = Table::new(caption, columns);
    for it in &profile.functions {
        let share = |ratio: f64| format!("{:.1}", 100.0 * ratio);
        let (own, total) = (share(it.self_ratio), share(it.total_ratio));
        functions.push(vec![it.name.clone(), it.module.clone(), own, total]);
    }
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
