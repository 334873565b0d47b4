//! An agent's process: the command of a launcher, with its pipes.
//!
//! Two threads serve it. One waits for standard output, standard error and the end, and hands each
//! of them on; one writes. So a child that reads nothing, or prints without end, delays neither the
//! controller nor another agent.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use plimsoll_process::{ChildProcess, poll};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
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

/// How a child ended. [`super::explain`] explains it.
#[derive(Clone, Debug)]
pub struct End {
    /// Of the launcher; most pass on the agent's.
    pub status: ExitStatus,
    /// The last lines of standard error, the newest last.
    pub last_lines: Vec<String>,
}

/// Takes the events of one child, on a thread of the child's. It may wait: then the child waits
/// too. To learn when bytes arrived, read the clock in it.
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
    /// The child does not read: too many frames are already waiting.
    #[error("it does not read what it is sent")]
    Stalled,
    /// Its input is closed.
    #[error("its input is closed")]
    Closed,
}

/// A child. Ended when dropped.
#[derive(Debug)]
pub struct AgentProcess {
    child: Arc<ChildProcess>,
    frames: Option<SyncSender<Arc<[u8]>>>,
}

impl AgentProcess {
    /// Starts the command. `sink` gets what it does from now on.
    pub fn start(command: &LaunchCommand, sink: Sink) -> Result<Self, StartError> {
        let program = command.program.to_string_lossy().into_owned();
        Self::spawn(command, sink).map_err(|source| StartError { program, source })
    }

    fn spawn(command: &LaunchCommand, sink: Sink) -> io::Result<Self> {
        let mut child = ChildProcess::start_with_pipes(command.command())?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (frames, queue) = sync_channel(FRAMES_MAX);
        let child = Arc::new(child);
        // From here on dropping it ends the child.
        let process = Self { child: Arc::clone(&child), frames: Some(frames) };
        let (lines, chunk) = (Lines::default(), vec![0; CHUNK_BYTES]);
        let reader = Reader { output, errors, child: Arc::clone(&child), lines, sink, chunk };
        start_thread("plimsoll-agent-out", move || reader.run())?;
        start_thread("plimsoll-agent-in", move || write_frames(input, &child, &queue))?;
        Ok(process)
    }

    /// Has a frame written to its standard input; never waits.
    pub fn send(&self, frame: Arc<[u8]>) -> Result<(), NotSent> {
        self.frames.as_ref().ok_or(NotSent::Closed)?.try_send(frame).map_err(
            |unsent| match unsent {
                TrySendError::Full(_) => NotSent::Stalled,
                TrySendError::Disconnected(_) => NotSent::Closed,
            },
        )
    }

    /// Closes its standard input once what was sent is written.
    pub fn close(&mut self) {
        self.frames = None;
    }

    /// Ends it, within three seconds: closes its input, sends SIGTERM, then SIGKILL. Only the
    /// launcher is signalled: when srun is killed with its whole group, the task lives on.
    pub fn end(&mut self) {
        self.close();
        for signal in [Signal::TERM, Signal::KILL] {
            if self.has_ended_within(GRACE) {
                break;
            }
            self.child.signal(signal);
        }
        // The reader may wait for its sink: the child is not left to it.
        self.has_ended_within(GRACE);
    }

    fn has_ended_within(&self, wait: Duration) -> bool {
        matches!(self.child.wait_for(wait), Ok(Some(_)))
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
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body).map(drop)
}

struct Reader {
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    child: Arc<ChildProcess>,
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
    fn run(mut self) {
        loop {
            let ready = self.ready(None);
            self.read(&ready);
            if ready.end {
                break;
            }
        }
        let status = self.child.wait();
        self.read_rest();
        let sink = &mut self.sink;
        self.lines.finish(|line| sink(ChildEvent::Line(line)));
        // Nobody else reaps children of this process: there is a status.
        if let Ok(status) = status {
            (self.sink)(ChildEvent::Ended(End { status, last_lines: self.lines.last() }));
        }
    }

    /// Does not wait for processes that have inherited its pipes.
    fn read_rest(&mut self) {
        let mut read_bytes = 0;
        while read_bytes < LEFT_BYTES_MAX {
            let ready = self.ready(Some(Duration::ZERO));
            if !ready.output && !ready.errors {
                break;
            }
            read_bytes += self.read(&ready);
        }
    }

    fn ready(&self, longest: Option<Duration>) -> Ready {
        let output = self.output.as_ref().map(AsFd::as_fd);
        let errors = self.errors.as_ref().map(AsFd::as_fd);
        let all = [Some(self.child.as_fd()), output, errors];
        let mut fds: Vec<PollFd<'_>> =
            all.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        if poll(&mut fds, longest).is_err() {
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
fn write_frames(input: Option<ChildStdin>, child: &ChildProcess, queue: &Receiver<Arc<[u8]>>) {
    let Some(mut input) = input else { return };
    // A write that waits would not see the end of a child whose heirs keep its input open.
    if rustix::io::ioctl_fionbio(&input, true).is_err() {
        return;
    }
    for frame in queue {
        if write_all(&mut input, child, &frame).is_err() {
            return;
        }
    }
}

fn write_all(input: &mut ChildStdin, child: &ChildProcess, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match input.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => rest = &rest[n..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut fds =
                    [PollFd::new(child, PollFlags::IN), PollFd::new(&*input, PollFlags::OUT)];
                poll(&mut fds, None)?;
                if !fds[0].revents().is_empty() {
                    return Err(ErrorKind::BrokenPipe.into());
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
