//! The commands that set a level: `sh -c`, with `$LEVEL` in the environment. If a command fails,
//! hangs or does not verify, its output is recorded as data; the program never ends.

use std::io::{self, pipe};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_model::comparison::experiment::{Hook, HookEnd, HookFailure};
use plimsoll_process::{ChildProcess, Tail};
use plimsoll_servers::cores;
use rustix::process::Signal;

use crate::clock::Stopwatch;
use crate::signals::Signals;

/// How long a command may take to end after SIGTERM before SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Pause between two checks whether the user requests the end.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The commands for a level of a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelCommands {
    /// The factor.
    pub factor: String,
    /// The value of `$LEVEL`.
    pub level: String,
    /// Sets it; `None` if the user does.
    pub set: Option<String>,
    /// Succeeds if the level is set.
    pub verify: Option<String>,
    /// Pause after it was set.
    pub settle: Duration,
    /// Longest duration of each command.
    pub timeout: Duration,
    /// Cores that commands run on: a run pins this program to cores of its own, and a server that a
    /// command starts must not inherit them.
    pub cores: Vec<u32>,
    /// Further environment of the commands.
    pub more: Vec<(&'static str, String)>,
}

/// Why a level is not set.
#[derive(Debug)]
pub enum NotSet {
    /// A command failed.
    Failed(Box<HookFailure>),
    /// The user requested the end.
    Interrupted,
}

impl LevelCommands {
    /// Sets the level, waits until it has settled, and verifies it.
    pub fn set(&self, signals: &Signals) -> Result<(), NotSet> {
        if let Some(set) = &self.set {
            self.call(Hook::Set, set, signals)?;
        }
        wait(self.settle, signals)?;
        self.verify(signals)
    }

    /// Checks whether the level is set.
    pub fn verify(&self, signals: &Signals) -> Result<(), NotSet> {
        let Some(verify) = &self.verify else { return Ok(()) };
        self.call(Hook::Verify, verify, signals)
    }

    /// Restores the state before the experiment.
    pub fn undo(&self, command: &str, signals: &Signals) -> Result<(), NotSet> {
        self.call(Hook::Undo, command, signals)
    }

    fn call(&self, hook: Hook, command: &str, signals: &Signals) -> Result<(), NotSet> {
        let failed = |end: HookEnd, output: String| {
            NotSet::Failed(Box::new(HookFailure {
                factor: self.factor.clone(),
                level: self.level.clone(),
                hook,
                command: command.to_owned(),
                end,
                output,
            }))
        };
        let not_started = |e: io::Error| failed(HookEnd::NotStarted, e.to_string());
        let (child, output) = self.start(command).map_err(not_started)?;
        let end = wait_for(&child, self.timeout, signals).map_err(not_started)?;
        match end {
            Waited::Ended(status) if status.success() => Ok(()),
            Waited::Ended(status) => {
                Err(failed(end_of(status), output.text().trim_end().to_owned()))
            }
            Waited::Hung => Err(failed(
                HookEnd::TimedOut(self.timeout.as_secs()),
                output.text().trim_end().to_owned(),
            )),
            Waited::Interrupted => Err(NotSet::Interrupted),
        }
    }

    fn start(&self, command: &str) -> io::Result<(ChildProcess, Tail)> {
        let (output, writer) = pipe()?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .env("LEVEL", &self.level)
            .envs(self.more.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = cores::on_cores(&self.cores, || ChildProcess::start(shell))??;
        Ok((child, Tail::from_output(Some(output))?))
    }
}

fn end_of(status: ExitStatus) -> HookEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => HookEnd::Exit(code),
        (None, signal) => HookEnd::Signal(signal.unwrap_or_default()),
    }
}

/// The outcome of waiting for a command.
enum Waited {
    Ended(ExitStatus),
    Hung,
    Interrupted,
}

fn wait_for(child: &ChildProcess, timeout: Duration, signals: &Signals) -> io::Result<Waited> {
    let since = Stopwatch::start();
    loop {
        if let Some(status) = child.wait_for(LOOK_AGAIN)? {
            return Ok(Waited::Ended(status));
        }
        let interrupted = signals.is_stop_requested();
        if interrupted || since.elapsed() >= timeout {
            end(child)?;
            return Ok(if interrupted { Waited::Interrupted } else { Waited::Hung });
        }
    }
}

/// Ends a command and everything it started.
fn end(child: &ChildProcess) -> io::Result<()> {
    child.signal_group(Signal::TERM);
    child.wait_for(STOP_GRACE)?;
    child.signal_group(Signal::KILL);
    child.wait().map(drop)
}

/// Waits, unless the user requests the end.
fn wait(span: Duration, signals: &Signals) -> Result<(), NotSet> {
    let since = Stopwatch::start();
    while since.elapsed() < span {
        if signals.is_stop_requested() {
            return Err(NotSet::Interrupted);
        }
        thread::sleep(LOOK_AGAIN.min(span.saturating_sub(since.elapsed())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::program::{is_alive, kill, wait_until};

    use super::*;

    fn level(set: &str, verify: Option<&str>) -> LevelCommands {
        LevelCommands {
            factor: "cache".to_owned(),
            level: "on".to_owned(),
            set: Some(set.to_owned()),
            verify: verify.map(str::to_owned),
            settle: Duration::ZERO,
            timeout: Duration::from_secs(20),
            cores: Vec::new(),
            more: vec![("SERVER_PID", "7".to_owned())],
        }
    }

    fn failure(commands: &LevelCommands) -> HookFailure {
        match commands.set(&Signals::unheard()) {
            Err(NotSet::Failed(failure)) => *failure,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_level_is_set_and_verified_with_its_value_in_the_environment() {
        let all = r#"test "$LEVEL $SERVER_PID" = "on 7""#;
        level(all, Some(all)).set(&Signals::unheard()).unwrap();
    }

    #[test]
    fn a_command_that_fails_or_lies_is_told_with_its_output() {
        let failed = failure(&level("echo no such disk >&2; exit 3", None));
        assert_eq!((failed.hook, failed.end), (Hook::Set, HookEnd::Exit(3)));
        assert_eq!(failed.output, "no such disk");
        let lied = failure(&level("true", Some("echo it is off; false")));
        assert_eq!(
            (lied.hook, lied.end, lied.output.as_str()),
            (Hook::Verify, HookEnd::Exit(1), "it is off")
        );
        let killed = failure(&level("kill -9 $$", None));
        assert_eq!(killed.end, HookEnd::Signal(9));
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let temp_dir = tempfile::tempdir().unwrap();
        let pid = temp_dir.path().join("pid");
        let timeout = Duration::from_secs(3);
        let script = format!("echo waiting; sleep 300 & echo $! > {}; wait", pid.display());
        let hung = failure(&LevelCommands { timeout, ..level(&script, None) });
        assert_eq!((hung.end, hung.output.as_str()), (HookEnd::TimedOut(3), "waiting"));
        let child: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        wait_until("its child is gone", || !is_alive(child));
    }

    #[test]
    fn a_program_left_behind_does_not_hold_the_experiment_up() {
        let temp_dir = tempfile::tempdir().unwrap();
        let pid = temp_dir.path().join("pid");
        let script = format!("sleep 300 & echo $! > {}", pid.display());
        level(&script, None).set(&Signals::unheard()).unwrap();
        let child: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        assert!(is_alive(child), "servers are started like this");
        kill(child, "KILL");
    }
}
