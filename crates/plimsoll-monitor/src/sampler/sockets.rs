//! Queues of the sockets of watched servers, in the server's own network namespace.
//!
//! The kernel writes a line for each socket of the host, those of closed connections too: where
//! there are thousands it takes milliseconds, so the queues are then looked at less often.

use super::proc_file::ProcFile;
use super::table::{Column, Rows, Table, Unit};
use crate::clock;
use crate::parse::{SocketQueues, parse_socket_queues};
use crate::root::Root;
use crate::watch::WatchedProcess;

pub(super) static SOCKETS: Table = Table {
    name: "socket",
    keyed: true,
    idle_left_out: false,
    columns: &[
        Column::summed("connections", Unit::Count),
        // Written by the server, not yet acknowledged by the clients.
        Column::summed("send_queue", Unit::Bytes),
        // Arrived, not yet read by the server.
        Column::summed("receive_queue", Unit::Bytes),
        Column::summed("accept_queue", Unit::Count),
    ],
};

/// Looking at the sockets may take one part in so many of the time.
const PARTS: u64 = 300;

#[derive(Debug)]
pub(super) struct SocketSource {
    root: Root,
    servers: Vec<Server>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Server {
    name: String,
    files: [ProcFile; 2],
    /// Not looked at again before.
    not_before_ns: u64,
}

impl SocketSource {
    pub(super) fn new(root: Root) -> Self {
        Self { root, servers: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample<'w>(
        &mut self,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        rows: &mut Rows,
    ) {
        rows.clear();
        for process in watched.filter(|process| !process.ports.is_empty()) {
            let Some(&pid) = process.pids.first() else { continue };
            let known = self.servers.iter().position(|server| server.name == process.name);
            let index = known.unwrap_or_else(|| {
                let files = ["tcp", "tcp6"].map(|name| format!("proc/{pid}/net/{name}"));
                let files = files.map(|file| ProcFile::open(&self.root, file));
                let name = process.name.clone();
                self.servers.push(Server { name, files, not_before_ns: 0 });
                self.servers.len() - 1
            });
            if let Some(queues) = self.servers[index].look(&process.ports, &mut self.buffer) {
                let values =
                    [queues.connections, queues.send_bytes, queues.receive_bytes, queues.accept];
                rows.push(&process.name, &values.map(|value| Some(value as f64)));
            }
        }
    }
}

impl Server {
    fn look(&mut self, ports: &[u16], buffer: &mut Vec<u8>) -> Option<SocketQueues> {
        let begin_ns = clock::monotonic_ns();
        if begin_ns < self.not_before_ns {
            return None;
        }
        let mut queues = None;
        for file in &self.files {
            if let Some(text) = file.read(buffer) {
                parse_socket_queues(&text, ports, queues.get_or_insert_with(SocketQueues::default));
            }
        }
        let end_ns = clock::monotonic_ns();
        self.not_before_ns = end_ns + end_ns.saturating_sub(begin_ns).saturating_mul(PARTS);
        queues
    }
}
