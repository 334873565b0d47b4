//! tshark as a cross-check: which RPC calls, SMB2 commands and HTTP/2 frames really went over the
//! wire.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::namespaces::{BRIDGE, Namespaces};
use crate::peers::{require_peer, require_root};

/// The kernel's buffer: what tshark is too slow to write waits here.
const BUFFER_MIB: &str = "256";
/// A capture larger than this ends by itself, and [`Capture::finish`] fails.
const FILE_KIB_MAX: &str = "2000000";
/// Packets may still be in transit from the kernel when the last reply has come.
const SETTLE: Duration = Duration::from_millis(300);

/// A running capture.
pub struct Capture {
    /// The port whose packets are counted.
    port: u16,
    dumpcap: Child,
    stderr: BufReader<ChildStderr>,
    file: PathBuf,
    tshark: PathBuf,
}

/// The RPC calls that tshark decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedCalls {
    /// Calls by program, version and procedure; a call that was sent again counts once.
    pub by_procedure: BTreeMap<(u32, u32, u32), u64>,
    /// Calls that had been sent before: same client, same xid.
    pub repeated: u64,
    /// Packets the capture lost. Above zero the counts are too low.
    pub dropped: u64,
}

impl CapturedCalls {
    /// Calls of a procedure of NFS (program 100003).
    pub fn nfs(&self, version: u32, procedure: u32) -> u64 {
        self.by_procedure.get(&(100_003, version, procedure)).copied().unwrap_or(0)
    }

    /// Calls of all procedures of a version of NFS but NULL.
    pub fn nfs_total(&self, version: u32) -> u64 {
        let ours = |&(&(program, of, number), _): &(&(u32, u32, u32), &u64)| {
            program == 100_003 && of == version && number != 0
        };
        self.by_procedure.iter().filter(ours).map(|(_, count)| count).sum()
    }
}

impl Capture {
    /// Begins, and returns once packets are being captured; `None` where tshark is missing or this
    /// is not root (see [`require_peer`]).
    pub fn start(port: u16) -> Option<Self> {
        let dumpcap = Command::new(require_peer("dumpcap")?);
        Self::start_as(dumpcap, ["lo", &format!("port {port}")]).map(|it| it.of_port(port))
    }

    /// Captures all that comes to the hub from other namespaces, and nothing of its own;
    /// [`Self::of_port`] selects what to count.
    pub fn start_in(namespaces: &Namespaces) -> Option<Self> {
        let dumpcap = namespaces.in_hub(&Command::new(require_peer("dumpcap")?));
        Self::start_as(dumpcap, [BRIDGE, "tcp or udp"])
    }

    /// The same capture, of which packets of this port are counted.
    pub fn of_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    fn start_as(mut dumpcap: Command, [interface, filter]: [&str; 2]) -> Option<Self> {
        let tshark = require_peer("tshark")?;
        require_root("a capture")?;
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("plimsoll-capture-{}-{number}.pcapng", std::process::id());
        let file = std::env::temp_dir().join(name);
        let mut dumpcap = dumpcap
            .args(["-q", "-i", interface, "-f", filter])
            .args(["-B", BUFFER_MIB, "-a", &format!("filesize:{FILE_KIB_MAX}"), "-w"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(dumpcap.stderr.take().unwrap());
        // `Capturing on 'Loopback: lo'`, then `File: …` once the file is open.
        let mut line = String::new();
        while !line.starts_with("File: ") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "dumpcap ended at once");
        }
        Some(Self { port: 0, dumpcap, stderr, file, tshark })
    }

    /// Ends the capture and counts the RPC calls to the port.
    pub fn finish(mut self) -> CapturedCalls {
        let dropped = self.end();
        let port = self.port;
        let calls = format!("rpc.msgtyp == 0 && (tcp.dstport == {port} || udp.dstport == {port})");
        // One line per packet: port of the client, then xids, programs, versions and procedures of
        // all calls in it.
        let fields: Vec<_> = ["tcp.srcport", "udp.srcport"].into_iter().chain(RPC_FIELDS).collect();
        let layers = ["tcp", "udp"].map(|layer| format!("{layer}.port=={port},rpc"));
        CapturedCalls { dropped, ..counted(&self.dissect(&calls, &fields, &layers)) }
    }

    /// Ends the capture; packets it lost.
    fn end(&mut self) -> u64 {
        std::thread::sleep(SETTLE);
        let is_running = self.dumpcap.try_wait().unwrap().is_none();
        assert!(is_running, "the capture was larger than {FILE_KIB_MAX} KiB, or dumpcap failed");
        kill_process(Pid::from_child(&self.dumpcap), Signal::INT).unwrap();
        let mut summary = String::new();
        self.stderr.read_to_string(&mut summary).unwrap();
        assert!(self.dumpcap.wait().unwrap().success(), "{summary}");
        dropped(&summary)
    }

    /// One line per packet that `filter` lets through, with its `fields`.
    fn dissect(&self, filter: &str, fields: &[&str], layers: &[String]) -> String {
        let mut command = Command::new(&self.tshark);
        command.arg("-r").arg(&self.file).args(["-Y", filter, "-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        for layer in layers {
            command.args(["-d", layer]);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // After `finish` there is nothing left to kill.
        let _ = self.dumpcap.kill();
        let _ = self.dumpcap.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

const RPC_FIELDS: [&str; 4] = ["rpc.xid", "rpc.program", "rpc.programversion", "rpc.procedure"];

/// `Packets received/dropped on interface 'Loopback: lo': 120/0 (pcap:0/dumpcap:0/…) (100.0%)`.
fn dropped(summary: &str) -> u64 {
    let line = summary.lines().find(|line| line.starts_with("Packets received/dropped")).unwrap();
    let (_, numbers) = line.rsplit_once(": ").unwrap();
    let counts = numbers.split_whitespace().next().unwrap();
    counts.rsplit_once('/').unwrap().1.parse().unwrap()
}

fn counted(lines: &str) -> CapturedCalls {
    let mut calls = CapturedCalls::default();
    let mut unique = HashSet::new();
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [tcp, udp, fields @ ..] = columns.as_slice() else { panic!("{line}") };
        let client = format!("{tcp} {udp}");
        let calls_in_packet = fields.first().map_or(0, |xids| numbers(xids).len());
        let lists: Vec<_> = fields.iter().map(|l| one_each(numbers(l), calls_in_packet)).collect();
        let [xids, programs, versions, procedures] = lists.as_slice() else { panic!("{line}") };
        for (index, &xid) in xids.iter().enumerate() {
            if unique.insert((client.clone(), xid)) {
                let key = (programs[index], versions[index], procedures[index]);
                *calls.by_procedure.entry(key).or_default() += 1;
            } else {
                calls.repeated += 1;
            }
        }
    }
    calls
}

/// tshark names the version of a call twice: in the header and with the program.
fn one_each(numbers: Vec<u32>, calls: usize) -> Vec<u32> {
    assert!(
        calls > 0 && !numbers.is_empty() && numbers.len().is_multiple_of(calls),
        "tshark's columns do not match: {calls} calls, {numbers:?}"
    );
    let times = numbers.len() / calls;
    numbers.into_iter().step_by(times).collect()
}

/// `0x0000002a,43`.
fn numbers(list: &str) -> Vec<u32> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    list.split(',').filter(|text| !text.is_empty()).map(number).collect()
}

const FIELDS: [&str; 3] = ["tcp.srcport", "smb2.msg_id", "smb2.cmd"];

/// What tshark decoded. It sees nothing in encrypted messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedCommands {
    /// Requests by command (MS-SMB2 2.2.1.2), each of a compound for itself.
    pub by_command: BTreeMap<u16, u64>,
    /// Packets the capture lost. Above zero the counts are too low.
    pub dropped: u64,
}

impl CapturedCommands {
    /// Requests of this command.
    pub fn count(&self, command: u16) -> u64 {
        self.by_command.get(&command).copied().unwrap_or(0)
    }
}

impl Capture {
    /// Ends the capture and counts the SMB2 requests to the port.
    pub fn finish_smb(mut self) -> CapturedCommands {
        let dropped = self.end();
        let port = self.port;
        let requests = format!("smb2.flags.response == 0 && tcp.dstport == {port}");
        let lines = self.dissect(&requests, &FIELDS, &[format!("tcp.port=={port},nbss")]);
        CapturedCommands { by_command: commands(&lines), dropped }
    }
}

const SESSION_FIELDS: [&str; 4] = ["nfs.opcode", "nfs.session_id4", "nfs.slotid", "nfs.seqid"];

/// The COMPOUND calls of NFSv4.1 that clients sent, as tshark decoded them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedCompounds {
    /// Operations by number (RFC 8881 §16.2).
    pub by_operation: BTreeMap<u32, u64>,
    /// Sequence numbers by session and slot, in the order of the calls.
    pub sequences: BTreeMap<(String, u32), Vec<u32>>,
    /// Packets that tshark finds malformed or in error, in both directions.
    pub faulty: Vec<String>,
    /// Packets the capture lost. Above zero the counts are too low.
    pub dropped: u64,
}

impl CapturedCompounds {
    /// Operations with this number.
    pub fn count(&self, operation: u32) -> u64 {
        self.by_operation.get(&operation).copied().unwrap_or(0)
    }

    /// All operations.
    pub fn total(&self) -> u64 {
        self.by_operation.values().sum()
    }

    /// Slots whose sequence numbers are not 1, 2, 3 … (RFC 8881 §2.10.6.1).
    pub fn out_of_sequence(&self) -> Vec<&(String, u32)> {
        let is_wrong = |numbers: &[u32]| !numbers.iter().copied().eq(1..=numbers.len() as u32);
        let wrong = self.sequences.iter().filter(|(_, numbers)| is_wrong(numbers));
        wrong.map(|(slot, _)| slot).collect()
    }

    fn add(&mut self, line: &str) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [operations, sessions, slots, sequences] = columns[..] else { panic!("{line}") };
        for operation in numbers(operations) {
            *self.by_operation.entry(operation).or_default() += 1;
        }
        if slots.is_empty() {
            return;
        }
        // OPEN and CLOSE have a number too, which is always 0 here.
        let mut sequences = numbers(sequences);
        sequences.retain(|number| *number != 0);
        let (sessions, slots) = (sessions.split(',').collect::<Vec<_>>(), numbers(slots));
        assert!(
            sessions.len() == slots.len() && sequences.len() == slots.len(),
            "tshark's columns do not match: {line}"
        );
        for (index, session) in sessions.into_iter().enumerate() {
            let slot = (session.to_owned(), slots[index]);
            self.sequences.entry(slot).or_default().push(sequences[index]);
        }
    }
}

impl Capture {
    /// Ends the capture and reads the COMPOUND calls of NFSv4.1 to the port.
    pub fn finish_compounds(mut self) -> CapturedCompounds {
        let (port, dropped) = (self.port, self.end());
        let layers = [format!("tcp.port=={port},rpc")];
        let mut captured = CapturedCompounds { dropped, ..CapturedCompounds::default() };
        let calls = format!("nfs.opcode && rpc.msgtyp == 0 && tcp.dstport == {port}");
        self.dissect(&calls, &SESSION_FIELDS, &layers).lines().for_each(|line| captured.add(line));
        captured.faulty = self.faulty(&format!("tcp.port == {port}"), "nfs.opcode", &layers);
        captured
    }

    /// Packets that tshark finds malformed or in error.
    fn faulty(&self, filter: &str, field: &str, layers: &[String]) -> Vec<String> {
        let faulty = format!("{filter} && (_ws.malformed || _ws.expert.severity == \"Error\")");
        let lines = self.dissect(&faulty, &["_ws.expert.message", field], layers);
        lines.lines().map(str::to_owned).collect()
    }
}

/// The HTTP/2 frames that clients sent, as tshark decoded them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedFrames {
    /// By their type (RFC 9113 §6).
    pub by_type: BTreeMap<u32, u64>,
    /// Requests by their path.
    pub by_path: BTreeMap<String, u64>,
    /// Packets that tshark finds malformed or in error.
    pub faulty: Vec<String>,
    /// Packets the capture lost. Above zero the counts are too low.
    pub dropped: u64,
}

impl Capture {
    /// Ends the capture and counts the frames of HTTP/2 to the port.
    pub fn finish_http2(mut self) -> CapturedFrames {
        let dropped = self.end();
        let port = self.port;
        let layers = [format!("tcp.port=={port},http2")];
        let to_server = format!("http2 && tcp.dstport == {port}");
        let mut frames = CapturedFrames { dropped, ..CapturedFrames::default() };
        for line in self.dissect(&to_server, &["http2.type", "http2.headers.path"], &layers).lines()
        {
            let (types, paths) = line.split_once('\t').unwrap_or((line, ""));
            for kind in numbers(types) {
                *frames.by_type.entry(kind).or_default() += 1;
            }
            for path in paths.split(',').filter(|path| !path.is_empty()) {
                *frames.by_path.entry(path.to_owned()).or_default() += 1;
            }
        }
        frames.faulty = self.faulty(&format!("tcp.dstport == {port}"), "http2.type", &layers);
        frames
    }
}

/// A packet that was sent again counts once. CANCEL comes with the number of what it cancels.
fn commands(lines: &str) -> BTreeMap<u16, u64> {
    let mut by_command = BTreeMap::new();
    let mut unique = HashSet::new();
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [client, ids, commands] = columns.as_slice() else { panic!("{line}") };
        let (ids, commands) = (ids.split(',').collect::<Vec<_>>(), numbers(commands));
        assert_eq!(ids.len(), commands.len(), "tshark's columns do not match: {line}");
        for (id, command) in ids.into_iter().zip(commands) {
            if unique.insert((*client, id, command)) {
                *by_command.entry(u16::try_from(command).unwrap()).or_default() += 1;
            }
        }
    }
    by_command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_a_packet_counts_and_a_repeated_one_once() {
        let lines = "1001\t\t0x00000001,0x00000002\t100003,100003\t3,3,3,3\t1,6\n\
                     1001\t\t0x00000002\t100003\t3\t6\n\
                     \t1001\t0x00000002\t100003\t3\t6\n";
        let calls = counted(lines);
        assert_eq!((calls.nfs(3, 1), calls.nfs(3, 6), calls.nfs_total(3)), (1, 2, 3));
        assert_eq!(calls.repeated, 1);
    }

    #[test]
    fn dropped_packets_are_read_off_the_last_line() {
        let summary = "Packets captured: 118\nPackets received/dropped on interface 'Loopback: lo': \
                    118/2 (pcap:2/dumpcap:0/flushed:0/ps_ifdrop:0) (98.3%)\n";
        assert_eq!(dropped(summary), 2);
    }

    #[test]
    fn a_slot_whose_numbers_have_a_gap_is_named() {
        let mut captured = CapturedCompounds::default();
        captured.add("43\t\t\t0x00000001");
        captured.add("53,22,18,53,9\taa,aa\t0,1\t0x00000001,0x00000000,0x00000001");
        captured.add("53,24\taa\t1\t0x00000002");
        assert_eq!((captured.count(53), captured.total()), (3, 8));
        assert_eq!(captured.out_of_sequence(), Vec::<&(String, u32)>::new());
        captured.add("53,24\taa\t0\t0x00000003");
        assert_eq!(captured.out_of_sequence(), [&("aa".to_owned(), 0)]);
    }

    #[test]
    fn every_command_of_a_compound_counts_and_a_repeated_packet_once() {
        let lines = "1001\t5,6,7\t5,16,6\n1001\t5,6,7\t5,16,6\n1001\t7\t12\n1002\t5\t5\n";
        let expected = [(5, 2), (6, 1), (12, 1), (16, 1)];
        assert_eq!(commands(lines), expected.into_iter().collect());
    }
}
