//! The requests of many files in the order of their begins.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

use plimsoll_model::units::Nanos;

use crate::error::DeriveError;
use crate::request::Request;
use crate::source::{LogSource, Reading};

/// A line may come this much after one that began later.
pub(crate) const DISORDER_MAX: Nanos = Nanos::from_secs(60);
/// Requests in memory that wait for earlier ones: 48 MiB. Of a log with more within a minute, less
/// disorder is sorted.
const WAITING_MAX: usize = 600_000;

/// Requests of all files, in order.
pub(crate) struct Ordered {
    pub reading: Reading,
    /// Files that have not begun, with their first stamps, the earliest first.
    later: VecDeque<(Nanos, PathBuf)>,
    format: Option<String>,
    /// Open files, each with its next request.
    open: Vec<(Request, LogSource)>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    sequence: u64,
    latest: Nanos,
    reached: Nanos,
    /// Requests that came too late to be sorted.
    pub late: Late,
    /// Name of each file with its format.
    pub files: Vec<(PathBuf, String)>,
    /// Files without a line.
    pub empty_files: Vec<PathBuf>,
}

/// Requests whose lines came after lines that began more than a minute later. They begin where the
/// order had arrived by then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    pub requests: u64,
    /// By how much the latest was moved.
    pub moved_max: Nanos,
}

/// Ordered by begin, then as the lines came.
#[derive(PartialEq, Eq)]
struct Waiting {
    sequence: u64,
    request: Request,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |it: &Self| (it.request.begin, it.sequence);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ordered {
    /// Finds the order of the files: each is read to its first line.
    pub fn new(
        files: &[PathBuf],
        format: Option<&str>,
        reading: Reading,
    ) -> Result<Self, DeriveError> {
        let (mut later, mut empty_files, mut formats) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let Some(source) = LogSource::open(file, format)? else {
                empty_files.push(file.clone());
                continue;
            };
            formats.push((file.clone(), source.format_name.clone()));
            // A file without a readable line is counted where it is read.
            later.push((source.first_stamp()?.unwrap_or_default(), file.clone()));
        }
        later.sort_by_key(|(first, _)| *first);
        Ok(Self {
            reading,
            later: later.into(),
            format: format.map(str::to_owned),
            open: Vec::new(),
            waiting: BinaryHeap::new(),
            sequence: 0,
            latest: Nanos::ZERO,
            reached: Nanos::ZERO,
            late: Late::default(),
            files: formats,
            empty_files,
        })
    }

    /// The request that began next.
    pub fn next(&mut self) -> Result<Option<Request>, DeriveError> {
        loop {
            let is_due = |first: &Reverse<Waiting>| {
                first.0.request.begin + DISORDER_MAX <= self.latest
                    || self.waiting.len() >= WAITING_MAX
            };
            if self.waiting.peek().is_some_and(is_due) {
                return Ok(self.pop());
            }
            match self.next_line()? {
                Some(request) => self.insert(request),
                None => return Ok(self.pop()),
            }
        }
    }

    fn pop(&mut self) -> Option<Request> {
        let request = self.waiting.pop()?.0.request;
        self.reached = request.begin;
        Some(request)
    }

    fn insert(&mut self, mut request: Request) {
        self.latest = self.latest.max(request.begin);
        if request.begin < self.reached {
            self.late.requests += 1;
            let moved = self.reached.saturating_sub(request.begin);
            self.late.moved_max = self.late.moved_max.max(moved);
            request.begin = self.reached;
        }
        self.sequence += 1;
        self.waiting.push(Reverse(Waiting { sequence: self.sequence, request }));
    }

    /// The request of the file that is furthest behind.
    fn next_line(&mut self) -> Result<Option<Request>, DeriveError> {
        loop {
            let first = self.open.iter().enumerate().min_by_key(|(_, (next, _))| next.begin);
            let first = first.map(|(index, (next, _))| (index, next.begin));
            let begins_next = |(stamp, _): &(Nanos, PathBuf)| {
                first.is_none_or(|(_, begin)| *stamp <= begin + DISORDER_MAX)
            };
            if self.later.front().is_some_and(begins_next) {
                if let Some((_, file)) = self.later.pop_front() {
                    self.open_file(&file)?;
                }
                continue;
            }
            let Some((index, _)) = first else { return Ok(None) };
            let (next, source) = &mut self.open[index];
            let request = *next;
            match source.next(&mut self.reading)? {
                Some(following) => *next = following,
                None => _ = self.open.swap_remove(index),
            }
            return Ok(Some(request));
        }
    }

    fn open_file(&mut self, file: &Path) -> Result<(), DeriveError> {
        if let Some(mut source) = LogSource::open(file, self.format.as_deref())?
            && let Some(first) = source.next(&mut self.reading)?
        {
            self.open.push((first, source));
        }
        Ok(())
    }
}
