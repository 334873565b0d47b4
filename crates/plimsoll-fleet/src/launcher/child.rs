//! An agent's process: the command of a launcher, with its pipes.
//!
//! Two threads serve it. One waits for standard output, standard error and the end, and hands each
//! of them on; one writes. So a child that reads nothing, or prints without end, delays neither the
//! controller nor another agent.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use thiserror::Error;

use super::command::LaunchCommand;
use super::lines::Lines;

/// Frames that wait to be written; heartbeats of half a minute. A child that is so far behind is
/// long taken for lost.
const FRAMES_MAX: usize = 64;
/// What is read at once: all that a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;
/// What may be left in a pipe whose writer has ended; the kernel's limit for users.
const LEFT_BYTES_MAX: usize = 1024 * 1024;
/// Threads of many agents share this process; theirs hardly call anything.
const STACK_BYTES: usize = 128 * 1024;
/// A child has this long to end after its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// What a child does.
#[derive(Debug)]
pub enum ChildEvent {
    /// It wrote to standard output.
    Bytes(Vec<u8>),
    /// It wrote a line to standard error. Control characters are escaped, long lines cut.
    Line(String),
    /// It ended; nothing follows.
    Ended(End),
}

/// How a child ended. [`super::explain`] says what that means.
#[derive(Clone, Debug)]
pub struct End {
    /// Of the launcher; most pass on the agent's.
    pub status: ExitStatus,
    /// The last lines of standard error, the newest last.
    pub last_lines: Vec<String>,
}

/// Takes the events of one child, on a thread of the child's. It may wait: then the child waits
/// too. Whoever wants to know when bytes arrived reads the clock in it.
pub type Sink = Box<dyn FnMut(ChildEvent) + Send>;

/// A launcher that cannot be started.
#[derive(Debug, Error)]
#[error("cannot run {program}: {source}; install it, or give its folder in PATH")]
pub struct StartError {
    /// Its name or path.
    pub program: String,
    /// Why.
    pub source: io::Error,
}

/// A frame that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotSent {
    /// The child does not read: so many frames wait already.
    #[error("it does not read what it is sent")]
    Stalled,
    /// Its input is closed.
    #[error("its input is closed")]
    Closed,
}

/// A child, in a process group of its own: Ctrl-C is for the controller, which ends its children
/// itself. Ended when dropped.
#[derive(Debug)]
pub struct AgentProcess {
    child: Arc<Mutex<Child>>,
    /// Readable once the child has ended.
    life: Arc<OwnedFd>,
    frames: Option<SyncSender<Arc<[u8]>>>,
}

impl AgentProcess {
    /// Starts the command. `sink` gets what it does from now on.
    pub fn start(command: &LaunchCommand, sink: Sink) -> Result<Self, StartError> {
        let program = command.program.to_string_lossy().into_owned();
        Self::spawn(command, sink).map_err(|source| StartError { program, source })
    }

    fn spawn(command: &LaunchCommand, sink: Sink) -> io::Result<Self> {
        let mut command = command.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let life = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(life) => Arc::new(life),
            Err(e) => {
                child.kill()?;
                child.wait()?;
                return Err(e.into());
            }
        };
        let (frames, queue) = sync_channel(FRAMES_MAX);
        let child = Arc::new(Mutex::new(child));
        // From here on dropping it ends the child.
        let process = Self { child, life, frames: Some(frames) };
        let (child, life) = (Arc::clone(&process.child), Arc::clone(&process.life));
        let lines = Lines::default();
        let reader = Reader { output, errors, life, lines, sink, chunk: vec![0; CHUNK_BYTES] };
        start_thread("plimsoll-agent-out", move || reader.run(&child))?;
        let life = Arc::clone(&process.life);
        start_thread("plimsoll-agent-in", move || write_frames(input, &life, &queue))?;
        Ok(process)
    }

    /// Has a frame written to its standard input; never waits.
    pub fn send(&self, frame: Arc<[u8]>) -> Result<(), NotSent> {
        let frames = self.frames.as_ref().ok_or(NotSent::Closed)?;
        frames.try_send(frame).map_err(|unsent| match unsent {
            TrySendError::Full(_) => NotSent::Stalled,
            TrySendError::Disconnected(_) => NotSent::Closed,
        })
    }

    /// Closes its standard input once what was sent is written.
    pub fn close(&mut self) {
        self.frames = None;
    }

    /// Ends it, within three seconds: closes its input, asks with SIGTERM, and at last kills. Only
    /// the launcher is signalled: when srun is killed with its whole group, the task lives on.
    pub fn end(&mut self) {
        self.close();
        for signal in [Signal::TERM, Signal::KILL] {
            if self.has_ended_within(GRACE) {
                break;
            }
            // Where it has just ended there is nothing to signal.
            let _ = pidfd_send_signal(&self.life, signal);
        }
        if self.has_ended_within(GRACE) {
            // The reader may wait for its sink: the child is not left to it.
            let _ = reap(&self.child);
        }
    }

    fn has_ended_within(&self, wait: Duration) -> bool {
        let timeout =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.life, PollFlags::IN)];
        poll_again(&mut fds, Some(&timeout)) && !fds[0].revents().is_empty()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends many at once, in the time of the slowest.
pub fn end_all(processes: &mut [AgentProcess]) {
    for process in &mut *processes {
        process.close();
    }
    thread::scope(|scope| {
        for process in processes {
            let ending = thread::Builder::new().stack_size(STACK_BYTES);
            // Without a thread it is ended when it is dropped.
            let _ = ending.spawn_scoped(scope, || process.end());
        }
    });
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    builder.spawn(body).map(drop)
}

/// Of a child that has ended. The status is kept for whoever asks again.
fn reap(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    child.lock().unwrap_or_else(PoisonError::into_inner).wait()
}

/// False where nothing can be waited for.
fn poll_again(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> bool {
    loop {
        match poll(fds, timeout) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return polled.is_ok(),
        }
    }
}

struct Reader {
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    life: Arc<OwnedFd>,
    lines: Lines,
    sink: Sink,
    chunk: Vec<u8>,
}

/// What can be read.
#[derive(Default)]
struct Ready {
    output: bool,
    errors: bool,
    end: bool,
}

impl Reader {
    fn run(mut self, child: &Mutex<Child>) {
        loop {
            let ready = self.ready(None);
            self.read(&ready);
            if ready.end {
                break;
            }
        }
        let status = reap(child);
        self.read_rest();
        let sink = &mut self.sink;
        self.lines.finish(|line| sink(ChildEvent::Line(line)));
        // Nobody else reaps children of this process: there is a status.
        if let Ok(status) = status {
            (self.sink)(ChildEvent::Ended(End { status, last_lines: self.lines.last() }));
        }
    }

    /// Who has inherited its pipes may keep them open, and is not waited for.
    fn read_rest(&mut self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut read_bytes = 0;
        while read_bytes < LEFT_BYTES_MAX {
            let ready = self.ready(Some(&now));
            if !ready.output && !ready.errors {
                break;
            }
            read_bytes += self.read(&ready);
        }
    }

    fn ready(&self, timeout: Option<&Timespec>) -> Ready {
        let output = self.output.as_ref().map(AsFd::as_fd);
        let errors = self.errors.as_ref().map(AsFd::as_fd);
        let all = [Some(self.life.as_fd()), output, errors];
        let mut fds: Vec<PollFd<'_>> =
            all.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        if !poll_again(&mut fds, timeout) {
            // Without memory for a poll; the end is waited for elsewhere too.
            return Ready { end: true, ..Ready::default() };
        }
        let mut polled = fds.iter().map(|fd| !fd.revents().is_empty());
        Ready {
            end: polled.next() == Some(true),
            output: output.is_some() && polled.next() == Some(true),
            errors: errors.is_some() && polled.next() == Some(true),
        }
    }

    /// A chunk of each that is ready: neither waits for the other's end.
    fn read(&mut self, ready: &Ready) -> usize {
        let mut total = 0;
        if ready.output {
            let bytes = read_chunk(&mut self.output, &mut self.chunk);
            if !bytes.is_empty() {
                (self.sink)(ChildEvent::Bytes(bytes.to_vec()));
            }
            total += bytes.len();
        }
        if ready.errors {
            let bytes = read_chunk(&mut self.errors, &mut self.chunk);
            let sink = &mut self.sink;
            self.lines.feed(bytes, |line| sink(ChildEvent::Line(line)));
            total += bytes.len();
        }
        total
    }
}

/// At the end of a stream it is forgotten.
fn read_chunk<'a>(stream: &mut Option<impl Read>, chunk: &'a mut [u8]) -> &'a [u8] {
    let read = stream.as_mut().map_or(Ok(0), |open| open.read(chunk));
    match read {
        Ok(n @ 1..) => &chunk[..n],
        Err(e) if e.kind() == ErrorKind::Interrupted => &[],
        _ => {
            *stream = None;
            &[]
        }
    }
}

/// Until the queue is closed, or the child ends. Dropping the input closes it.
fn write_frames(input: Option<ChildStdin>, life: &OwnedFd, queue: &Receiver<Arc<[u8]>>) {
    let Some(mut input) = input else { return };
    // A write that waits would not see the end of a child whose heirs keep its input open.
    if rustix::io::ioctl_fionbio(&input, true).is_err() {
        return;
    }
    for frame in queue {
        if write_all(&mut input, life, &frame).is_err() {
            return;
        }
    }
}

fn write_all(input: &mut ChildStdin, life: &OwnedFd, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match input.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => rest = &rest[n..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut fds =
                    [PollFd::new(life, PollFlags::IN), PollFd::new(&*input, PollFlags::OUT)];
                if !poll_again(&mut fds, None) || !fds[0].revents().is_empty() {
                    return Err(ErrorKind::BrokenPipe.into());
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
