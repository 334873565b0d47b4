//! A script as a stand-in for the agent, and a talk with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use plimsoll_fleet::launcher::child::{AgentProcess, ChildEvent, End, StartError};
use plimsoll_fleet::launcher::command::LaunchCommand;
use plimsoll_fleet::launcher::spec::{self, AgentSpec};
use tempfile::TempDir;

/// Longest silence, on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// Agents of one value of `--agents`.
pub(crate) fn specs(value: &str) -> Vec<AgentSpec> {
    let nothing = |_: &Path| Err(std::io::Error::other("no file"));
    spec::parse(&[value.to_owned()], &nothing).unwrap().agents
}

/// A folder for stand-ins, within reach of every user.
pub(crate) struct ScriptFolder {
    folder: TempDir,
    scripts: AtomicU32,
}

impl ScriptFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, scripts: AtomicU32::new(0) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a program that runs this script.
    pub(crate) fn stand_in(&self, script: &str) -> String {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let file = self.path().join(format!("stand in {number}"));
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file.display().to_string()
    }
}

pub(crate) struct Talk {
    pub(crate) process: AgentProcess,
    events: Receiver<ChildEvent>,
    /// Read, and not yet consumed.
    bytes: Vec<u8>,
    lines: Vec<String>,
}

impl Talk {
    pub(crate) fn start(spec: &AgentSpec) -> Self {
        Self::try_start(&LaunchCommand::agent(spec, Path::new("/own/plimsoll"))).unwrap()
    }

    pub(crate) fn try_start(command: &LaunchCommand) -> Result<Self, StartError> {
        let (sender, events) = sync_channel(4);
        let sink = Box::new(move |event| drop(sender.send(event)));
        let process = AgentProcess::start(command, sink)?;
        Ok(Self { process, events, bytes: Vec::new(), lines: Vec::new() })
    }

    pub(crate) fn event(&self) -> ChildEvent {
        self.events.recv_timeout(WAIT).unwrap()
    }

    /// The next bytes of standard output.
    pub(crate) fn read(&mut self, count: usize) -> Vec<u8> {
        while self.bytes.len() < count {
            match self.event() {
                ChildEvent::Bytes(more) => self.bytes.extend(more),
                ChildEvent::Line(line) => self.lines.push(line),
                ChildEvent::Ended(end) => panic!("{end:?} after {:?}", self.lines),
            }
        }
        self.bytes.drain(..count).collect()
    }

    /// The number that a line is.
    pub(crate) fn read_pid(&mut self) -> u32 {
        let mut digits = String::new();
        loop {
            match self.read(1)[0] {
                b'\n' => return digits.parse().unwrap(),
                digit => digits.push(digit.into()),
            }
        }
    }

    /// Small frames, one after the other, with all values of a byte, then large ones.
    pub(crate) fn check_echo(&mut self, small: u32) {
        let frame = |number: u32, length: u32| -> Vec<u8> {
            (0..length).map(|i| (number.wrapping_mul(7) + i * 37) as u8).collect()
        };
        let lengths = (0..small).map(|number| 1 + number % 128).chain([1 << 20; 3]);
        for (number, length) in (0..).zip(lengths) {
            let sent: Arc<[u8]> = frame(number, length).into();
            self.process.send(Arc::clone(&sent)).unwrap();
            let back = self.read(sent.len());
            assert!(*sent == *back, "frame {number} came back as another");
        }
    }

    /// All lines and the end; the input stays open unless it was closed.
    pub(crate) fn end(mut self) -> (Vec<String>, End) {
        loop {
            match self.event() {
                ChildEvent::Bytes(_) => {}
                ChildEvent::Line(line) => self.lines.push(line),
                ChildEvent::Ended(end) => return (self.lines, end),
            }
        }
    }
}
