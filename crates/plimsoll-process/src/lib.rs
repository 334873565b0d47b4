//! Child processes: servers, launchers of agents, ssh, perf, commands of experiments.

#![warn(unreachable_pub)]

mod tail;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

pub use tail::Tail;

/// A child in a process group of its own: Ctrl-C on a terminal reaches only this program, which
/// ends its children itself. One that still runs is killed when this is dropped.
#[derive(Debug)]
pub struct ChildProcess {
    /// Its standard input if that is a pipe. Dropping it closes the pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error if that is a pipe.
    pub stderr: Option<ChildStderr>,
    pid: Pid,
    /// Readable once it has ended. Signals sent through it reach no other process.
    pidfd: OwnedFd,
    child: Mutex<Child>,
}

impl ChildProcess {
    /// Starts the command.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(e) => {
                child.kill()?;
                child.wait()?;
                return Err(e.into());
            }
        };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Self { stdin, stdout, stderr, pid, pidfd, child: Mutex::new(child) })
    }

    /// Starts the command with pipes for its three standard streams.
    pub fn start_with_pipes(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::start(command)
    }

    /// Its process id, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_pid().cast_unsigned()
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()
    }

    /// Its exit status if it ends within this time.
    pub fn wait_for(&self, longest: Duration) -> io::Result<Option<ExitStatus>> {
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        poll(&mut fds, Some(longest))?;
        let has_ended = !fds[0].revents().is_empty();
        has_ended.then(|| self.wait()).transpose()
    }

    /// Sends it a signal; does nothing once it has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Sends a signal to all processes of its group, which may outlive it.
    pub fn signal_group(&self, signal: Signal) {
        // An error means that they are gone.
        let _ = kill_process_group(self.pid, signal);
    }
}

impl AsFd for ChildProcess {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // An error can no longer be reported.
        let _ = self.wait();
    }
}

/// Waits until one of these is ready, or the time has passed. Interruptions by signals do not end
/// it.
pub fn poll(fds: &mut [PollFd<'_>], longest: Option<Duration>) -> io::Result<()> {
    // A time beyond the range of the system is as good as none.
    let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
    loop {
        match rustix::event::poll(fds, longest.as_ref()) {
            Err(Errno::INTR) => {}
            polled => return Ok(polled.map(drop)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// Longer than any test may take.
    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_end_is_waited_for_no_longer_than_requested() {
        let child = ChildProcess::start_with_pipes(shell("exec cat")).unwrap();
        assert_eq!(child.wait_for(Duration::from_millis(20)).unwrap(), None);
        child.signal(Signal::TERM);
        for _ in 0..2 {
            let ended = child.wait_for(LONG).unwrap();
            assert_eq!(ended.and_then(|status| status.signal()), Some(15));
        }
        child.signal(Signal::TERM);
    }

    #[test]
    fn a_closed_input_is_an_end_for_who_reads_it() {
        let mut child = ChildProcess::start_with_pipes(shell("cat; exit 3")).unwrap();
        child.stdin = None;
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn a_child_that_is_dropped_has_ended() {
        let child = ChildProcess::start_with_pipes(shell("trap '' TERM; exec sleep 300")).unwrap();
        let status = format!("/proc/{}/status", child.id());
        assert!(std::fs::exists(&status).unwrap());
        drop(child);
        assert!(!std::fs::exists(&status).unwrap());
    }

    #[test]
    fn what_a_child_left_behind_ends_with_its_group() {
        let script = "sleep 300 & echo started; exit";
        let mut child = ChildProcess::start_with_pipes(shell(script)).unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(output.next().unwrap().unwrap(), "started");
        child.wait().unwrap();
        child.signal_group(Signal::KILL);
        assert!(output.next().is_none(), "the pipe is closed once all its writers have ended");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(ChildProcess::start(Command::new("/no/such/program")).is_err());
    }
}
