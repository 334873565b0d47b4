use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use tempfile::TempDir;

use super::*;
use crate::process::WatchedProcess;
use crate::root::Root;
use crate::sampler::Sampler;
use crate::source::middle;

/// A substitute for ssh that runs `body`, and the source it makes.
struct FakeSsh {
    directory: TempDir,
}

impl FakeSsh {
    fn new(body: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let fake = Self { directory };
        std::fs::write(fake.program(), format!("#!/bin/sh\n{body}\n")).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fake.program(), executable).unwrap();
        fake
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("ssh")
    }

    fn open(&self) -> Result<(SshPeer, Vec<Fact>), Lost> {
        self.open_described().map(|(peer, facts, _)| (peer, facts))
    }

    fn open_described(&self) -> Result<(SshPeer, Vec<Fact>, HostDescription), Lost> {
        let destination =
            Destination { user: Some("ann".into()), host: "db".into(), port: Some(2222) };
        let options = SourceOptions { ssh: self.program(), ..SourceOptions::default() };
        SshPeer::open(destination, &options)
    }
}

/// Passes the script over, and begins a loop that answers everything but a sample.
const GREETS: &str = "while read -r line && [ \"$line\" != answer ]; do :; done\n\
    printf '=plimsoll hello 1 5 4 Linux\\n'\n\
    while read -r word number; do case $word in\n\
    ping) printf '=plimsoll pong %s 1700000000\\n' $number ;;\n\
    describe) printf '=plimsoll begin %s\\n\\n=plimsoll end %s\\n' $number $number ;;\n";

/// The shells that the loop must run in, as far as they are here.
fn shells() -> Vec<&'static str> {
    let candidates = ["sh", "dash", "bash", "busybox sh"];
    let runs = |shell: &&str| {
        let mut tokens = shell.split(' ');
        let mut command = Command::new(tokens.next().unwrap());
        command.args(tokens).args(["-c", ":"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.into_iter().filter(runs).collect()
}

#[test]
fn ssh_is_told_never_to_ask_and_where_to_go() {
    let fake = FakeSsh::new("echo \"$*\" >&2; exit 255");
    let Lost(message) = fake.open().unwrap_err();
    for part in ["-T ", "-o BatchMode=yes", "-p 2222 -l ann -- db exec sh"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn an_ssh_that_is_refused_is_told_in_its_own_words() {
    let fake = FakeSsh::new("echo 'ann@db: Permission denied (publickey).' >&2; exit 255");
    let Lost(message) = fake.open().unwrap_err();
    assert_eq!(message, "ssh: ann@db: Permission denied (publickey).");
    let Lost(message) = FakeSsh::new("exit 3").open().unwrap_err();
    assert!(message.contains("without a word") && message.contains('3'), "{message}");
    let missing = SourceOptions { ssh: "/nowhere/ssh".into(), ..SourceOptions::default() };
    let destination = Destination { user: None, host: "db".into(), port: None };
    let Lost(message) = SshPeer::open(destination, &missing).unwrap_err();
    assert!(message.contains("cannot run /nowhere/ssh"), "{message}");
}

#[test]
fn every_shell_answers_with_the_texts_of_its_host() {
    for shell in shells() {
        let fake = FakeSsh::new(&format!("echo 'Welcome to db!'; exec {shell}"));
        let (mut peer, facts, (_, disks)) = fake.open_described().unwrap();
        let here = DiskTree::from_root(Root::default());
        assert_eq!((disks.names(), disks.find("/")), (here.names(), here.find("/")), "{shell}");
        assert!(facts[0].1.contains("Linux"), "{facts:?}");
        assert!(facts[1].1.contains("the shortest of 8 round trips"), "{facts:?}");
        let frame = Frame::default();
        let before = ClockReading::now();
        let fetched = peer.fetch(&frame).unwrap().unwrap();
        let after = ClockReading::now();
        let between = before.monotonic_ns..=after.monotonic_ns;
        assert!(between.contains(&fetched.at.monotonic_ns), "{shell}");
        let root = Root::of_frame(frame.clone());
        for file in ["proc/stat", "proc/meminfo", "proc/net/dev", "proc/loadavg", "proc/vmstat"] {
            let here = Root::default().read(file).unwrap();
            let there = root.read(file).unwrap_or_else(|| panic!("{shell}: no {file}"));
            assert_eq!(there.lines().count(), here.lines().count(), "{shell}: {file}");
        }
        assert_eq!(root.names("sys/block"), Root::default().names("sys/block"), "{shell}");
        assert!(fetched.cost_ns.is_some(), "{shell}");
    }
}

#[test]
fn the_servers_processes_are_found_by_the_port_they_listen_on() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let fake = FakeSsh::new("exec sh");
    let (mut peer, _) = fake.open().unwrap();
    peer.watch_ports(&[1, port]);
    let frame = Frame::default();
    let fetched = peer.fetch(&frame).unwrap().unwrap();
    assert_eq!(fetched.servers, [std::process::id()]);
    let root = Root::of_frame(frame.clone());
    let own = format!("proc/{}", std::process::id());
    assert!(root.has(format!("{own}/status")));
    let threads = root.names(format!("{own}/task"));
    assert!(threads.len() > 1, "{threads:?}");
    assert!(root.has(format!("{own}/task/{}/schedstat", threads[0])));
    let watched = WatchedProcess::from_pids("server", fetched.servers, vec![port]);
    let mut sampler = Sampler::new(&root, vec![watched]);
    let sample = sampler.sample(fetched.at);
    assert_eq!(sample.sockets.value("server", "connections"), Some(0.0));
    // The loop itself is a child of this process.
    assert!(sample.processes.value("server", "processes").unwrap() >= 2.0);
    assert!(sample.processes.value("server", "rss").unwrap() > 1e6);
    // Told after each look at the processes, and remembered.
    let mut cores = Vec::new();
    for _ in 0..2 {
        let fetched = peer.fetch(&frame).unwrap().unwrap();
        let sample = sampler.sample(fetched.at);
        cores.extend(sample.processes.value("server", "cores_allowed"));
    }
    assert!(cores.len() == 2 && cores[0] >= 1.0, "{cores:?}");
}

#[test]
fn a_host_that_hangs_is_lost_within_the_wait_and_reached_anew() {
    let fake = FakeSsh::new(&format!(
        "[ -e \"$0.again\" ] && exec sh\n: >\"$0.again\"\n{GREETS}sample) exec sleep 60 ;; esac; done"
    ));
    let (mut peer, _) = fake.open().unwrap();
    let frame = Frame::default();
    let requested_ns = clock::monotonic_ns();
    let lost = peer.fetch(&frame).unwrap_err();
    let waited_ns = clock::monotonic_ns() - requested_ns;
    assert!(waited_ns < 5 * NANOS_PER_SECOND, "{waited_ns}");
    assert_eq!(lost, Lost("no answer within 3 s".to_owned()));
    assert!(peer.fetch(&frame).unwrap().is_some(), "a new child answers");
}

#[test]
fn an_answer_that_breaks_off_is_lost_and_leaves_the_frame_before() {
    let fake = FakeSsh::new(&format!(
        "{GREETS}sample) printf '=plimsoll begin %s\\n==> /proc/stat <==\\ncpu 1 2\\n' $number\n\
         [ $number = 2 ] || exit 9\n\
         printf '=plimsoll end %s\\n' $number ;; esac; done",
    ));
    let (mut peer, facts) = fake.open().unwrap();
    assert!(facts[1].1.contains("give or take 50"), "a clock in whole seconds: {facts:?}");
    let frame = Frame::default();
    assert_eq!(peer.fetch(&frame).unwrap().unwrap().cost_ns, None);
    let Lost(message) = peer.fetch(&frame).unwrap_err();
    assert!(message.contains("ssh ended"), "{message}");
    assert_eq!(frame.text("proc/stat").as_deref(), Some("cpu 1 2\n"));
}

#[test]
fn garbage_for_an_answer_is_no_answer() {
    let fake = FakeSsh::new("head -c 300000 /dev/urandom; exit 1");
    assert!(fake.open().is_err());
}

#[test]
fn the_sample_lies_between_question_and_answer() {
    let requested = ClockReading { unix_ns: 1_000, monotonic_ns: 100 };
    assert_eq!(middle(requested, 140), ClockReading { unix_ns: 1_020, monotonic_ns: 120 });
    assert_eq!(middle(requested, 90), requested);
}

#[test]
fn a_date_is_nanoseconds_or_whole_seconds() {
    assert_eq!(read_clock("1700000000123456789"), Some((1_700_000_000_123_456_789, 1)));
    let second = Some((1_700_000_000 * NANOS_PER_SECOND, NANOS_PER_SECOND));
    assert_eq!(read_clock("1700000000%N"), second);
    assert_eq!(read_clock("1700000000N"), second);
    assert_eq!(read_clock("date: bad"), None);
}

#[test]
fn the_cost_is_that_of_the_shell_its_programs_and_its_sshd() {
    let stat = |name: &str, ticks: &str| format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 20");
    let texts = |parent: &str| -> Texts {
        [
            ("proc/7/stat".to_owned(), stat("sh", "1 2 30 4")),
            ("proc/6/stat".to_owned(), stat(parent, "5 6 700 800")),
        ]
        .into()
    };
    let ms = |cost: Option<u64>| cost.map(|ns| ns / 1_000_000);
    assert_eq!(ms(cost_ns(&texts("sshd"), 7, 6)), Some(480));
    assert_eq!(ms(cost_ns(&texts("sshd-session"), 7, 6)), Some(480));
    assert_eq!(ms(cost_ns(&texts("plimsoll"), 7, 6)), Some(370), "that is not its cost");
    assert_eq!(cost_ns(&Texts::new(), 7, 6), None);
}
