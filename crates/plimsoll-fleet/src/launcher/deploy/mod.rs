//! `--deploy`: sends this program, as it is, to a host that lacks it, in the same way as the agent
//! is started. It goes into the user's cache directory, under its version and hash: what is already
//! there is not sent again, and no other version is touched.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use plimsoll_model::bundle::sha256_of;
use thiserror::Error;

use super::child::{AgentProcess, ChildEvent, End, NotSent, StartError};
use super::command::LaunchCommand;
use super::explain::{explain, is_missing};
use super::lines::printable;
use super::spec::AgentSpec;
use crate::frame::MAGIC;

/// What follows was printed by a script of ours, and not by a shell's start-up files.
const MARK: &str = "plimsoll-deploy";
/// Of the program's hash in the name of its folder.
const HASH_DIGITS: usize = 16;
/// Until a program of some 30 MB has arrived over 1 Mbit/s.
const SEND_WAIT: Duration = Duration::from_secs(300);
/// Longest uninterruptible wait.
const LOOK_UP: Duration = Duration::from_millis(100);
/// Some lines are due.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What is sent.
#[derive(Clone)]
pub struct Parcel {
    /// The program's file.
    content: Arc<[u8]>,
    /// Of the content, in hexadecimal.
    sha256: String,
    /// What `plimsoll --version` must print there, among other text.
    version: String,
    /// As `uname -m` names it.
    machine: String,
}

/// How long to wait for a host.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// Until it has answered: a connection, a queue, a shell.
    pub answer: Duration,
    /// Ends all waits.
    pub stop: &'a AtomicBool,
}

/// Where the program is on an agent's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// Its path there: [`super::spec::Settings::program`] of its agents.
    pub program: String,
    /// It was not there before.
    pub was_sent: bool,
}

/// Why the program cannot run on an agent's host.
#[derive(Debug, Error)]
pub enum DeployError {
    /// The launcher is not there.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The launcher ended before all was done.
    #[error("{0}")]
    Ended(String),
    /// Nothing came.
    #[error("no answer within {} s: is a password or a queue in the way?", .0.as_secs())]
    Silent(Duration),
    /// The caller requested a stop.
    #[error("stopped")]
    Stopped,
    /// The host starts an agent whatever it is asked to start.
    #[error(
        "an agent answers where a shell should: this host starts one whatever it is asked for \
         (command= in authorized_keys, say), and needs no program; name its path (`program` in a \
         file of --agents), so that none is sent"
    )]
    Agent,
    /// There is no `sh`.
    #[error(
        "no POSIX shell is there to take the program in: install the program there (in a \
         container's image, say), and leave --deploy out"
    )]
    NoShell,
    /// Something else came.
    #[error("what came is no answer of a POSIX shell: {0:?}")]
    Unreadable(String),
    /// This program is for another kind of machine.
    #[error(
        "the host is a {there}, and this program is for {own}: install there a program built for \
         it, of the same version, and name its path (`program` in a file of --agents)"
    )]
    Machine {
        /// This one.
        own: String,
        /// That one.
        there: String,
    },
    /// It arrived as something else.
    #[error(
        "what arrived there is not what was sent: SHA-256 {actual} instead of {sent}; is its disk \
         full, or sha256sum missing?"
    )]
    Hash {
        /// Of this program.
        sent: String,
        /// Of the file there.
        actual: String,
    },
    /// It arrived, and does not run.
    #[error(
        "{program} arrived and does not run there: {output:?}; does the file system forbid it \
         (noexec), or has the host another C library?"
    )]
    DoesNotRun {
        /// Where it is.
        program: String,
        /// What it printed instead of its version.
        output: String,
    },
}

impl Parcel {
    /// Of this program's own file.
    pub fn read(own_program: &Path, version: &str) -> io::Result<Self> {
        let sha256 = sha256_of(&mut File::open(own_program)?)?;
        let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
        let content = std::fs::read(own_program)?.into();
        Ok(Self { content, sha256, version: version.to_owned(), machine })
    }

    /// Its folder and path, as variables of a shell script.
    fn path_variables(&self) -> String {
        let (version, hash) = (&self.version, &self.sha256[..HASH_DIGITS]);
        format!(
            "d=\"${{XDG_CACHE_HOME:-${{HOME:?}}/.cache}}/plimsoll/{version}-{hash}\"\n\
             p=\"$d/plimsoll\"\n"
        )
    }

    /// SHA-256 of the program, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Prints system, machine, path, and the hash of what is there.
    fn look(&self) -> String {
        let variables = self.path_variables();
        format!(
            "echo {MARK}\nuname -s\nuname -m\n{variables}echo \"$p\"\n\
             if test -x \"$p\"; then sha256sum < \"$p\"; fi\n"
        )
    }

    /// Stores its standard input; prints the hash of what arrived, and the version. What arrived
    /// broken never has the program's name.
    fn store(&self) -> String {
        let (variables, sha256) = (self.path_variables(), &self.sha256);
        format!(
            "{variables}umask 077\nmkdir -p \"$d\" && t=\"$d/sent.$$\" || exit\n\
             trap 'rm -f \"$t\"' EXIT\n\
             cat > \"$t\" && chmod 755 \"$t\" || exit\n\
             echo {MARK}\nh=$(sha256sum < \"$t\")\necho \"${{h%% *}}\"\n\
             test \"${{h%% *}}\" = {sha256} || exit 0\n\
             mv \"$t\" \"$p\" || exit\n\
             \"$p\" --version < /dev/null 2>&1\nexit 0\n"
        )
    }
}

/// Makes sure that the program is on the agent's host.
pub fn deploy(
    spec: &AgentSpec,
    parcel: &Parcel,
    patience: Patience<'_>,
) -> Result<Deployed, DeployError> {
    let run = |script: &str, input: &Arc<[u8]>, answer| {
        let command = LaunchCommand::script(spec, script);
        Step::start(&command, input)?.finish(spec, Patience { answer, ..patience })
    };
    let nothing: Arc<[u8]> = Arc::from([].as_slice());
    let lines = run(&parcel.look(), &nothing, patience.answer)?;
    let [system, machine, program, hash @ ..] = &lines[..] else {
        return Err(DeployError::Unreadable(lines.join("\n")));
    };
    if system != "Linux" || *machine != parcel.machine {
        let own = format!("Linux {}", parcel.machine);
        return Err(DeployError::Machine { own, there: format!("{system} {machine}") });
    }
    let program = program.clone();
    if hash.first().is_some_and(|hash| hash.starts_with(&parcel.sha256)) {
        return Ok(Deployed { program, was_sent: false });
    }
    let lines = run(&parcel.store(), &parcel.content, patience.answer + SEND_WAIT)?;
    match lines.split_first() {
        Some((hash, output)) if *hash == parcel.sha256 => {
            let output = output.join("\n");
            if output.contains(&parcel.version) {
                return Ok(Deployed { program, was_sent: true });
            }
            Err(DeployError::DoesNotRun { program, output })
        }
        rest => {
            let actual = rest.map(|(hash, _)| hash.clone()).unwrap_or_default();
            Err(DeployError::Hash { sent: parcel.sha256.clone(), actual })
        }
    }
}

/// A script that runs on the agent's host.
struct Step {
    events: Receiver<ChildEvent>,
    process: AgentProcess,
}

impl Step {
    fn start(command: &LaunchCommand, input: &Arc<[u8]>) -> Result<Self, DeployError> {
        let (sender, events) = sync_channel(16);
        // After the wait has ended, events are not needed.
        let sink = Box::new(move |event| drop(sender.send(event)));
        let mut process = AgentProcess::start(command, sink)?;
        match process.send(Arc::clone(input)) {
            // If it has ended already, its end has the reason.
            Ok(()) | Err(NotSent::Closed | NotSent::Stalled) => process.close(),
        }
        Ok(Self { events, process })
    }

    /// The lines that the script printed.
    fn finish(self, spec: &AgentSpec, patience: Patience<'_>) -> Result<Vec<String>, DeployError> {
        let (answer, end) = self.listen(patience)?;
        drop(self.process);
        let text = String::from_utf8_lossy(&answer);
        let mut lines = text.lines().map(|line| printable(line.as_bytes()));
        let is_marked = lines.any(|line| line == MARK);
        if end.status.success() && is_marked {
            return Ok(lines.collect());
        }
        Err(if answer.starts_with(&MAGIC) {
            DeployError::Agent
        } else if !is_marked && is_missing(&spec.launcher, &end) {
            DeployError::NoShell
        } else {
            DeployError::Ended(explain(&spec.launcher, &end))
        })
    }

    /// All that it wrote, and its end.
    fn listen(&self, patience: Patience<'_>) -> Result<(Vec<u8>, End), DeployError> {
        let (mut answer, mut waited) = (Vec::new(), Duration::ZERO);
        loop {
            match self.events.recv_timeout(LOOK_UP) {
                _ if patience.stop.load(Ordering::Relaxed) => return Err(DeployError::Stopped),
                Ok(ChildEvent::Bytes(bytes)) => {
                    answer.extend(bytes);
                    if answer.len() > ANSWER_BYTES_MAX {
                        answer.truncate(HASH_DIGITS);
                        return Err(DeployError::Unreadable(printable(&answer)));
                    }
                }
                Ok(ChildEvent::Line(_)) => {}
                Ok(ChildEvent::Ended(end)) => return Ok((answer, end)),
                Err(RecvTimeoutError::Timeout) if waited < patience.answer => waited += LOOK_UP,
                Err(_) => return Err(DeployError::Silent(patience.answer)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
