//! Queues of the sockets of watched servers, in the server's own network namespace.
//!
//! Either way the kernel looks through all sockets of the host, those of closed connections too:
//! where it takes long, the queues are looked at less often.

use super::proc_file::ProcFile;
use super::socket_diag::SocketDiag;
use super::table::{Column, Rows, Table, Unit};
use crate::clock;
use crate::pace::Pace;
use crate::parse::{SocketQueues, parse_socket_queues};
use crate::root::Root;
use crate::watched::WatchedProcess;

pub(super) static SOCKETS: Table = Table {
    name: "socket",
    keyed: true,
    idle_left_out: false,
    ends_with_load: true,
    columns: &[
        Column::summed("connections", Unit::Count),
        // Written by the server, not yet acknowledged by the clients.
        Column::summed("send_queue", Unit::Bytes),
        // Arrived, not yet read by the server.
        Column::summed("receive_queue", Unit::Bytes),
        Column::summed("accept_queue", Unit::Count),
    ],
};

/// Looking at the sockets may take one part in so many of a core.
const PARTS: u64 = 500;

#[derive(Debug)]
pub(super) struct SocketSource {
    root: Root,
    servers: Vec<Server>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Server {
    name: String,
    place: Place,
    pace: Pace,
    looked_ns: u64,
}

/// Where its sockets are seen.
#[derive(Debug)]
enum Place {
    /// In the network namespace of this process.
    Kernel(SocketDiag),
    /// In another one, on another host, or where the kernel does not answer.
    Texts([ProcFile; 2]),
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
                let place = Place::of(&self.root, pid);
                let name = process.name.clone();
                self.servers.push(Server { name, place, pace: Pace::new(0, PARTS), looked_ns: 0 });
                self.servers.len() - 1
            });
            let server = &mut self.servers[index];
            if let Some(queues) = server.look(&self.root, pid, &process.ports, &mut self.buffer) {
                let values =
                    [queues.connections, queues.send_bytes, queues.receive_bytes, queues.accept];
                rows.push(&process.name, &values.map(|value| Some(value as f64)));
            }
        }
    }
}

impl Place {
    fn of(root: &Root, pid: u32) -> Self {
        let namespace = |of: &str| root.link_name(format!("proc/{of}/ns/net"));
        let own = root.is_this_host() && namespace("self") == namespace(&pid.to_string());
        let diag = own.then(SocketDiag::open).flatten();
        diag.map_or_else(|| Self::texts(root, pid), Self::Kernel)
    }

    fn texts(root: &Root, pid: u32) -> Self {
        let files = ["tcp", "tcp6"].map(|name| format!("proc/{pid}/net/{name}"));
        Self::Texts(files.map(|file| ProcFile::open(root, file)))
    }

    fn look(&mut self, ports: &[u16], buffer: &mut Vec<u8>) -> Option<SocketQueues> {
        match self {
            Self::Kernel(diag) => diag.look(ports),
            Self::Texts(files) => {
                let mut queues = None;
                for file in files {
                    if let Some(text) = file.read(buffer) {
                        let queues = queues.get_or_insert_with(SocketQueues::default);
                        parse_socket_queues(&text, ports, queues);
                    }
                }
                queues
            }
        }
    }
}

impl Server {
    fn look(
        &mut self,
        root: &Root,
        pid: u32,
        ports: &[u16],
        buffer: &mut Vec<u8>,
    ) -> Option<SocketQueues> {
        let now_ns = clock::monotonic_ns();
        if now_ns < self.looked_ns.saturating_add(self.pace.interval_ns()) {
            return None;
        }
        self.looked_ns = now_ns;
        let begin_ns = clock::thread_cpu_ns();
        let queues = self.place.look(ports, buffer);
        if queues.is_none() && matches!(self.place, Place::Kernel(_)) {
            self.place = Place::texts(root, pid);
        }
        self.pace.took(clock::thread_cpu_ns().saturating_sub(begin_ns));
        queues
    }
}
