use super::*;
use crate::root::{Frame, Texts};

/// A line of `/proc/PID/stat`: id, name, parent, flags, ticks (user, system, of ended children).
fn line(pid: u32, name: &str, parent: u32, ticks: [u64; 4]) -> String {
    let flags = if name.starts_with('k') { 69_238_880 } else { 4_194_560 };
    let [user, system, ended_user, ended_system] = ticks;
    let zeros = "0 ".repeat(16);
    format!(
        "{pid} ({name}) S {parent} 0 0 0 0 {flags} 0 0 0 0 {user} {system} {ended_user} \
         {ended_system} 20 0 1 0 77 {zeros}3 0"
    )
}

fn census(at_ns: u64, busy: u64, net_rx: u64, processes: &[String]) -> Option<Census> {
    let frame = Frame::default();
    let texts = [
        (
            "proc/stat",
            format!("cpu {busy} 0 0 0 0 1 2\ncpu0 0 0 0 0\ncpu1 0 0 0 0\nprocesses {busy}\n"),
        ),
        ("proc/softirqs", format!(" CPU0\nNET_RX: {net_rx}\nHI: 0\n")),
        ("proc/interrupts", format!(" CPU0\n5: {net_rx} GICv3 eth0-rx-0\n")),
        ("plimsoll/processes", processes.join("\n")),
    ];
    frame.replace(Texts::from_iter(texts.map(|(file, text)| (file.to_owned(), text))));
    Census::of_frame(&Root::of_frame(frame), at_ns)
}

fn consumer_rows(work: &HostWork) -> Vec<(&str, CoreUserKind, bool, u32, u64)> {
    let consumers = work.consumers.iter();
    let ticks = |it: &ConsumerWork| it.cpu_ns() / ticks_to_ns(1);
    consumers.map(|it| (it.name.as_str(), it.kind, it.ended, it.processes, ticks(it))).collect()
}

#[test]
fn processes_of_one_name_are_summed_and_the_kernels_workers_too() {
    let before = [
        line(1, "init", 0, [5, 5, 0, 0]),
        line(8, "nginx", 1, [10, 10, 0, 0]),
        line(9, "nginx", 8, [10, 10, 0, 0]),
        line(20, "kworker/0:1-events", 2, [0, 7, 0, 0]),
    ];
    let now = [
        line(1, "init", 0, [5, 5, 0, 0]),
        line(8, "nginx", 1, [10, 40, 0, 0]),
        line(9, "nginx", 8, [60, 10, 0, 0]),
        line(20, "kworker/0:1+net", 2, [0, 9, 0, 0]),
        line(21, "kworker/u4:3", 2, [0, 3, 0, 0]),
        line(30, "nginx", 1, [1, 0, 0, 0]),
    ];
    let before = census(0, 1_000, 10, &before).unwrap();
    let now = census(2_000_000_000, 1_200, 50, &now).unwrap();
    let work = now.since(&before, |pid| (pid < 10).then_some(CoreUserKind::Server)).unwrap();
    let expected = [
        ("nginx", CoreUserKind::Server, false, 2, 80),
        ("kworker", CoreUserKind::Kernel, false, 2, 5),
        ("nginx", CoreUserKind::Other, false, 1, 1),
    ];
    assert_eq!(consumer_rows(&work), expected);
    assert_eq!((work.processors, work.busy_ns, work.forks), (2, ticks_to_ns(200), Some(200)));
    assert_eq!((work.elapsed_ns, work.others.cpu_ns()), (2_000_000_000, 0));
    let interrupts: Vec<_> =
        work.interrupts.iter().map(|it| (it.name.as_str(), it.kind, it.count)).collect();
    assert_eq!(
        interrupts,
        [("NET_RX", InterruptKind::Soft, 40), ("eth0", InterruptKind::Hard, 40)]
    );
}

#[test]
fn what_ended_is_found_in_its_parent_without_what_it_had_used_before() {
    let before = [
        line(1, "init", 0, [0; 4]),
        line(8, "httpd", 1, [10, 0, 100, 100]),
        line(9, "cgi", 8, [30, 0, 0, 0]),
        line(10, "helper", 9, [5, 0, 0, 0]),
    ];
    // The child of 30 + 5 ticks went on to 50 with its own child, and others came and went with 40.
    let now = [line(1, "init", 0, [0; 4]), line(8, "httpd", 1, [11, 0, 190, 100])];
    let before = census(0, 0, 0, &before).unwrap();
    let work = census(1, 0, 0, &now).unwrap().since(&before, |_| None).unwrap();
    let other = CoreUserKind::Other;
    assert_eq!(
        consumer_rows(&work),
        [("httpd", other, true, 0, 55), ("httpd", other, false, 1, 1)]
    );
}

#[test]
fn ten_are_named_and_the_others_are_one_sum() {
    let processes = |ticks: u64| -> Vec<String> {
        (1..=14)
            .map(|pid| line(pid, &format!("p{pid}"), 0, [u64::from(pid) * ticks, 0, 0, 0]))
            .collect()
    };
    let before = census(0, 0, 0, &processes(0)).unwrap();
    let work = census(1, 0, 0, &processes(1)).unwrap().since(&before, |_| None).unwrap();
    assert_eq!((work.consumers.len(), work.consumers[0].name.as_str()), (10, "p14"));
    assert_eq!((work.others.processes, work.others.cpu_ns()), (4, ticks_to_ns(1 + 2 + 3 + 4)));
}

#[test]
fn a_later_process_of_the_same_id_is_another_one() {
    let before = census(0, 0, 0, &[line(9, "old", 1, [50, 0, 0, 0])]).unwrap();
    let reused = line(9, "new", 1, [60, 0, 0, 0]).replace(" 77 ", " 99 ");
    let work = census(1, 0, 0, &[reused]).unwrap().since(&before, |_| None).unwrap();
    assert_eq!(consumer_rows(&work), [("new", CoreUserKind::Other, false, 1, 60)]);
}

#[test]
fn a_list_that_was_cut_is_none_and_no_list_is_no_census() {
    let whole = [line(1, "init", 0, [0; 4]), "cut".to_owned()];
    assert!(census(0, 0, 0, &whole).is_none());
    assert!(census(0, 0, 0, &[]).is_none());
}

#[test]
fn this_host_tells_its_processes_and_interrupts() {
    let root = Root::default();
    let before = Census::take(&root);
    let begin_ns = clock::thread_cpu_ns();
    while clock::thread_cpu_ns() < begin_ns + 50_000_000 {}
    let own = |pid| (pid == std::process::id()).then_some(CoreUserKind::Own);
    let work = Census::take(&root).since(&before, own).unwrap();
    let ours = work.consumers.iter().find(|it| it.kind == CoreUserKind::Own);
    assert!(ours.is_some_and(|it| it.cpu_ns() >= 20_000_000), "{work:?}");
    assert!(work.processors > 0 && !work.interrupts.is_empty(), "{work:?}");
}
