//! SMB2 commands of a capture.

use std::collections::{BTreeMap, HashSet};

use super::{Capture, numbers};

const FIELDS: [&str; 3] = ["tcp.srcport", "smb2.msg_id", "smb2.cmd"];

/// What tshark found. It sees nothing in encrypted messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedCommands {
    /// Requests by command (MS-SMB2 2.2.1.2), each of a compound for itself.
    pub by_command: BTreeMap<u16, u64>,
    /// Packets the capture lost. Above zero the counts are too low.
    pub dropped: u64,
}

impl CapturedCommands {
    /// Requests of this command.
    pub fn of(&self, command: u16) -> u64 {
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
        CapturedCommands { by_command: counted(&lines), dropped }
    }
}

/// A packet that was sent again counts once. CANCEL comes with the number of what it cancels.
fn counted(lines: &str) -> BTreeMap<u16, u64> {
    let mut by_command = BTreeMap::new();
    let mut seen = HashSet::new();
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [client, ids, commands] = columns.as_slice() else { panic!("{line}") };
        let (ids, commands) = (ids.split(',').collect::<Vec<_>>(), numbers(commands));
        assert_eq!(ids.len(), commands.len(), "tshark's columns do not match: {line}");
        for (id, command) in ids.into_iter().zip(commands) {
            if seen.insert((*client, id, command)) {
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
    fn every_command_of_a_compound_counts_and_a_repeated_packet_once() {
        let lines = "1001\t5,6,7\t5,16,6\n1001\t5,6,7\t5,16,6\n1001\t7\t12\n1002\t5\t5\n";
        let expected = [(5, 2), (6, 1), (12, 1), (16, 1)];
        assert_eq!(counted(lines), expected.into_iter().collect());
    }
}
