use std::fs;

use tempfile::TempDir;

use super::*;
use crate::process::{Scope, thread_cpu_ns};

/// A machine whose counters a test sets.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn root(&self) -> Root {
        Root::in_directory(self.0.path())
    }

    fn write(&self, file: &str, text: &str) -> &Self {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }
}

/// A reading this many seconds after the start.
fn second(seconds: u64) -> ClockReading {
    let ns = seconds * NANOS_PER_SECOND;
    ClockReading { unix_ns: 1_000 + ns, monotonic_ns: 500 + ns }
}

#[test]
fn cpu_shares_are_of_the_ticks_between_two_samples() {
    let machine = Machine::new();
    machine.write(
        "proc/stat",
        "cpu 100 0 0 900 0 0 0 0\ncpu0 50 0 0 450 0 0 0 0\ncpu1 50 0 0 450 0 0 0 0\nctxt 1000\n\
         procs_running 1\nprocs_blocked 0\n",
    );
    let mut sampler = Sampler::new(&machine.root(), Vec::new());
    let first = sampler.sample(second(0));
    assert_eq!(first.host.value("", "cpu_busy"), None);
    assert_eq!(first.host.value("", "runnable"), Some(1.0));
    machine.write(
        "proc/stat",
        "cpu 160 0 20 1000 10 2 6 2\ncpu0 110 0 20 450 10 2 6 2\ncpu1 50 0 0 550 0 0 0 0\n\
         ctxt 5000\nprocs_running 3\nprocs_blocked 2\n",
    );
    let sample = sampler.sample(second(2));
    let host = |column| sample.host.value("", column);
    assert_eq!((host("cpu_busy"), host("cpu_user")), (Some(0.44), Some(0.3)));
    assert_eq!((host("cpu_steal"), host("cpu_idle")), (Some(0.01), Some(0.5)));
    assert_eq!(host("cpu_busiest"), Some(0.88));
    assert_eq!((host("context_switches"), host("runnable")), (Some(2_000.0), Some(3.0)));
    assert_eq!(sample.cpus.value("0", "busy"), Some(0.88));
    assert_eq!(sample.cpus.value("1", "idle"), Some(1.0));
}

#[test]
fn memory_paging_tcp_udp_pressure_and_throttling_are_rates_and_sizes() {
    let machine = Machine::new();
    machine
        .write(
            "proc/meminfo",
            "MemTotal: 12 kB\nMemAvailable: 10 kB\nDirty: 2 kB\nSwapTotal: 5 kB\nSwapFree: 2 kB",
        )
        .write("proc/vmstat", "pgpgin 10\npgmajfault 1\n")
        .write(
            "proc/net/snmp",
            "Tcp: RetransSegs\nTcp: 7\nUdp: InDatagrams RcvbufErrors\nUdp: 9 1\n",
        )
        .write("proc/net/snmp6", "Udp6InDatagrams 1\nUdp6RcvbufErrors 0\n")
        .write("proc/net/softnet_stat", "000000f0 00000000 00000000 00000000\n")
        .write("proc/net/netstat", "TcpExt: ListenOverflows ListenDrops\nTcpExt: 1 2\n")
        .write("proc/pressure/cpu", "some avg10=0.00 total=1000000\n")
        .write("proc/self/cgroup", "0::/a\n")
        .write("proc/self/mountinfo", "31 1 0:29 / /cg rw - cgroup2 cgroup2 rw\n")
        .write("cg/a/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n");
    let mut sampler = Sampler::new(&machine.root(), Vec::new());
    sampler.sample(second(0));
    machine
        .write("proc/vmstat", "pgpgin 30\npgmajfault 5\n")
        .write(
            "proc/net/snmp",
            "Tcp: RetransSegs\nTcp: 17\nUdp: InDatagrams RcvbufErrors\nUdp: 99 7\n",
        )
        .write("proc/net/snmp6", "Udp6InDatagrams 11\nUdp6RcvbufErrors 2\n")
        .write("proc/net/softnet_stat", "00000100 00000008 00000002 00000000\n")
        .write("proc/net/netstat", "TcpExt: ListenOverflows ListenDrops\nTcpExt: 1 12\n")
        .write("proc/pressure/cpu", "some avg10=0.00 total=1500000\n")
        .write("cg/a/cpu.stat", "nr_throttled 4\nthrottled_usec 500000\n");
    let sample = sampler.sample(second(2));
    let host = |column| sample.host.value("", column);
    assert_eq!((host("memory_used"), host("memory_available")), (Some(2_048.0), Some(10_240.0)));
    assert_eq!((host("memory_dirty"), host("swap_used")), (Some(2_048.0), Some(3_072.0)));
    assert_eq!((host("paged_in"), host("major_faults")), (Some(10_240.0), Some(2.0)));
    assert_eq!(host("tcp_retransmits"), Some(5.0));
    assert_eq!((host("tcp_listen_overflows"), host("tcp_listen_drops")), (Some(0.0), Some(5.0)));
    assert_eq!((host("udp_received"), host("udp_receive_buffer_errors")), (Some(50.0), Some(4.0)));
    assert_eq!(host("udp_receive_errors"), None);
    let softnet = ["softnet_processed", "softnet_dropped", "softnet_squeezed"].map(host);
    assert_eq!(softnet, [Some(8.0), Some(4.0), Some(1.0)]);
    assert_eq!((host("pressure_cpu_some"), host("pressure_io_some")), (Some(0.25), None));
    assert_eq!((host("throttled_periods"), host("throttled")), (Some(2.0), Some(0.25)));
}

#[test]
fn disks_are_whole_ones_and_an_idle_disk_has_no_time_per_transfer() {
    let machine = Machine::new();
    let line = |reads: u64, sectors: u64, ms: u64, busy: u64, queue: u64| {
        format!(
            "254 0 vda {reads} 0 {sectors} {ms} 0 0 0 0 1 {busy} {queue}\n\
             254 1 vda1 {reads} 0 {sectors} {ms} 0 0 0 0 1 {busy} {queue}\n"
        )
    };
    machine
        .write("sys/block/vda/size", "2048\n")
        .write("sys/block/loop0/size", "0\n")
        .write("proc/diskstats", &line(0, 0, 0, 0, 0));
    let mut sampler = Sampler::new(&machine.root(), Vec::new());
    sampler.sample(second(0));
    machine.write("proc/diskstats", &line(100, 800, 200, 500, 1_500));
    let sample = sampler.sample(second(1));
    assert_eq!(sample.disks.rows().len(), 1);
    let disk = |column| sample.disks.value("vda", column);
    assert_eq!((disk("read"), disk("reads")), (Some(409_600.0), Some(100.0)));
    assert_eq!((disk("per_read"), disk("per_write")), (Some(0.002), None));
    assert_eq!((disk("busy"), disk("queue_mean")), (Some(0.5), Some(1.5)));
    assert_eq!((disk("in_flight"), disk("written")), (Some(1.0), Some(0.0)));
}

#[test]
fn an_interface_whose_counters_go_back_has_no_rate() {
    let machine = Machine::new();
    machine.write("proc/net/dev", "eth0: 1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n");
    let mut sampler = Sampler::new(&machine.root(), Vec::new());
    sampler.sample(second(0));
    machine.write("proc/net/dev", "eth0: 9 20 0 3 4 0 0 0 1500 9 0 0 0 0 0 0\n");
    let sample = sampler.sample(second(1));
    let eth0 = |column| sample.networks.value("eth0", column);
    assert_eq!((eth0("received"), eth0("sent")), (None, Some(1_000.0)));
    assert_eq!((eth0("received_packets"), eth0("receive_drops")), (Some(10.0), Some(3.0)));
    assert_eq!(eth0("receive_overruns"), Some(4.0));
}

fn stat_line(pid: u32, parent: u32, user: u64, system: u64) -> String {
    format!("{pid} (nginx) S {parent} 0 0 0 0 0 0 0 0 0 {user} {system} 0 0 20 0 2 0 1 1 10 1\n")
}

#[test]
fn a_server_is_summed_with_its_workers() {
    let machine = Machine::new();
    machine
        .write("proc/10/stat", &stat_line(10, 1, 5, 5))
        .write("proc/11/stat", &stat_line(11, 10, 50, 50))
        .write("proc/12/stat", &stat_line(12, 1, 7, 7));
    let watched = vec![WatchedProcess::new("server", 10)];
    let mut sampler = Sampler::new(&machine.root(), watched);
    sampler.sample(second(0));
    machine.write("proc/10/stat", &stat_line(10, 1, 15, 5));
    machine.write("proc/11/stat", &stat_line(11, 10, 90, 100));
    let sample = sampler.sample(second(1));
    let server = |column| sample.processes.value("server", column);
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-9;
    assert!(near(server("cpu"), 100.0 / ticks), "{:?}", server("cpu"));
    assert!(near(server("cpu_user"), 50.0 / ticks));
    assert_eq!((server("threads"), server("processes")), (Some(4.0), Some(2.0)));
}

#[test]
fn a_generator_does_not_count_the_server_it_started() {
    let machine = Machine::new();
    machine.write("proc/10/stat", &stat_line(10, 1, 0, 0));
    machine.write("proc/11/stat", &stat_line(11, 10, 0, 0));
    let generator = WatchedProcess { scope: Scope::Alone, ..WatchedProcess::new("generator", 10) };
    let mut sampler = Sampler::new(&machine.root(), vec![generator]);
    sampler.sample(second(0));
    machine.write("proc/11/stat", &stat_line(11, 10, 500, 500));
    let sample = sampler.sample(second(1));
    assert_eq!(sample.processes.value("generator", "cpu"), Some(0.0));
    assert_eq!(sample.processes.value("generator", "processes"), Some(1.0));
}

#[test]
fn a_worker_found_late_counts_from_then_on() {
    let machine = Machine::new();
    machine.write("proc/10/stat", &stat_line(10, 1, 0, 0));
    let mut sampler = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    sampler.sample(second(0));
    machine.write("proc/11/stat", &stat_line(11, 10, 500, 500));
    sampler.rescan();
    let sample = sampler.sample(second(1));
    assert_eq!(sample.processes.value("server", "cpu"), Some(0.0));
    assert_eq!(sample.processes.value("server", "processes"), Some(2.0));
}

#[test]
fn a_process_that_is_not_there_has_no_use_but_a_count_of_zero() {
    let machine = Machine::new();
    let mut sampler = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    sampler.sample(second(0));
    let sample = sampler.sample(second(1));
    assert_eq!(sample.processes.value("server", "cpu"), None);
    assert_eq!(sample.processes.value("server", "rss"), None);
    assert_eq!(sample.processes.value("server", "processes"), Some(0.0));
}

#[test]
fn an_empty_machine_gives_one_empty_host_row() {
    let machine = Machine::new();
    let mut sampler = Sampler::new(&machine.root(), Vec::new());
    sampler.sample(second(0));
    let sample = sampler.sample(second(1));
    assert_eq!(sample.host.rows().len(), 1);
    assert!(sample.host.rows()[0].values.iter().all(Option::is_none));
    assert!(sample.disks.rows().is_empty() && sample.networks.rows().is_empty());
}

#[test]
fn a_busy_loop_of_200_ms_shows_up_on_this_machine() {
    const BUSY_NS: u64 = 200_000_000;
    let mut sampler = Sampler::new(&Root::default(), vec![WatchedProcess::own("test")]);
    sampler.sample(ClockReading::now());
    let start = thread_cpu_ns();
    while thread_cpu_ns() - start < BUSY_NS {
        std::hint::spin_loop();
    }
    let sample = sampler.sample(ClockReading::now());
    let cores = sample.processes.value("test", "cpu").unwrap();
    let used_ns = cores * sample.elapsed_ns as f64;
    // Two counters are each off by a tick of 10 ms at most.
    assert!(used_ns >= BUSY_NS as f64 - 40e6, "{used_ns} ns");
    assert!(sample.host.value("", "cpu_busy").unwrap() > 0.0);
    assert!(sample.host.value("", "cpu_busiest").unwrap() <= 1.0);
    assert!(sample.processes.value("test", "rss").unwrap() > 100_000.0);
    assert!(sample.processes.value("test", "descriptors").unwrap() > 3.0);
    assert!(!sample.cpus.rows().is_empty() && !sample.networks.rows().is_empty());
}

#[test]
fn two_processes_of_one_name_are_told_apart() {
    let machine = Machine::new();
    machine.write("proc/10/stat", &stat_line(10, 1, 0, 0));
    let watched = [10, 10, 11].map(|pid| WatchedProcess::new("server", pid)).to_vec();
    let mut sampler = Sampler::new(&machine.root(), watched);
    let sample = sampler.sample(second(0));
    let names: Vec<&str> = sample.processes.rows().iter().map(|row| row.key.as_str()).collect();
    assert_eq!(names, ["server", "server-2", "server-3"]);
}

#[test]
fn a_worker_that_is_forked_counts_with_all_it_used_and_one_that_ended_too() {
    let machine = Machine::new();
    machine
        .write("proc/10/stat", &stat_line(10, 1, 0, 0))
        .write("proc/10/task/10/children", "11")
        .write("proc/11/stat", &stat_line(11, 10, 10, 0));
    let mut sampler = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    sampler.sample(second(0));
    machine
        .write("proc/10/task/10/children", "11 12")
        .write("proc/12/stat", &stat_line(12, 10, 30, 10));
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let sample = sampler.sample(second(1));
    assert_eq!(sample.processes.value("server", "cpu"), Some(40.0 / ticks));
    assert_eq!(sample.processes.value("server", "processes"), Some(3.0));
    // The first ended after 5 more ticks, and another came and went between the samples.
    machine.write("proc/10/task/10/children", "12");
    fs::remove_file(machine.0.path().join("proc/11/stat")).unwrap();
    let waited = stat_line(10, 1, 0, 0).replace(" 0 0 20 0 2", " 22 0 20 0 2");
    machine.write("proc/10/stat", &waited);
    // An open file of a process that has ended cannot be read; here it still can.
    let mut again = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    again.sample(second(1));
    machine.write("proc/10/stat", &waited.replace(" 22 0 20", " 29 0 20"));
    let sample = again.sample(second(2));
    assert_eq!(sample.processes.value("server", "cpu"), Some(7.0 / ticks));
}

#[test]
fn threads_are_looked_at_one_by_one() {
    let machine = Machine::new();
    let thread = |tid: u32, state: &str, run: u64, wait: u64, wchan: &str| {
        let stat = stat_line(tid, 1, 0, 0).trim_end().replace(" S ", &format!(" {state} "));
        let rest = " 0".repeat(20);
        let switches = 1 + run / 100_000_000;
        machine
            .write(&format!("proc/10/task/{tid}/schedstat"), &format!("{run} {wait} {switches}\n"))
            .write(&format!("proc/10/task/{tid}/stat"), &format!("{stat}{rest}\n"))
            .write(&format!("proc/10/task/{tid}/wchan"), wchan)
            .write(&format!("proc/10/task/{tid}/status"), "Cpus_allowed_list:\t1\n");
    };
    machine
        .write("proc/stat", "cpu 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n")
        .write("proc/10/stat", &stat_line(10, 1, 0, 0));
    for tid in [10, 11, 12] {
        thread(tid, "S", 100, 50, "0");
    }
    let mut sampler = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    sampler.sample(second(0));
    machine.write("proc/stat", "cpu 90 0 0 110\ncpu0 10 0 0 90\ncpu1 80 0 0 20\n");
    thread(10, "R", 700_000_100, 250_000_050, "0");
    thread(11, "S", 100, 250_000_050, "futex_do_wait");
    thread(12, "D", 200_000_100, 50, "io_schedule");
    let sample = sampler.sample(second(1));
    let server = |column| sample.processes.value("server", column);
    assert_eq!((server("busiest_thread"), server("run_delay")), (Some(0.7), Some(0.5)));
    assert_eq!(server("context_switches"), Some(7.0 + 2.0));
    assert_eq!(server("threads_waiting_for_disk"), Some(1.0));
    assert_eq!(server("threads_waiting_for_lock"), Some(1.0));
    assert_eq!((server("cores_allowed"), server("core")), (Some(1.0), Some(1.0)));
    assert_eq!((server("cores_busy"), server("cores_steal")), (Some(0.8), Some(0.0)));
}

#[test]
fn what_a_servers_control_groups_allow_is_beside_what_they_used() {
    let machine = Machine::new();
    let counts = |throttled: u64, full: u64, refaults: u64, reads: u64| {
        machine
            .write("cg/cpu/a/b/cpu.stat", "nr_throttled 0\nthrottled_time 0\n")
            .write("cg/cpu/a/cpu.stat", &format!("nr_throttled 9\nthrottled_time {throttled}\n"))
            .write("cg/memory/a/memory.failcnt", &format!("{full}\n"))
            .write("cg/memory/a/memory.stat", &format!("total_workingset_refault_file {refaults}"))
            .write(
                "cg/blkio/a/blkio.throttle.io_serviced_recursive",
                &format!("254:0 Read {reads}\n254:0 Write 0\nTotal {reads}\n"),
            );
    };
    machine
        .write("proc/10/stat", &stat_line(10, 1, 0, 0))
        .write("proc/10/cgroup", "3:blkio:/a\n2:memory:/a\n1:cpu,cpuacct:/a/b\n")
        .write(
            "proc/self/mountinfo",
            "31 1 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 1 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n\
             33 1 0:31 / /cg/blkio rw - cgroup cgroup rw,blkio\n",
        )
        .write("cg/cpu/a/b/cpu.cfs_quota_us", "-1\n")
        .write("cg/cpu/a/b/cpu.cfs_period_us", "100000\n")
        .write("cg/cpu/a/cpu.cfs_quota_us", "25000\n")
        .write("cg/cpu/a/cpu.cfs_period_us", "100000\n")
        .write("cg/memory/a/memory.limit_in_bytes", "1000000\n")
        .write("cg/memory/a/memory.usage_in_bytes", "900000\n")
        .write("cg/blkio/a/blkio.throttle.read_iops_device", "254:0 800\n");
    counts(0, 0, 0, 0);
    let mut sampler = Sampler::new(&machine.root(), vec![WatchedProcess::new("server", 10)]);
    sampler.sample(second(0));
    counts(500_000_000, 20, 400, 790);
    let sample = sampler.sample(second(1));
    let group = |column| sample.groups.value("server", column);
    assert_eq!((group("quota"), group("throttled")), (Some(0.25), Some(0.5)), "of the one above");
    assert_eq!((group("memory"), group("memory_max")), (Some(900_000.0), Some(1_000_000.0)));
    assert_eq!((group("memory_full"), group("refaults")), (Some(20.0), Some(400.0)));
    let disk = |column| sample.storage.value("server:254:0", column);
    assert_eq!((disk("reads"), disk("reads_max")), (Some(790.0), Some(800.0)));
    assert_eq!((disk("writes"), disk("writes_max")), (Some(0.0), None));
}

#[test]
fn a_servers_sockets_and_the_share_of_a_link_are_seen() {
    let machine = Machine::new();
    machine
        .write("proc/10/stat", &stat_line(10, 1, 0, 0))
        .write(
            "proc/10/net/tcp",
            "sl\n0: 0100007F:0050 00000000:0000 0A 00000000:00000002 0 0 0 0 1\n\
             1: 0100007F:0050 0100007F:C350 01 00000400:00000010 0 0 0 0 2\n",
        )
        .write("sys/class/net/eth0/speed", "1000\n")
        .write("proc/net/dev", "eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    let watched = WatchedProcess::from_pids("server", vec![10], vec![80]);
    let mut sampler = Sampler::new(&machine.root(), vec![watched]);
    let first = sampler.sample(second(0));
    let socket = |column| first.sockets.value("server", column);
    assert_eq!((socket("connections"), socket("accept_queue")), (Some(1.0), Some(2.0)));
    assert_eq!((socket("send_queue"), socket("receive_queue")), (Some(1_024.0), Some(16.0)));
    machine.write("proc/net/dev", "eth0: 50 1 0 0 0 0 0 0 100000000 100000 0 0 0 0 0 0\n");
    let sample = sampler.sample(second(1));
    let eth0 = |column| sample.networks.value("eth0", column);
    assert_eq!((eth0("sent_share"), eth0("sent_per_packet")), (Some(0.8), Some(1_000.0)));
}
