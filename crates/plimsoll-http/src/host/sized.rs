//! Files for servers of files: those that a journey or a replay requests, in the sizes that it
//! gives. They are sparse, so that many large ones take little room.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use plimsoll_model::units::grouped;
use plimsoll_protocol::host::HostError;
use plimsoll_protocol::percent_decoded;

use crate::journey::law::SpanLaw;
use crate::journey::{Journeys, PageRequest, ServedBytes, Variable, reads_body};
use crate::parameters::{HttpWorkload, RequestSource};
use crate::replay;
use crate::wire::request::Method;
use crate::wire::template::{Piece, Variables};

/// Follows the path in a file's name, so that `/a` and `/a/b` can both be files.
pub(crate) const SUFFIX: &str = ".f";
/// Files that are made: the inodes of a file system are limited, and making them takes seconds.
const FILES_MAX: usize = 200_000;
/// Size of a file whose journey gives none.
const BYTES: u64 = 1_024;

/// Files by their paths, decoded, with their sizes.
#[derive(Debug, Default)]
pub(super) struct SizedFiles(BTreeMap<Vec<u8>, u64>);

impl SizedFiles {
    /// Those that a workload requests; `None` where it does not name them.
    pub(super) fn of_workload(workload: &HttpWorkload) -> Result<Option<Self>, HostError> {
        match (workload.requests, &workload.journey_file, &workload.replay_file) {
            (RequestSource::Journey, Some(file), _) => Self::of_journey(file).map(Some),
            (RequestSource::Replay, _, Some(file)) => Self::of_replay(file).map(Some),
            _ => Ok(None),
        }
    }

    fn of_replay(file: &str) -> Result<Self, HostError> {
        let unread = |e: std::io::Error| HostError::wrong(format!("cannot read {file}: {e}"));
        let mut reader = BufReader::new(File::open(file).map_err(unread)?);
        let replay = replay::file::read(&mut reader, file);
        let replay = replay.map_err(|e| HostError::wrong(e.to_string()))?;
        let mut files = Self::default();
        for (method, request) in replay.requests() {
            let shown = format!("{} {}", method.as_str(), request.path);
            refuse(method, request.status).map_err(|why| unfit(&shown, &why))?;
            if request.status != NOT_THERE {
                files.add(&shown, request.path.as_bytes(), request.bytes)?;
            }
        }
        Ok(files)
    }

    fn of_journey(file: &str) -> Result<Self, HostError> {
        let journeys = super::read_journey(Path::new(file))?;
        let mut files = Self::default();
        for request in &journeys.requests {
            let shown = format!("{} {}", request.text.method.as_str(), request.shown);
            refuse_served(request).map_err(|why| unfit(&shown, &why))?;
            if request.served_status() != NOT_THERE {
                files.add_request(&journeys, request, &shown)?;
            }
        }
        Ok(files)
    }

    /// The files of all paths that a request may have.
    fn add_request(
        &mut self,
        journeys: &Journeys,
        request: &PageRequest,
        shown: &str,
    ) -> Result<(), HostError> {
        let mut rows_of = None;
        for piece in request.path.pieces() {
            match piece {
                Piece::Text(_) => continue,
                Piece::Variable { number, .. } => {
                    let variable = &journeys.variables[usize::from(*number)];
                    if let Variable::Column { data, .. } = variable
                        && rows_of.is_none_or(|other| other == *data)
                    {
                        rows_of = Some(*data);
                        continue;
                    }
                }
                _ => {}
            }
            let why = "which files there are follows from the rows of one [[data]] alone";
            return Err(unfit(shown, why));
        }
        let rows = rows_of.map_or(1, |data| journeys.data[data].count());
        for row in 0..rows {
            let bytes = match &request.served.bytes {
                ServedBytes::Any => BYTES,
                ServedBytes::Law(law) => law
                    .constant()
                    .ok_or_else(|| unfit(shown, "a file has one size, and serve.bytes is a law"))?,
                ServedBytes::Column { data, column } => {
                    journeys.data[*data].number(row, *column).unwrap_or(BYTES)
                }
            };
            let mut path = Vec::new();
            request.path.write_with(0, 0, &RowValues { journeys, row }, &mut path);
            self.add(shown, &path, bytes)?;
        }
        Ok(())
    }

    /// One more file; the first of a path counts.
    fn add(&mut self, shown: &str, target: &[u8], bytes: u64) -> Result<(), HostError> {
        let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        let path = percent_decoded(&String::from_utf8_lossy(path));
        // The first is empty before the leading slash, the last one after a closing slash.
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let is_empty = parts.iter().skip(1).rev().skip(1).any(|part| part.is_empty());
        let is_relative = parts.iter().any(|part| matches!(*part, b"." | b".."));
        if is_empty || is_relative || path.contains(&0) {
            return Err(unfit(shown, "servers of files resolve such a path to another one"));
        }
        self.0.entry(path).or_insert(bytes);
        if self.0.len() > FILES_MAX {
            return Err(HostError::wrong(format!(
                "the load requests more than {} different paths, too many files for a temporary \
                 directory; use builtin: as the target",
                grouped(FILES_MAX as f64)
            )));
        }
        Ok(())
    }

    /// Makes the files below a directory.
    pub(super) fn write_to(&self, root: &Path) -> Result<(), HostError> {
        for (path, bytes) in &self.0 {
            let name = [path.strip_prefix(b"/").unwrap_or(path), SUFFIX.as_bytes()].concat();
            let file = root.join(OsString::from_vec(name));
            let make = || {
                std::fs::create_dir_all(file.parent().unwrap_or(root))?;
                File::create(&file)?.set_len(*bytes)
            };
            make().map_err(|e| {
                HostError::unusable(format!("{}: cannot make it: {e}", file.display()))
            })?;
        }
        Ok(())
    }
}

/// The status of a path without a file.
const NOT_THERE: u16 = 404;

fn unfit(shown: &str, why: &str) -> HostError {
    HostError::wrong(format!(
        "{shown}: a managed server of files cannot answer this: {why}; use builtin: as the target"
    ))
}

/// Why a server of files does not answer so.
fn refuse(method: Method, status: u16) -> Result<(), String> {
    if ![Method::GET, Method::HEAD].contains(&method) {
        return Err(format!("it has no {}", method.as_str()));
    }
    match status {
        200 | 206 | 304 | NOT_THERE => Ok(()),
        other => Err(format!("it has no status {other}")),
    }
}

fn refuse_served(request: &PageRequest) -> Result<(), String> {
    refuse(request.text.method, request.served_status())?;
    if request.served_status() == 304 {
        return Err("it has status 304 only for validators".to_owned());
    }
    if reads_body(request) || !request.takes.is_empty() {
        return Err("it gives nothing that can be taken or expected".to_owned());
    }
    if request.served.time != SpanLaw::NONE {
        return Err("it does not wait (serve.time)".to_owned());
    }
    Ok(())
}

/// Values of a row.
#[derive(Debug)]
struct RowValues<'a> {
    journeys: &'a Journeys,
    row: u64,
}

impl Variables for RowValues<'_> {
    fn write(&self, number: u16, into: &mut Vec<u8>) {
        let variable = self.journeys.variables.get(usize::from(number));
        if let Some(Variable::Column { data, column }) = variable {
            into.extend_from_slice(self.journeys.data[*data].value(self.row, *column));
        }
    }
}

#[cfg(test)]
mod tests;
