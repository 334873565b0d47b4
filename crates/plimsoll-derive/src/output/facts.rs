//! What a log has, as numbers: `derived.json`.

use std::collections::BTreeMap;

use plimsoll_model::units::Nanos;
use serde::Serialize;

use crate::arrivals::ArrivalTestOutcome;
use crate::fit::{Sample, ZipfFit};
use crate::line::StampedInstant;
use crate::order::Ordered;
use crate::paths::is_resource;
use crate::sessions::SessionFinder;

/// What a log has.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogFacts {
    /// Each file with its format.
    pub files: Vec<LogFileFacts>,
    /// Lines that were read.
    pub lines: u64,
    /// Lines that were not, by reason.
    pub unreadable: Vec<UnreadableFacts>,
    /// Requests in the load.
    pub requests: u64,
    /// Of them those of programs that say so.
    pub bot_requests: u64,
    /// From the first to the last of them.
    pub seconds: f64,
    /// Lines by method; those of others than the load's are left out.
    pub methods: BTreeMap<String, u64>,
    /// Lines by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests whose lines came over a minute after lines that began later.
    pub late_lines: u64,
    /// By how much the latest of them was moved.
    pub late_moved_max_s: f64,
    /// Requests left out because there were too many distinct paths.
    pub without_room: u64,
    /// Resolution of the stamps; requests are spread evenly within it.
    pub resolution_s: f64,
    /// Stamps are of the begin of requests, not of their end.
    pub stamps_are_begins: bool,
    /// Share of the lines that have a duration.
    pub with_duration_ratio: f64,
    /// Distinct paths.
    pub paths: usize,
    /// Distinct clients; one that returns after an hour counts again.
    pub clients: u64,
    /// Longest pause within a session.
    pub session_timeout_s: f64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions if pauses of 10, 30 and 60 minutes ended them.
    pub sessions_by_timeout: [u64; 3],
    /// Sessions that were cut, since too many clients were there at a time.
    pub sessions_cut: u64,
    /// Pages of a session on average.
    pub pages_per_session: f64,
    /// Length of a session on average, from its first request to its last byte.
    pub session_mean_s: f64,
    /// Is the begin of sessions a Poisson process? In windows of ten minutes and of an hour.
    pub session_arrivals: Vec<ArrivalTestOutcome>,
    /// The answer; absent where no window has enough sessions.
    pub sessions_are_poisson: Option<bool>,
    /// Popularity of the paths of all pages.
    pub zipf: Option<ZipfFit>,
    /// Times between the last byte of a page and the next page of the session.
    pub think: Option<SampleFacts>,
    /// Bytes of whole replies.
    pub sizes: Option<SampleFacts>,
    /// Width of the bins of `rate.csv`.
    pub rate_bin_s: f64,
    /// The pages of the model.
    pub pages: Vec<PageFacts>,
    /// Requests of resources that the model does not have, since they are rare on their pages.
    pub left_out_resources: u64,
}

/// A file of the log.
#[derive(Clone, Debug, Serialize)]
pub struct LogFileFacts {
    /// As named.
    pub file: String,
    /// Its format; absent for an empty file.
    pub format: Option<String>,
}

/// Lines that were not read for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadableFacts {
    /// Why.
    pub reason: String,
    /// How many.
    pub lines: u64,
    /// Where the first is: `file:line`.
    pub first: String,
}

/// Values, and the law that is closest.
#[derive(Clone, Debug, Serialize)]
pub struct SampleFacts {
    /// How many.
    pub n: u64,
    /// Their mean, in seconds or bytes.
    pub mean: f64,
    /// Quantiles: 10, 50, 90, 95, 99 %.
    pub quantiles: [f64; 5],
    /// Mean of the natural logarithms of the values above zero, of seconds or bytes.
    pub log_mean: Option<f64>,
    /// Their standard deviation.
    pub log_deviation: Option<f64>,
    /// Closest law.
    pub law: String,
    /// How far from the values its distribution function is at most (Kolmogorov and Smirnov).
    pub distance: f64,
}

/// A page of the model.
#[derive(Clone, Debug, Serialize)]
pub struct PageFacts {
    /// In the journey.
    pub name: String,
    /// `users` or `bots`.
    pub visitor: String,
    /// Such as `/item/*`; absent where paths are hashed, and for the page of all rare paths.
    pub path: Option<String>,
    /// How often it was requested.
    pub views: u64,
    /// Share of the visitor's page views.
    pub share: f64,
    /// Distinct paths of it.
    pub paths: usize,
    /// Popularity of those; absent for fewer than three frequent ones.
    pub zipf: Option<ZipfFit>,
    /// Law of its think times; absent where no page followed.
    pub think_law: Option<String>,
    /// Their mean.
    pub think_mean_s: Option<f64>,
    /// Mean size of whole replies.
    pub bytes_mean: Option<f64>,
}

impl LogFacts {
    /// What the reading counted.
    pub(crate) fn add_reading(&mut self, ordered: &Ordered) {
        let reading = &ordered.reading;
        let formats = ordered.files.iter().map(|(file, format)| (file, Some(format.clone())));
        let empty = ordered.empty_files.iter().map(|file| (file, None));
        self.files = formats
            .chain(empty)
            .map(|(file, format)| LogFileFacts { file: file.display().to_string(), format })
            .collect();
        self.lines = reading.lines;
        self.unreadable = reading
            .unreadable
            .iter()
            .map(|(reason, it)| UnreadableFacts {
                reason: reason.to_string(),
                lines: it.lines,
                first: format!("{}:{}", it.first_file.display(), it.first_line),
            })
            .collect();
        self.late_lines = ordered.late.requests;
        self.late_moved_max_s = ordered.late.moved_max.as_secs_f64();
        self.without_room = reading.without_room;
        self.resolution_s = reading.resolution.as_secs_f64();
        self.stamps_are_begins = reading.instant == StampedInstant::Begin;
        self.with_duration_ratio = reading.with_duration as f64 / reading.lines.max(1) as f64;
        self.paths = reading.paths.len();
        let pages = reading.paths.iter().filter(|(id, _)| !is_resource(reading.paths.text(*id)));
        self.zipf = ZipfFit::from_counts(pages.map(|(_, entry)| entry.requests()));
    }

    /// What the sessions are.
    pub(crate) fn add_sessions(&mut self, finder: &mut SessionFinder<'_>, timeout: Nanos) {
        self.session_arrivals = finder.finish();
        let answers = self.session_arrivals.iter().filter_map(ArrivalTestOutcome::is_poisson);
        self.sessions_are_poisson = answers.reduce(|all, one| all && one);
        self.session_timeout_s = timeout.as_secs_f64();
        self.sessions_by_timeout = finder.by_timeout;
        self.sessions_cut = finder.cut;
        self.clients = finder.distinct_clients;
        let sum = |count: &dyn Fn(&crate::sessions::VisitorSessions) -> f64| {
            finder.visitors.iter().map(count).sum::<f64>()
        };
        self.sessions = sum(&|visitor| visitor.sessions as f64) as u64;
        let sessions = (self.sessions as f64).max(1.0);
        self.pages_per_session = sum(&|visitor| visitor.views as f64) / sessions;
        let length = |visitor: &crate::sessions::VisitorSessions| {
            visitor.lengths.mean().unwrap_or(0.0) * visitor.lengths.len() as f64
        };
        self.session_mean_s = sum(&length) / sessions / 1e6;
        self.think = SampleFacts::from_sample(&finder.thinks, 1e-6);
        self.sizes = SampleFacts::from_sample(&finder.sizes, 1.0);
    }
}

impl SampleFacts {
    /// Of values in `unit`; `None` without any.
    fn from_sample(sample: &Sample, unit: f64) -> Option<Self> {
        let fitted = sample.fit()?;
        let logs = sample.log_moments();
        Some(Self {
            n: sample.len(),
            mean: sample.mean()? * unit,
            quantiles: [0.1, 0.5, 0.9, 0.95, 0.99].map(|share| sample.quantile(share) * unit),
            log_mean: logs.map(|(mean, _)| mean + unit.ln()),
            log_deviation: logs.map(|(_, deviation)| deviation),
            law: fitted.law.name().to_owned(),
            distance: fitted.distance,
        })
    }
}
