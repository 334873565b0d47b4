//! The file of a replay: CSV with a request a line, `at_us,method,path,status,bytes`.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};
use std::sync::Arc;

use plimsoll_model::units::{Nanos, grouped};

use super::{HEADER, RecordedRequest, Replay, ReplayLine, is_partial};
use crate::journey::law::SIZE_MAX;
use crate::wire::request::Method;

/// Longest line: servers take no longer paths.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Requests of a file: half a gigabyte of memory.
const LINES_MAX: usize = 40_000_000;
/// Different methods: each has an op of its own.
const METHODS_MAX: usize = 8;
/// Longest recording.
const LENGTH_MAX: Nanos = Nanos::from_secs(366 * 24 * 3_600);

/// Why a file is no replay.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{location}: {reason}")]
pub(crate) struct ReplayError {
    file: String,
    /// `:LINE`; empty for the file as a whole.
    location: String,
    reason: String,
}

/// Reads a file, named for messages.
pub(crate) fn read(reader: &mut dyn BufRead, file: &str) -> Result<Replay, ReplayError> {
    let error =
        |location: String, reason: String| ReplayError { file: file.to_owned(), location, reason };
    let (mut reading, mut number, mut line) = (Reading::default(), 0_u64, Vec::new());
    loop {
        number += 1;
        line.clear();
        let at = |reason: String| error(format!(":{number}"), reason);
        let read = (&mut *reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(|e| at(format!("cannot read it: {e}")))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(at(format!("the line has more than {LINE_BYTES_MAX} bytes")));
        }
        let text = std::str::from_utf8(&line).map_err(|_| at("it is not text".to_owned()))?;
        let text = text.trim_end_matches(['\n', '\r']);
        match number {
            1 if text.trim_start_matches('\u{feff}') == HEADER => {}
            1 => return Err(at(format!("the header line is not {HEADER}"))),
            _ => reading.add(text).map_err(at)?,
        }
    }
    reading.finish().map_err(|reason| error(String::new(), reason))
}

/// A replay in the making.
#[derive(Default)]
struct Reading {
    /// When the first request was.
    first_us: Option<u64>,
    offsets: Vec<Nanos>,
    lines: Vec<ReplayLine>,
    requests: Vec<RecordedRequest>,
    methods: Vec<Method>,
    by_path: Vec<HashMap<Arc<str>, u32>>,
}

impl Reading {
    fn add(&mut self, text: &str) -> Result<(), String> {
        if self.lines.len() >= LINES_MAX {
            let max = grouped(LINES_MAX as f64);
            return Err(format!("more than {max} requests; derive a shorter part of the log"));
        }
        // A path may have commas.
        let fields = || {
            let (at, rest) = text.split_once(',')?;
            let (method, rest) = rest.split_once(',')?;
            let (rest, bytes) = rest.rsplit_once(',')?;
            let (path, status) = rest.rsplit_once(',')?;
            Some([at, method, path, status, bytes])
        };
        let [at, method, path, status, bytes] =
            fields().ok_or_else(|| format!("it has no five values, {HEADER}"))?;
        self.add_time(at)?;
        let method = self.method(method)?;
        let number = |name: &str, text: &str, max: u64| {
            let number = text.parse().ok().filter(|number| *number <= max);
            number.ok_or_else(|| format!("{name} {text:?} is no whole number up to {max}"))
        };
        let status = number("status", status, 599)? as u16;
        if status < 100 {
            return Err(format!("status {status} is none of HTTP"));
        }
        let bytes = number("bytes", bytes, SIZE_MAX)?;
        let quoted = path.strip_prefix('"').and_then(|path| path.strip_suffix('"'));
        let path = quoted.map_or_else(|| path.to_owned(), |path| path.replace("\"\"", "\""));
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "{path:?} is no path that begins with a slash, with other bytes than those of URLs \
                 percent-encoded"
            ));
        }
        let request = self.request(method, &path, (status, bytes));
        self.lines.push(ReplayLine { request, status });
        Ok(())
    }

    fn add_time(&mut self, text: &str) -> Result<(), String> {
        let at_us: u64 = text
            .parse()
            .map_err(|_| format!("at_us {text:?} is no whole number of microseconds"))?;
        let since = at_us.checked_sub(*self.first_us.get_or_insert(at_us));
        let due = since.and_then(|us| us.checked_mul(1_000)).map(Nanos);
        let before = self.offsets.last().copied().unwrap_or_default();
        let due = due
            .filter(|due| *due >= before)
            .ok_or_else(|| "at_us is less than in the line before; sort the lines".to_owned())?;
        if due > LENGTH_MAX {
            return Err("it is more than a year after the first request".to_owned());
        }
        self.offsets.push(due);
        Ok(())
    }

    /// Index of a method.
    fn method(&mut self, text: &str) -> Result<u8, String> {
        let is_same = |method: &Method| method.as_str().eq_ignore_ascii_case(text);
        if let Some(index) = self.methods.iter().position(is_same) {
            return Ok(index as u8);
        }
        if self.methods.len() >= METHODS_MAX {
            return Err(format!("method {text:?} is one more than {METHODS_MAX}"));
        }
        let method = Method::parse(text)
            .ok_or_else(|| format!("method {text:?} is not one word such as GET, HEAD or POST"))?;
        self.methods.push(method);
        self.by_path.push(HashMap::new());
        Ok(self.methods.len() as u8 - 1)
    }

    /// Index of a request; a server answers it as in the first line that had a whole reply.
    fn request(&mut self, method: u8, path: &str, (status, bytes): (u16, u64)) -> u32 {
        let its = &mut self.by_path[usize::from(method)];
        if let Some(index) = its.get(path) {
            let request = &mut self.requests[*index as usize];
            request.add_line(status);
            if is_partial(request.status) && !is_partial(status) {
                (request.status, request.bytes) = (status, bytes);
            }
            return *index;
        }
        let (path, index): (Arc<str>, u32) = (path.into(), self.requests.len() as u32);
        its.insert(Arc::clone(&path), index);
        self.requests.push(RecordedRequest { method, path, status, bytes, count: 1, mixed: None });
        index
    }

    fn finish(self) -> Result<Replay, String> {
        let Self { offsets, lines, requests, methods, by_path, .. } = self;
        if offsets.last().is_none_or(|last| *last == Nanos::ZERO) {
            return Err(
                "it has no two requests at different times; there is nothing to replay".to_owned()
            );
        }
        Ok(Replay { offsets: offsets.into(), lines, requests, methods, by_path })
    }
}

#[cfg(test)]
mod tests;
