//! A host through the system's ssh: one child, which runs `script.sh` in the shell there and
//! answers a line with the texts of its files.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use plimsoll_model::units::NANOS_PER_SECOND;
use plimsoll_process::{ChildProcess, Tail};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use super::messages::{Assembler, Message};
use super::{ClockOffset, Fact, Fetched, Lost, Peer, SAMPLE_WAIT, SourceOptions, middle};
use crate::clock::{self, ClockReading};
use crate::inventory::{self, DiskTree};
use crate::process::ticks_to_ns;
use crate::root::{Frame, Root, Texts};

const SCRIPT: &str = include_str!("script.sh");
/// Until the shell there greets: a connection, keys, a shell's start-up files.
const GREETING_WAIT: Duration = Duration::from_secs(15);
/// The same for a host that answered before, and the load runs.
const COMEBACK_WAIT: Duration = Duration::from_secs(6);
/// Exchanges for the clock; a few milliseconds each.
const PINGS: u64 = 8;
/// A line of `/proc/stat` has a number per interrupt: some 100 kB on the largest hosts.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Messages that wait to be taken. Beyond, the other side waits.
const MESSAGES_MAX: usize = 4;

/// Where to log on.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

/// A host's addresses, and its disks.
type HostDescription = (Vec<IpAddr>, DiskTree);

#[derive(Debug)]
pub(super) struct SshPeer {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// As `/proc/net/tcp` writes them.
    ports: String,
    channel: Option<Channel>,
    rescan: bool,
    read_all: bool,
}

impl SshPeer {
    /// Logs on, and reads the clock, the addresses and what the disks are made of.
    pub(super) fn open(
        destination: Destination,
        options: &SourceOptions,
    ) -> Result<(Self, Vec<Fact>, HostDescription), Lost> {
        let mut peer = Self {
            program: options.ssh.clone(),
            arguments: arguments(&destination),
            ports: String::new(),
            channel: None,
            rescan: true,
            read_all: false,
        };
        let mut channel = peer.connect(GREETING_WAIT)?;
        let offset = channel.clock()?;
        let described = channel.describe()?;
        let facts =
            vec![("system", channel.system.clone()), ("clock", offset.text(PINGS as usize))];
        peer.channel = Some(channel);
        Ok((peer, facts, described))
    }

    fn connect(&self, wait: Duration) -> Result<Channel, Lost> {
        Channel::open(&self.program, &self.arguments, wait)
    }
}

impl Peer for SshPeer {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        let mut channel = match self.channel.take() {
            Some(channel) => channel,
            None => {
                self.rescan = true;
                self.connect(COMEBACK_WAIT)?
            }
        };
        if std::mem::take(&mut self.rescan) {
            channel.send(&format!("scan {}", self.ports))?;
        }
        if std::mem::take(&mut self.read_all) {
            channel.send("all")?;
        }
        // A channel that fails is dropped, and with it the child.
        let (fetched, texts) = channel.sample()?;
        frame.replace(texts);
        self.channel = Some(channel);
        Ok(Some(fetched))
    }

    fn watch_ports(&mut self, ports: &[u16]) {
        let ports: Vec<String> = ports.iter().map(|port| format!("{port:04X}")).collect();
        self.ports = ports.join(" ");
        self.rescan = true;
    }

    fn rescan(&mut self) {
        self.rescan = true;
    }

    fn read_all(&mut self) {
        self.read_all = true;
    }

    fn keep_to(&mut self, cores: &[u32]) {
        let Some(channel) = &self.channel else { return };
        let mut set = CpuSet::new();
        for core in cores.iter().filter(|core| (**core as usize) < CpuSet::MAX_CPU) {
            set.set(*core as usize);
        }
        if !cores.is_empty() {
            // Where it is not permitted ssh runs elsewhere; it needs little.
            let _ = sched_setaffinity(Pid::from_raw(channel.child.id() as i32), &set);
        }
    }
}

/// No question to a person, no terminal, nothing forwarded; a host that vanishes is noticed.
pub(super) fn arguments(destination: &Destination) -> Vec<OsString> {
    let options = [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=2",
        "ClearAllForwardings=yes",
    ];
    let mut arguments: Vec<OsString> = vec!["-T".into()];
    for option in options {
        arguments.extend(["-o".into(), option.into()]);
    }
    if let Some(port) = destination.port {
        arguments.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = &destination.user {
        arguments.extend(["-l".into(), user.into()]);
    }
    arguments.extend(["--".into(), destination.host.clone().into(), "exec sh".into()]);
    arguments
}

/// A child whose loop has greeted; the loop ends with its input.
#[derive(Debug)]
struct Channel {
    /// It reads the questions.
    child: ChildProcess,
    /// Each with the instant at which its last line arrived.
    answers: Receiver<(u64, Message)>,
    stderr: Tail,
    shell: u32,
    parent: u32,
    system: String,
    number: u64,
}

impl Channel {
    fn open(program: &PathBuf, arguments: &[OsString], wait: Duration) -> Result<Self, Lost> {
        let cannot = |e: std::io::Error| Lost(format!("cannot run {}: {e}", program.display()));
        let mut command = Command::new(program);
        command.args(arguments);
        let mut child = ChildProcess::start_with_pipes(command).map_err(cannot)?;
        let stderr = Tail::from_output(child.stderr.take()).map_err(cannot)?;
        let (sender, answers) = sync_channel(MESSAGES_MAX);
        if let Some(output) = child.stdout.take() {
            let reader = std::thread::Builder::new().name("plimsoll-source".into());
            reader.spawn(move || read_answers(output, &sender)).map_err(cannot)?;
        }
        let (shell, parent, system, number) = (0, 0, String::new(), 0);
        let mut channel = Self { child, answers, stderr, shell, parent, system, number };
        channel.send(SCRIPT.trim_end())?;
        match channel.answer(wait)? {
            (_, Message::Hello { shell, parent, system }) => {
                (channel.shell, channel.parent, channel.system) = (shell, parent, system);
                Ok(channel)
            }
            _ => Err(Lost("its shell answers out of turn".to_owned())),
        }
    }

    /// The best of some exchanges.
    fn clock(&mut self) -> Result<ClockOffset, Lost> {
        let mut best: Option<ClockOffset> = None;
        for number in 1..=PINGS {
            let requested = ClockReading::now();
            self.send(&format!("ping {number}"))?;
            let (answered_ns, printed) = match self.answer(SAMPLE_WAIT)? {
                (at, Message::Pong { number: same, clock }) if same == number => (at, clock),
                _ => continue,
            };
            let Some((reported_ns, step_ns)) = read_clock(&printed) else { continue };
            let offset = ClockOffset::from_exchange(requested, answered_ns, reported_ns, step_ns);
            best = Some(best.map_or(offset, |best| best.better(offset)));
        }
        best.ok_or_else(|| Lost("its `date` does not tell the time".to_owned()))
    }

    fn sample(&mut self) -> Result<(Fetched, Texts), Lost> {
        self.texts("sample")
    }

    /// The host's addresses, in the order of its tables, and its disks.
    fn describe(&mut self) -> Result<HostDescription, Lost> {
        let (_, texts) = self.texts("describe")?;
        let frame = Frame::default();
        frame.replace(texts);
        let root = Root::of_frame(frame);
        let all = inventory::addresses(&root);
        let addresses = all.iter().filter_map(|text| text.parse().ok()).collect();
        Ok((addresses, DiskTree::from_root(root)))
    }

    /// The texts with which the loop answers a word.
    fn texts(&mut self, word: &str) -> Result<(Fetched, Texts), Lost> {
        self.number += 1;
        let requested = ClockReading::now();
        self.send(&format!("{word} {}", self.number))?;
        let until_ns = requested.monotonic_ns.saturating_add(SAMPLE_WAIT.as_nanos() as u64);
        loop {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            let (_, message) = self.answer(Duration::from_nanos(left_ns))?;
            let Message::Whole(whole) = message else { continue };
            // An answer to a question that was given up.
            if whole.number != self.number {
                continue;
            }
            let fetched = Fetched {
                at: middle(requested, whole.begun_ns),
                servers: whole.servers,
                cost_ns: cost_ns(&whole.texts, self.shell, self.parent),
                figures: None,
            };
            return Ok((fetched, whole.texts));
        }
    }

    fn send(&mut self, line: &str) -> Result<(), Lost> {
        let sent = match &mut self.child.stdin {
            Some(questions) => {
                questions.write_all(format!("{line}\n").as_bytes()).and_then(|()| questions.flush())
            }
            None => Ok(()),
        };
        // It has ended; its message has the reason.
        sent.map_err(|_| self.ended())
    }

    fn answer(&mut self, wait: Duration) -> Result<(u64, Message), Lost> {
        match self.answers.recv_timeout(wait) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                Err(Lost(format!("no answer within {:.0} s", wait.as_secs_f64().ceil())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// The message of ssh at its end.
    fn ended(&mut self) -> Lost {
        self.child.stdin = None;
        let status = self.child.wait();
        let mut stderr = self.stderr.text();
        stderr.retain(|c| c == '\n' || !c.is_control());
        let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Lost(match (&lines[..], status) {
            ([], Ok(status)) => format!("ssh ended without a word ({status})"),
            ([], Err(e)) => format!("ssh ended: {e}"),
            (lines, _) => format!("ssh: {}", lines.join(" ")),
        })
    }
}

fn read_answers(output: impl Read, answers: &SyncSender<(u64, Message)>) {
    let mut output = BufReader::new(output);
    let mut assembler = Assembler::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let now_ns = clock::monotonic_ns();
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if let Some(message) = assembler.line(text, now_ns)
            && answers.send((now_ns, message)).is_err()
        {
            return;
        }
    }
}

/// What `date +%s%N` printed, and the step of it: a date without `%N` prints whole seconds.
fn read_clock(text: &str) -> Option<(u64, u64)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    match digits {
        ..=11 => Some((number.checked_mul(NANOS_PER_SECOND)?, NANOS_PER_SECOND)),
        _ => Some((number, 1)),
    }
}

/// CPU time of the shell there with the programs it ran, and of the sshd above it.
fn cost_ns(texts: &Texts, shell: u32, parent: u32) -> Option<u64> {
    // Fields 14 to 17 of the manual: own and of children that ended.
    let ticks = |pid: u32, count: usize| -> Option<u64> {
        let (head, tail) = texts.get(&format!("proc/{pid}/stat"))?.rsplit_once(')')?;
        let is_ours = pid == shell || head.contains("(sshd");
        let tokens = tail.split_whitespace().skip(11).take(count);
        is_ours.then(|| tokens.filter_map(|word| word.parse::<u64>().ok()).sum())
    };
    Some(ticks_to_ns(ticks(shell, 4)? + ticks(parent, 2).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
