//! The kernel's NFS server, where there is one.

use super::Elapsed;
use super::proc_file::ProcFile;
use super::table::{Column, Rows, Table, Unit};
use crate::parse::{NfsdCounters, parse_nfsd};
use crate::root::Root;

pub(super) static NFSD: Table = Table {
    name: "nfsd",
    keyed: false,
    idle_left_out: true,
    ends_with_load: false,
    columns: &[
        Column::written("threads", Unit::Count),
        Column::summed("calls", Unit::PerSecond),
        Column::summed("bad_calls", Unit::PerSecond),
        Column::summed("read", Unit::BytesPerSecond),
        Column::summed("written", Unit::BytesPerSecond),
        Column::written("connections_opened", Unit::PerSecond),
    ],
};

#[derive(Debug)]
pub(super) struct NfsdSource {
    file: ProcFile,
    before: Option<NfsdCounters>,
    buffer: Vec<u8>,
}

impl NfsdSource {
    pub(super) fn open(root: &Root) -> Self {
        // The file is there once the server is loaded, which may be later.
        let file = ProcFile::reopened(root, "proc/net/rpc/nfsd");
        Self { file, before: None, buffer: Vec::new() }
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        let before = self.before.take();
        let Some(text) = self.file.read(&mut self.buffer) else { return };
        let now = *self.before.insert(parse_nfsd(&text));
        // A server that is loaded but not started has no threads.
        if now.threads.is_none_or(|threads| threads == 0) {
            return;
        }
        let rate = |of: fn(&NfsdCounters) -> Option<u64>| {
            elapsed.rate(before.as_ref().and_then(of), of(&now))
        };
        rows.push(
            "",
            &[
                now.threads.map(|threads| threads as f64),
                rate(|n| n.calls),
                rate(|n| n.bad_calls),
                rate(|n| n.bytes_read),
                rate(|n| n.bytes_written),
                rate(|n| n.connections),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::units::NANOS_PER_SECOND;

    use super::*;
    use crate::frame::{Frame, Texts};

    fn told(threads: u32, calls: u32, read: u32) -> Texts {
        let text = format!("io {read} 0\nth {threads} 0 0.000\nnet 9 0 9 1\nrpc {calls} 0 0 0 0\n");
        Texts::from([("proc/net/rpc/nfsd".to_owned(), text)])
    }

    #[test]
    fn the_nfs_server_of_another_host_tells_its_calls_through_frames() {
        let frame = Frame::default();
        frame.replace(told(8, 1_000, 4_096));
        let mut source = NfsdSource::open(&Root::of_frame(frame.clone()));
        let mut rows = Rows::new(&NFSD);
        source.sample(Elapsed::from_ns(0), &mut rows);
        assert_eq!((rows.value("", "threads"), rows.value("", "calls")), (Some(8.0), None));
        frame.replace(told(8, 1_500, 8_192));
        source.sample(Elapsed::from_ns(2 * NANOS_PER_SECOND), &mut rows);
        assert_eq!(rows.value("", "calls"), Some(250.0));
        assert_eq!(rows.value("", "read"), Some(2_048.0));
        frame.replace(told(8, 3, 0));
        source.sample(Elapsed::from_ns(NANOS_PER_SECOND), &mut rows);
        assert_eq!(rows.value("", "calls"), None, "it was started anew");
    }

    #[test]
    fn a_host_whose_nfs_server_is_not_started_or_gone_has_no_row_of_it() {
        let frame = Frame::default();
        frame.replace(told(0, 0, 0));
        let mut source = NfsdSource::open(&Root::of_frame(frame.clone()));
        let mut rows = Rows::new(&NFSD);
        source.sample(Elapsed::from_ns(0), &mut rows);
        assert!(rows.rows().is_empty());
        frame.replace(Texts::new());
        source.sample(Elapsed::from_ns(NANOS_PER_SECOND), &mut rows);
        assert!(rows.rows().is_empty());
    }
}
