//! The files of a log: opened, decompressed, their format recognised, their lines read.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use plimsoll_model::units::Nanos;

use crate::error::DeriveError;
use crate::line::{LogFormat, LogLine, Stamped, StampedInstant, UnreadableLine};
use crate::paths::{HashKeyed, PathTable};
use crate::request::Request;

const READ_BUFFER_BYTES: usize = 256 << 10;
/// Longest line of a log.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Unreadable lines in a row that end the reading: the format is wrong from there on.
const UNREADABLE_IN_A_ROW_MAX: u64 = 1_000;
/// A server's clock may be ahead of this machine's by this.
const AHEAD_MAX: Nanos = Nanos::from_secs(86_400);
/// User agents whose kind is kept.
const AGENTS_MAX: usize = 100_000;
/// Methods of all lines.
const METHODS_MAX: usize = 64;
/// Parts of the names of programs that follow links.
const BOTS: [&str; 6] = ["bot", "crawl", "spider", "slurp", "facebookexternal", "monitor"];

/// Lines that were not read, by reason, with the first of each.
pub(crate) type UnreadableLines = BTreeMap<UnreadableLine, Unreadable>;

/// Lines that were not read for one reason.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub lines: u64,
    pub first_file: PathBuf,
    pub first_line: u64,
}

/// What all files of a log share.
pub(crate) struct Reading {
    pub paths: PathTable,
    pub unreadable: UnreadableLines,
    /// Distinct methods; a request has the index.
    pub methods: Vec<String>,
    /// Readable lines.
    pub lines: u64,
    /// Lines with a duration.
    pub with_duration: u64,
    /// Requests of paths for which there was no room.
    pub without_room: u64,
    /// Coarsest stamp.
    pub resolution: Nanos,
    /// What stamps are, of the last line.
    pub instant: StampedInstant,
    /// Paths have their queries.
    keeps_queries: bool,
    now: Nanos,
    clients: RandomState,
    agents: HashKeyed<bool>,
    spread: Spread,
}

impl Reading {
    /// Nothing read yet. Stamps later than `now` are refused.
    pub fn new(keeps_queries: bool, now: Nanos) -> Self {
        Self {
            paths: PathTable::default(),
            unreadable: UnreadableLines::new(),
            methods: Vec::new(),
            lines: 0,
            with_duration: 0,
            without_room: 0,
            resolution: Nanos::ZERO,
            instant: StampedInstant::End,
            keeps_queries,
            now,
            clients: RandomState::new(),
            agents: HashKeyed::default(),
            spread: Spread(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// The request of a line, stamped as it is; `None` if there is no room for its path.
    fn request(&mut self, line: &LogLine<'_>) -> Result<Option<Request>, UnreadableLine> {
        if line.stamp > self.now + AHEAD_MAX {
            return Err(UnreadableLine::Future);
        }
        let path = match self.keeps_queries {
            true => &*line.target,
            false => line.target.split('?').next().unwrap_or_default(),
        };
        let Some(path) = self.paths.insert(path) else {
            self.without_room += 1;
            return Ok(None);
        };
        let method = match self.methods.iter().position(|method| *method == line.method) {
            Some(method) => method,
            None if self.methods.len() < METHODS_MAX => {
                self.methods.push(line.method.clone().into_owned());
                self.methods.len() - 1
            }
            None => return Err(UnreadableLine::NoRequest),
        };
        self.lines += 1;
        self.with_duration += u64::from(line.duration.is_some());
        self.resolution = self.resolution.max(line.stamped.resolution);
        self.instant = line.stamped.instant;
        let agent = self.clients.hash_one(&*line.agent);
        if self.agents.len() >= AGENTS_MAX {
            self.agents.clear();
        }
        let is_bot = *self.agents.entry(agent).or_insert_with(|| is_bot(&line.agent));
        Ok(Some(Request {
            begin: line.stamp,
            duration: line.duration.unwrap_or_default(),
            path,
            client: self.clients.hash_one((&*line.client, agent)),
            bytes: line.bytes,
            status: line.status,
            method: method as u8,
            is_bot,
        }))
    }
}

fn is_bot(agent: &str) -> bool {
    let agent = agent.to_ascii_lowercase();
    BOTS.iter().any(|bot| agent.contains(bot))
}

/// One file of a log.
pub(crate) struct LogSource {
    file: PathBuf,
    reader: Box<dyn BufRead>,
    format: LogFormat,
    /// Name of the format.
    pub format_name: String,
    line: Vec<u8>,
    number: u64,
    unreadable_in_a_row: u64,
    /// Stamp and requests that have it, in the order of the file.
    group: VecDeque<Request>,
    /// The first of the next stamp.
    ahead: Option<(Request, Stamped)>,
}

impl LogSource {
    /// Opens a file. `format` is what the user gave; else it is recognised. `None` for an empty file.
    pub fn open(file: &Path, format: Option<&str>) -> Result<Option<Self>, DeriveError> {
        let unreadable = |source| DeriveError::Unreadable { file: file.to_owned(), source };
        let mut reader = open_file(file)?;
        let start = reader.fill_buf().map_err(unreadable)?;
        if start.is_empty() {
            return Ok(None);
        }
        let lines: Vec<&[u8]> = start.split(|byte| *byte == b'\n').take(100).collect();
        let (format, format_name) = match format {
            Some(text) => (LogFormat::parse(text)?, text.to_owned()),
            None => {
                let recognised = LogFormat::recognise(&lines).ok_or_else(|| {
                    let first = LogFormat::parse("combined").map(|combined| {
                        combined.read(lines[0]).err().unwrap_or(UnreadableLine::OtherFormat)
                    });
                    let reason = first.unwrap_or(UnreadableLine::OtherFormat).to_string();
                    DeriveError::NoFormat { file: file.to_owned(), reason }
                })?;
                (recognised.0, recognised.1.to_owned())
            }
        };
        Ok(Some(Self {
            file: file.to_owned(),
            reader,
            format,
            format_name,
            line: Vec::new(),
            number: 0,
            unreadable_in_a_row: 0,
            group: VecDeque::new(),
            ahead: None,
        }))
    }

    /// The stamp of the first line that can be read.
    pub fn first_stamp(mut self) -> Result<Option<Nanos>, DeriveError> {
        while self.read_line()? {
            if let Ok(line) = self.format.read(&self.line) {
                return Ok(Some(line.stamp));
            }
        }
        Ok(None)
    }

    /// The next request. The requests of one stamp are spread evenly at random over what the stamp
    /// leaves open, in the order of their lines.
    pub fn next(&mut self, reading: &mut Reading) -> Result<Option<Request>, DeriveError> {
        if let Some(request) = self.group.pop_front() {
            return Ok(Some(request));
        }
        let first = match self.ahead.take() {
            Some(first) => Some(first),
            None => self.next_line(reading)?,
        };
        let Some((first, stamped)) = first else { return Ok(None) };
        self.group.push_back(first);
        while let Some((next, stamped)) = self.next_line(reading)? {
            if next.begin != first.begin {
                self.ahead = Some((next, stamped));
                break;
            }
            self.group.push_back(next);
        }
        reading.spread.fill(&mut self.group, stamped);
        Ok(self.group.pop_front())
    }

    fn next_line(
        &mut self,
        reading: &mut Reading,
    ) -> Result<Option<(Request, Stamped)>, DeriveError> {
        while self.read_line()? {
            let line = match self.line.len() as u64 > LINE_BYTES_MAX {
                true => Err(UnreadableLine::TooLong),
                false => self.format.read(&self.line),
            };
            let request = line.and_then(|line| Ok((reading.request(&line)?, line.stamped)));
            match request {
                Ok((Some(request), stamped)) => {
                    self.unreadable_in_a_row = 0;
                    return Ok(Some((request, stamped)));
                }
                Ok((None, _)) => {}
                Err(_) if self.line.is_empty() => {}
                Err(reason) => self.skip(reason, reading)?,
            }
        }
        Ok(None)
    }

    fn skip(&mut self, reason: UnreadableLine, reading: &mut Reading) -> Result<(), DeriveError> {
        let (file, line) = (&self.file, self.number);
        let entry = reading.unreadable.entry(reason).or_insert_with(|| Unreadable {
            lines: 0,
            first_file: file.clone(),
            first_line: line,
        });
        entry.lines += 1;
        // Probes without a request are lines of the format.
        if reason == UnreadableLine::NoRequest {
            return Ok(());
        }
        self.unreadable_in_a_row += 1;
        match self.unreadable_in_a_row < UNREADABLE_IN_A_ROW_MAX {
            true => Ok(()),
            false => Err(DeriveError::UnreadableLines {
                file: file.clone(),
                line,
                count: self.unreadable_in_a_row,
                reason,
            }),
        }
    }

    /// The next line, without its end; of one that is too long the beginning. False at the end.
    fn read_line(&mut self) -> Result<bool, DeriveError> {
        let unreadable = |source| DeriveError::Unreadable { file: self.file.clone(), source };
        self.line.clear();
        let mut limited = self.reader.by_ref().take(LINE_BYTES_MAX + 2);
        if limited.read_until(b'\n', &mut self.line).map_err(unreadable)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        match self.line.last() {
            Some(b'\n') => _ = self.line.pop(),
            _ => self.reader.skip_until(b'\n').map(|_| ()).map_err(unreadable)?,
        }
        Ok(true)
    }
}

/// The file, decompressed.
fn open_file(file: &Path) -> Result<Box<dyn BufRead>, DeriveError> {
    let unreadable = |source| DeriveError::Unreadable { file: file.to_owned(), source };
    if file.is_dir() {
        return Err(unreadable(io::Error::other("it is a folder; name its files")));
    }
    let opened = File::open(file).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, opened);
    if compressor(reader.fill_buf().map_err(unreadable)?) == Some(GZIP) {
        let decoder = MultiGzDecoder::new(reader);
        let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, decoder);
        return match compressor(reader.fill_buf().map_err(unreadable)?) {
            Some(GZIP) => Err(DeriveError::CompressedTwice { file: file.to_owned() }),
            _ => Ok(Box::new(reader)),
        };
    }
    match compressor(reader.buffer()) {
        Some(by) => Err(DeriveError::Compressed { file: file.to_owned(), by }),
        None => Ok(Box::new(reader)),
    }
}

const GZIP: &str = "gzip";

/// What compressed a file that begins so.
fn compressor(start: &[u8]) -> Option<&'static str> {
    let all: [(&[u8], _); 4] = [
        (b"\x1f\x8b", GZIP),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ", "xz"),
        (b"BZh", "bzip2"),
    ];
    all.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, by)| by)
}

/// Random instants within what stamps leave open. The seed is fixed: the same log gives the same load.
struct Spread(u64);

impl Spread {
    /// Gives each request of a group its begin.
    fn fill(&mut self, group: &mut VecDeque<Request>, stamped: Stamped) {
        let resolution = stamped.resolution.0 as f64;
        // Sorted uniform numbers are the sums of exponential ones, divided by one sum more.
        let mut sum = 0.0;
        let mut sums: Vec<f64> = Vec::with_capacity(group.len());
        for _ in 0..group.len() {
            sum += self.exponential();
            sums.push(sum);
        }
        sum += self.exponential();
        for (request, at) in group.iter_mut().zip(sums) {
            let stamp = Nanos(request.begin.0 + (at / sum * resolution) as u64);
            request.begin = match stamped.instant {
                StampedInstant::Begin => stamp,
                StampedInstant::End => stamp.saturating_sub(request.duration),
            };
        }
    }

    fn exponential(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - unit).ln()
    }
}

#[cfg(test)]
mod tests;
