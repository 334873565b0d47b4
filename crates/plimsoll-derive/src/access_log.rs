//! From the files of an access log to a load: one pass reads and orders the requests, the next finds
//! pages and sessions and writes the replay, and the model is written from what they counted.

use std::path::{Path, PathBuf};

use plimsoll_model::units::Nanos;

use crate::error::DeriveError;
use crate::line::LogFormat;
use crate::options::DeriveOptions;
use crate::order::Ordered;
use crate::output::{Derived, LogFacts, Output, ReplayWriter};
use crate::pages::Pages;
use crate::request::Spool;
use crate::sessions::SessionFinder;
use crate::source::Reading;

/// Derives a model and a replay from access logs.
///
/// # Errors
/// Input that is no log, lines that cannot be read a thousand times in a row, files that cannot be
/// read or written.
pub fn derive_from_logs(options: &DeriveOptions) -> Result<Derived, DeriveError> {
    if let Some(format) = &options.log_format {
        LogFormat::parse(format)?;
    }
    let out = options.out.as_path();
    let unwritable = |source| DeriveError::Unwritable { file: out.to_owned(), source };
    let reading = Reading::new(options.keeps_paths, options.now);
    let mut ordered = Ordered::new(&options.files, options.log_format.as_deref(), reading)?;
    let mut spool = Spool::create(out).map_err(unwritable)?;
    let (mut facts, mut first, mut last) = (LogFacts::default(), None, Nanos::ZERO);
    let (mut methods, mut statuses) = (Vec::new(), vec![0; 600]);
    while let Some(request) = ordered.next()? {
        let reading = &mut ordered.reading;
        let number = usize::from(request.method);
        for method in &reading.methods[methods.len()..] {
            let is_included = options.methods.contains(method);
            methods.push(MethodCount { is_included, is_get: method == GET, lines: 0 });
        }
        let method = &mut methods[number];
        method.lines += 1;
        statuses[usize::from(request.status)] += 1;
        // A connection that went on as a WebSocket is no reply.
        if request.status < 200 || !method.is_included {
            continue;
        }
        first.get_or_insert(request.begin);
        last = request.begin;
        facts.requests += 1;
        facts.bot_requests += u64::from(request.is_bot);
        if method.is_get {
            reading.paths.count(&request);
        }
        spool.push(&request).map_err(unwritable)?;
    }
    let named = ordered.reading.methods.iter().zip(&methods);
    facts.methods = named.map(|(name, method)| (name.clone(), method.lines)).collect();
    facts.statuses = (0..).zip(statuses).filter(|(_, lines)| *lines > 0).collect();
    if ordered.reading.lines == 0 && ordered.reading.unreadable.is_empty() {
        return Err(DeriveError::Empty);
    }
    let start = first.unwrap_or_default();
    facts.seconds = last.saturating_sub(start).as_secs_f64();
    if facts.requests < 2 || facts.seconds == 0.0 {
        return Err(DeriveError::TooShort { requests: facts.requests, seconds: facts.seconds });
    }
    ordered.reading.paths.find_pages();
    let reading = &ordered.reading;
    facts.add_reading(&ordered);
    let pages = Pages::choose(&reading.paths);
    let resolution = reading.resolution;
    let timeout = options.session_timeout;
    let mut finder = SessionFinder::new(&pages, timeout, (start, resolution));
    let output = Output::new(options, reading);
    let mut replay = ReplayWriter::create(&output, start)?;
    spool.for_each(|request| {
        if methods[usize::from(request.method)].is_get {
            finder.request(&request);
        }
        replay.push(&request).map_err(|source| Written { file: replay.file.clone(), source })
    })?;
    replay.finish(&facts)?;
    facts.add_sessions(&mut finder, timeout);
    output.write_model(&facts, &finder, &pages)
}

/// The method of pages.
const GET: &str = "GET";

/// Lines with one method.
struct MethodCount {
    is_included: bool,
    is_get: bool,
    lines: u64,
}

/// A file that cannot be written or read back.
struct Written {
    file: PathBuf,
    source: std::io::Error,
}

impl From<std::io::Error> for Written {
    fn from(source: std::io::Error) -> Self {
        Self { file: Path::new("temporary file").to_owned(), source }
    }
}

impl From<Written> for DeriveError {
    fn from(Written { file, source }: Written) -> Self {
        Self::Unwritable { file, source }
    }
}
