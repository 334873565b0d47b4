use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::clock;
use crate::parse::{CpuTimes, parse_prometheus};
use crate::root::Root;
use crate::sampler::{Sample, Sampler};

const NODE: &str = include_str!("recorded/node.txt");
const WINDOWS: &str = include_str!("recorded/windows.txt");

/// `text` with the counters of these lines increased. Each line is named by its beginning.
fn grown(text: &str, by: &[(&str, f64)]) -> String {
    let mut used = vec![false; by.len()];
    let line = |line: &str| {
        let position = by.iter().position(|(begin, _)| line.starts_with(&format!("{begin} ")));
        let Some(index) = position else { return format!("{line}\n") };
        used[index] = true;
        let (name, value) = line.rsplit_once(' ').unwrap();
        format!("{name} {}\n", value.parse::<f64>().unwrap() + by[index].1)
    };
    let text = text.lines().map(line).collect();
    assert!(used.iter().all(|used| *used), "{by:?}");
    text
}

/// What the samplers make of two texts, `seconds` apart.
fn sampled(texts: [&str; 2], seconds: u64) -> Sample {
    let mut sampler = Sampler::new(&Root::of_frame(Frame::default()), Vec::new());
    let mut last = None;
    for (number, text) in (0..).zip(texts) {
        let samples = parse_prometheus(text);
        let metrics = Metrics::from_samples(&samples);
        let at_ns = (1_000 + number * seconds) * NANOS_PER_SECOND;
        let figures = match metrics.has(node::CPU) {
            true => node::figures(&metrics),
            false => windows::figures(&metrics, at_ns),
        };
        let at = ClockReading { unix_ns: at_ns, monotonic_ns: at_ns };
        last = Some(sampler.sample_reported(at, Some(&figures)).clone());
    }
    last.unwrap()
}

#[track_caller]
fn check(actual: Option<f64>, expected: f64) {
    let actual = actual.unwrap();
    assert!(
        (actual - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
        "{actual}, not {expected}"
    );
}

#[test]
fn node_exporters_counters_become_the_figures_of_a_local_host() {
    let later = grown(
        NODE,
        &[
            ("node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"}", 1.0),
            ("node_cpu_seconds_total{cpu=\"0\",mode=\"user\"}", 0.8),
            ("node_cpu_seconds_total{cpu=\"0\",mode=\"steal\"}", 0.2),
            ("node_cpu_seconds_total{cpu=\"10\",mode=\"system\"}", 2.0),
            ("node_disk_reads_completed_total{device=\"nvme0n1\"}", 400.0),
            ("node_disk_read_bytes_total{device=\"nvme0n1\"}", 1_638_400.0),
            ("node_disk_read_time_seconds_total{device=\"nvme0n1\"}", 0.8),
            ("node_disk_io_time_seconds_total{device=\"nvme0n1\"}", 1.0),
            ("node_network_transmit_bytes_total{device=\"eth0\"}", 2e6),
            ("node_context_switches_total", 5000.0),
            ("node_pressure_io_waiting_seconds_total", 0.5),
            ("node_netstat_Tcp_RetransSegs", 6.0),
            ("node_vmstat_pgmajfault", 20.0),
            ("node_netstat_Udp_RcvbufErrors", 5.0),
            ("node_netstat_Udp6_RcvbufErrors", 1.0),
            ("node_softnet_dropped_total{cpu=\"0\"}", 2.0),
            ("node_softnet_dropped_total{cpu=\"1\"}", 6.0),
            ("node_network_receive_fifo_total{device=\"eth0\"}", 10.0),
        ],
    );
    let sample = sampled([NODE, &later], 2);
    check(sample.cpus.value("0", "busy"), 0.4);
    check(sample.cpus.value("0", "steal"), 0.1);
    check(sample.cpus.value("10", "system"), 1.0);
    check(sample.host.value("", "cpu_busy"), 0.7);
    check(sample.host.value("", "cpu_busiest"), 1.0);
    check(sample.host.value("", "runnable"), 4.0);
    check(sample.host.value("", "load_1min"), 2.25);
    check(sample.host.value("", "memory_used"), 2_147_483_648.0);
    check(sample.host.value("", "context_switches"), 2_500.0);
    check(sample.host.value("", "pressure_io_some"), 0.25);
    check(sample.host.value("", "pressure_cpu_some"), 0.0);
    check(sample.host.value("", "tcp_retransmits"), 3.0);
    check(sample.host.value("", "major_faults"), 10.0);
    check(sample.host.value("", "udp_receive_buffer_errors"), 3.0);
    check(sample.host.value("", "softnet_dropped"), 4.0);
    check(sample.networks.value("eth0", "receive_overruns"), 5.0);
    check(sample.disks.value("nvme0n1", "reads"), 200.0);
    check(sample.disks.value("nvme0n1", "read"), 819_200.0);
    check(sample.disks.value("nvme0n1", "per_read"), 0.002);
    check(sample.disks.value("nvme0n1", "busy"), 0.5);
    check(sample.disks.value("nvme0n1", "in_flight"), 3.0);
    check(sample.networks.value("eth0", "sent"), 1e6);
    assert_eq!(sample.host.value("", "throttled"), None, "node_exporter reports no control group");
}

#[test]
fn windows_counters_become_the_nearest_figures() {
    let nic = "{nic=\"Intel(R) 82574L Gigabit: #2\"}";
    let later = grown(
        WINDOWS,
        &[
            ("windows_cpu_time_total{core=\"0,0\",mode=\"idle\"}", 1.0),
            ("windows_cpu_time_total{core=\"0,0\",mode=\"privileged\"}", 1.0),
            ("windows_cpu_time_total{core=\"0,0\",mode=\"interrupt\"}", 0.4),
            ("windows_cpu_time_total{core=\"0,1\",mode=\"user\"}", 2.0),
            ("windows_logical_disk_idle_seconds_total{volume=\"C:\"}", 0.5),
            ("windows_logical_disk_writes_total{volume=\"C:\"}", 100.0),
            ("windows_logical_disk_write_latency_seconds_total{volume=\"C:\"}", 1.0),
            (&format!("windows_net_bytes_sent_total{nic}"), 4e6),
            ("windows_tcp_segments_retransmitted_total{af=\"ipv6\"}", 4.0),
        ],
    );
    let sample = sampled([WINDOWS, &later], 2);
    check(sample.cpus.value("0", "busy"), 0.5);
    check(sample.cpus.value("0", "system"), 0.3);
    check(sample.cpus.value("0", "irq"), 0.2);
    check(sample.cpus.value("1", "user"), 1.0);
    check(sample.host.value("", "runnable"), 7.0);
    check(sample.host.value("", "memory_used"), 4_294_967_296.0);
    check(sample.host.value("", "swap_used"), 999_999_488.0);
    check(sample.host.value("", "tcp_retransmits"), 2.0);
    assert_eq!(sample.host.value("", "pressure_cpu_some"), None, "Windows knows no such thing");
    check(sample.disks.value("C", "busy"), 0.75);
    check(sample.disks.value("C", "per_write"), 0.01);
    let nic = |column| sample.networks.value("Intel(R)_82574L_Gigabit__#2", column);
    check(nic("sent"), 2e6);
    assert_eq!(nic("receive_overruns"), None, "windows_exporter counts none");
    let waits = ["iowait", "steal"].map(|of| sample.cpus.value("0", of));
    assert_eq!(waits, [None; 2], "Windows knows no such time");
    let waits = ["cpu_iowait", "cpu_steal"].map(|of| sample.host.value("", of));
    assert_eq!(waits, [None; 2]);
    check(sample.host.value("", "cpu_irq"), 0.1);
}

#[test]
fn counters_that_begin_anew_have_no_rate() {
    let sample = sampled([&grown(NODE, &[("node_context_switches_total", 9e6)]), NODE], 1);
    assert_eq!(sample.host.value("", "context_switches"), None);
    assert_eq!(sample.host.value("", "interrupts"), Some(0.0));
}

/// Answers each question with the next of these replies, and hangs after the last.
fn served(replies: Vec<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let open_streams: Mutex<Vec<TcpStream>> = Mutex::default();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut question = [0; 4096];
            let _ = stream.read(&mut question);
            match replies.get(count.fetch_add(1, Ordering::Relaxed)) {
                Some(reply) => drop(stream.write_all(reply.as_bytes())),
                None => open_streams.lock().unwrap().push(stream),
            }
        }
    });
    (port, requests)
}

fn page(text: &str) -> String {
    format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

#[test]
fn an_exporter_is_asked_anew_for_each_sample_and_one_that_hangs_is_lost() {
    let cut = page(NODE)[..900].to_owned();
    let (port, requests) = served(vec![page(NODE), page(NODE), cut, page("up 1\n")]);
    let (mut peer, facts, disks) = ExporterPeer::open("127.0.0.1", port, "/metrics").unwrap();
    assert!(!disks.is_empty(), "{disks:?}");
    let text = format!("{facts:?}");
    assert!(text.contains("Linux 6.1.0-18-amd64 x86_64 (node_exporter)"), "{text}");
    assert!(text.contains("one round trip"), "{text}");
    let frame = Frame::default();
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    assert_eq!(fetched.cost_ns, Some(12_500_000_000));
    let all = CpuTimes {
        user: 30_050,
        system: 11_000,
        idle: 190_000,
        iowait: 1_000,
        softirq: 250,
        ..CpuTimes::default()
    };
    assert_eq!(fetched.figures.unwrap().host.stat.all, Some(all));
    let Lost(message) = peer.fetch(&frame).unwrap_err();
    assert_eq!(message, "the reply broke off before its announced end");
    let Lost(message) = peer.fetch(&frame).unwrap_err();
    assert!(message.contains("neither node_exporter's"), "{message}");
    let begin_ns = clock::monotonic_ns();
    let Lost(message) = peer.fetch(&frame).unwrap_err();
    assert_eq!(message, "no whole answer within 3 s");
    assert!(clock::monotonic_ns() - begin_ns < 2 * SAMPLE_WAIT.as_nanos() as u64);
    assert_eq!(requests.load(Ordering::Relaxed), 5);
}

#[test]
fn an_exporter_that_sends_a_byte_now_and_then_is_given_up_in_time() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let page = Page::resolve("127.0.0.1", port, "/").unwrap();
    let begin_ns = clock::monotonic_ns();
    assert!(page.get(Duration::from_millis(400)).is_err());
    assert!(clock::monotonic_ns() - begin_ns < 3 * NANOS_PER_SECOND);
}

#[test]
fn what_is_no_exporter_is_refused() {
    let (port, _) = served(vec!["SSH-2.0-OpenSSH\r\n".into(), page("\u{0}\u{ff}garbage{{{{\n")]);
    for _ in 0..2 {
        assert!(ExporterPeer::open("127.0.0.1", port, "/metrics").is_err());
    }
}

#[test]
fn figures_of_models_and_gpus_are_passed_on_as_they_are() {
    let page = page("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 97\n");
    let (port, _) = served(vec![page.clone(), page]);
    let (mut peer, facts, _) = ExporterPeer::open("127.0.0.1", port, "/metrics").unwrap();
    assert_eq!(facts[0].1, "DCGM exporter");
    let frame = Frame::default();
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    let sample = Sampler::new(&Root::of_frame(frame), Vec::new()).sample(fetched.at).clone();
    assert_eq!(sample.gpus.value("0", "busy"), Some(0.97));
    assert!(sample.models.rows().is_empty() && sample.servers.rows().is_empty());
}
