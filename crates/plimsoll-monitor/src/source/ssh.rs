//! A host through the system's ssh: one child, which runs `script.sh` in the shell there and answers
//! a line with the texts of its files.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_model::units::NANOS_PER_SECOND;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use super::messages::{Assembler, Message};
use super::{ClockOffset, Fact, Fetched, Lost, Peer, SAMPLE_WAIT, SourceWish, middle};
use crate::clock::{self, ClockReading};
use crate::process::ticks_to_ns;
use crate::root::{Frame, Texts};

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
/// Longest wait for them to arrive, after its end.
const WORDS_WAIT: Duration = Duration::from_secs(1);
/// What is kept of the words of a failing ssh.
const WORDS_BYTES_MAX: usize = 4 * 1024;

/// Where to log on.
#[derive(Clone, Debug)]
pub(super) struct Whom {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

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
    /// Logs on, and asks for the clock.
    pub(super) fn open(whom: Whom, wish: &SourceWish) -> Result<(Self, Vec<Fact>), Lost> {
        let mut peer = Self {
            program: wish.ssh.clone(),
            arguments: arguments(&whom),
            ports: String::new(),
            channel: None,
            rescan: true,
            read_all: false,
        };
        let mut channel = peer.connect(GREETING_WAIT)?;
        let offset = channel.clock()?;
        let facts =
            vec![("system", channel.system.clone()), ("clock", offset.text(PINGS as usize))];
        peer.channel = Some(channel);
        Ok((peer, facts))
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
pub(super) fn arguments(whom: &Whom) -> Vec<OsString> {
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
    if let Some(port) = whom.port {
        arguments.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = &whom.user {
        arguments.extend(["-l".into(), user.into()]);
    }
    arguments.extend(["--".into(), whom.host.clone().into(), "exec sh".into()]);
    arguments
}

/// A child whose loop has greeted.
#[derive(Debug)]
struct Channel {
    child: Child,
    questions: Option<ChildStdin>,
    /// Each with the instant at which its last line arrived.
    answers: Receiver<(u64, Message)>,
    words: Arc<Mutex<String>>,
    /// Closed when there are no more of them.
    all_said: Receiver<()>,
    shell: u32,
    parent: u32,
    system: String,
    number: u64,
}

impl Channel {
    fn open(program: &PathBuf, arguments: &[OsString], wait: Duration) -> Result<Self, Lost> {
        let cannot = |e: std::io::Error| Lost(format!("cannot run {}: {e}", program.display()));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this program, which ends its children itself.
        command.process_group(0);
        let mut child = command.spawn().map_err(cannot)?;
        let words = Arc::new(Mutex::new(String::new()));
        let (sender, answers) = sync_channel(MESSAGES_MAX);
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (saying, all_said) = sync_channel(0);
        let kept = Arc::clone(&words);
        let questions = child.stdin.take();
        let mut channel = Self {
            child,
            questions,
            answers,
            words,
            all_said,
            shell: 0,
            parent: 0,
            system: String::new(),
            number: 0,
        };
        if let (Some(output), Some(errors)) = (output, errors) {
            start_thread(move || read_answers(output, &sender)).map_err(cannot)?;
            let keep = move || {
                keep_words(errors, &kept);
                drop(saying);
            };
            start_thread(keep).map_err(cannot)?;
        }
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
            let asked = ClockReading::now();
            self.send(&format!("ping {number}"))?;
            let (answered_ns, told) = match self.answer(SAMPLE_WAIT)? {
                (at, Message::Pong { number: same, clock }) if same == number => (at, clock),
                _ => continue,
            };
            let Some((told_ns, step_ns)) = read_clock(&told) else { continue };
            let offset = ClockOffset::of(asked, answered_ns, told_ns, step_ns);
            best = Some(best.map_or(offset, |best| best.better(offset)));
        }
        best.ok_or_else(|| Lost("its `date` does not tell the time".to_owned()))
    }

    fn sample(&mut self) -> Result<(Fetched, Texts), Lost> {
        self.number += 1;
        let asked = ClockReading::now();
        self.send(&format!("sample {}", self.number))?;
        let until_ns = asked.monotonic_ns.saturating_add(SAMPLE_WAIT.as_nanos() as u64);
        loop {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            let (_, message) = self.answer(Duration::from_nanos(left_ns))?;
            let Message::Whole(whole) = message else { continue };
            // An answer to a question that was given up.
            if whole.number != self.number {
                continue;
            }
            let fetched = Fetched {
                at: middle(asked, whole.begun_ns),
                servers: whole.servers,
                cost_ns: cost_ns(&whole.texts, self.shell, self.parent),
            };
            return Ok((fetched, whole.texts));
        }
    }

    fn send(&mut self, line: &str) -> Result<(), Lost> {
        let sent = match &mut self.questions {
            Some(questions) => {
                questions.write_all(format!("{line}\n").as_bytes()).and_then(|()| questions.flush())
            }
            None => Ok(()),
        };
        // It has ended; why, it has said.
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

    /// What ssh said at its end.
    fn ended(&mut self) -> Lost {
        self.questions = None;
        let status = self.child.wait();
        // Its words arrive on another thread, which ends with it.
        let _ = self.all_said.recv_timeout(WORDS_WAIT);
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = words.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Lost(match (&words[..], status) {
            ([], Ok(status)) => format!("ssh ended without a word ({status})"),
            ([], Err(e)) => format!("ssh ended: {e}"),
            (words, _) => format!("ssh: {}", words.join(" ")),
        })
    }
}

impl Drop for Channel {
    /// The loop there ends with its input.
    fn drop(&mut self) {
        self.questions = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_thread(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("plimsoll-source".into()).spawn(body).map(drop)
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

fn keep_words(mut errors: impl Read, kept: &Mutex<String>) {
    let mut buffer = [0; 512];
    while let Ok(n @ 1..) = errors.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < WORDS_BYTES_MAX {
            let text = String::from_utf8_lossy(&buffer[..n]);
            kept.extend(text.chars().filter(|c| *c == '\n' || !c.is_control()));
        }
    }
}

/// What `date +%s%N` printed, and the step of it: a date without `%N` tells whole seconds.
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
        let words = tail.split_whitespace().skip(11).take(count);
        is_ours.then(|| words.filter_map(|word| word.parse::<u64>().ok()).sum())
    };
    Some(ticks_to_ns(ticks(shell, 4)? + ticks(parent, 2).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
