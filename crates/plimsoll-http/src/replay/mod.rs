//! Requests of a log, each at its time: what a file of them holds, and how a worker sends them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`mod@file`] | the file, checked |

pub(crate) mod file;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_engine::interface::{Io, Script, ScriptContext, Step};
use plimsoll_engine::pacer::Recorded;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::outcome::{ErrorClass, OpKind};
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_protocol::{Content, InputFile, LoadFiles, PlanError, PlanRequest};

use crate::error::HttpPlanError;
use crate::parameters::{HttpWorkload, RequestSource, Statuses};
use crate::reader::{At, Reader};
use crate::site::{HttpOp, Request, RequestVariables, Site, SiteFrame, Version};
use crate::transport;
use crate::wire::request::{Method, RequestText};
use crate::wire::template::{Encoding, Piece, Template};

/// The header line of a file.
const HEADER: &str = "at_us,method,path,status,bytes";
/// Line of a file with its first request.
const FIRST_LINE: u64 = 2;

/// How requests of a log are replayed.
pub(crate) const LOAD_FILES: LoadFiles = LoadFiles {
    belong_to: "suites with requests = \"replay\"",
    fit: |suite| suite.workload.parameters::<HttpWorkload>().requests == RequestSource::Replay,
    read: |reader, name| Ok(Arc::new(file::read(reader, name).map_err(PlanError::own)?)),
    due_times,
};

/// Requests of a log. All workers share it.
#[derive(Debug)]
pub struct Replay {
    /// When each is due, since the first.
    offsets: Arc<[Nanos]>,
    /// What each is.
    lines: Vec<ReplayLine>,
    /// The different ones.
    requests: Vec<RecordedRequest>,
    /// Their methods; each is an op.
    methods: Vec<Method>,
    /// Indexes of requests by method and path.
    by_path: Vec<HashMap<Arc<str>, u32>>,
}

/// A request at its time.
#[derive(Clone, Copy, Debug)]
struct ReplayLine {
    /// Index of the request.
    request: u32,
    /// Status that it had.
    status: u16,
}

/// A request, and how the server had answered it.
#[derive(Debug)]
pub(crate) struct RecordedRequest {
    /// Index of the method.
    method: u8,
    /// Path and query.
    pub(crate) path: Arc<str>,
    /// Status of the first whole reply.
    pub(crate) status: u16,
    /// Size of its body.
    pub(crate) bytes: u64,
    /// How often it was requested.
    count: u32,
    /// Where not all replies had one status.
    mixed: Option<Box<MixedStatuses>>,
}

/// Statuses of one request, in the order of its lines.
#[derive(Debug)]
struct MixedStatuses {
    statuses: Vec<u16>,
    /// Replies so far.
    replies: AtomicUsize,
}

impl RecordedRequest {
    /// One more line of it, whose reply had this status.
    fn add_line(&mut self, status: u16) {
        let (first, status) = (whole_status(self.status), whole_status(status));
        let count = self.count;
        self.count += 1;
        if self.mixed.is_none() && status != first {
            let statuses = vec![first; count as usize];
            self.mixed = Some(Box::new(MixedStatuses { statuses, replies: AtomicUsize::new(0) }));
        }
        if let Some(mixed) = &mut self.mixed {
            mixed.statuses.push(status);
        }
    }

    /// The status of a server's next reply: as the lines have them, from the first again after the
    /// last.
    pub(crate) fn next_status(&self) -> u16 {
        let Some(mixed) = &self.mixed else { return whole_status(self.status) };
        let reply = mixed.replies.fetch_add(1, Ordering::Relaxed);
        mixed.statuses[reply % mixed.statuses.len()]
    }
}

/// The status that a client without validators and ranges gets.
const fn whole_status(status: u16) -> u16 {
    if is_partial(status) { 200 } else { status }
}

/// Replies with less than the whole, to clients that had the rest: no such client is here.
const fn is_partial(status: u16) -> bool {
    matches!(status, 206 | 304)
}

impl Replay {
    /// What was recorded of a request of this method and path.
    pub(crate) fn find(&self, method: &str, path: &str) -> Option<&RecordedRequest> {
        let index = self.methods.iter().position(|other| other.as_str() == method)?;
        self.requests.get(*self.by_path[index].get(path)? as usize)
    }

    /// The different requests, with their methods.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (Method, &RecordedRequest)> {
        self.requests.iter().map(|one| (self.methods[usize::from(one.method)], one))
    }

    /// Names of the ops.
    fn op_names(&self) -> Vec<String> {
        self.methods.iter().map(|method| method.as_str().to_owned()).collect()
    }

    fn line_of(&self, op: &HttpOp) -> Option<(&ReplayLine, &RecordedRequest)> {
        let line = self.lines.get(op.key as usize)?;
        Some((line, self.requests.get(line.request as usize)?))
    }

    /// The servers and the requests to them.
    pub(crate) fn sites(
        &self,
        request: &PlanRequest<'_>,
        workload: &HttpWorkload,
        version: Version,
    ) -> Result<Vec<Arc<Site>>, PlanError> {
        let urls = request.targets.iter().map(|target| &target.url);
        let frames = urls.map(|url| transport::frame(workload, url, version));
        frames.map(|frame| Ok(Arc::new(self.site(frame?)?))).collect()
    }

    /// The requests to a server: one of each method, whose path is that of its line.
    fn site(&self, frame: SiteFrame<'_>) -> Result<Site, HttpPlanError> {
        let frame = SiteFrame { expected: Statuses::any(), ..frame };
        let mut target = Template::default();
        target.push(Piece::Variable { number: 0, encoding: Encoding::Plain });
        let text = |method: &Method| RequestText {
            target: target.clone(),
            ..RequestText::plain(*method, "")
        };
        let texts: Vec<RequestText> = self.methods.iter().map(text).collect();
        frame.check_fields(texts.iter())?;
        Ok(Site::with_urls(frame, texts.iter().map(|text| (text, "/ (a path of the replay)"))))
    }
}

fn due_times(content: &Content) -> Option<Recorded> {
    let replay = Arc::clone(content).downcast::<Replay>().ok()?;
    Recorded::new(Arc::clone(&replay.offsets))
}

/// A replay as a plan needs it.
pub(crate) struct ReplayPlan {
    pub(crate) replay: Arc<Replay>,
    pub(crate) recorded: Recorded,
    pub(crate) names: Vec<String>,
    pub(crate) facts: Vec<Setting>,
}

impl ReplayPlan {
    /// From the load file of a run.
    pub(crate) fn new(
        request: &PlanRequest<'_>,
        workload: &HttpWorkload,
    ) -> Result<Self, PlanError> {
        check_load(request.suite)?;
        let InputFile { path, sha256, content } =
            request.loadfile.ok_or(HttpPlanError::NoReplay)?;
        let replay = Arc::clone(content).downcast::<Replay>();
        let replay = replay.map_err(|_| HttpPlanError::NoReplay)?;
        let speed = workload.speed.unwrap_or(1.0);
        let recorded = Recorded::new(Arc::clone(&replay.offsets)).ok_or(HttpPlanError::NoReplay)?;
        let count = |n: usize| grouped(n as f64);
        let partial = replay.lines.iter().filter(|line| is_partial(line.status)).count();
        let mut facts = vec![
            Setting::new("replay", format!("{}, sha256 {sha256}", path.display())),
            Setting::new(
                "recorded requests",
                format!(
                    "{} over {}, {} of them different; played {speed} times as fast, once",
                    count(replay.lines.len()),
                    recorded.length(),
                    count(replay.requests.len())
                ),
            ),
            Setting::new("expected statuses", "of each request the recorded one"),
            Setting::new("steady state", "not judged: the load changes as the recording does"),
        ];
        if partial > 0 {
            let text = format!(
                "{}: status 200 is good too, since no validators and ranges are sent",
                count(partial)
            );
            facts.push(Setting::new("requests with status 304 or 206", text));
        }
        let names = replay.op_names();
        Ok(Self { replay, recorded: recorded.played_once(speed, FIRST_LINE), names, facts })
    }
}

fn check_load(suite: &Suite) -> Result<(), PlanError> {
    match suite.load {
        LoadSpec::Open { arrivals: Arrivals::Shared, .. } => Ok(()),
        _ => Err(PlanError::Unfit {
            suite: suite.name.clone(),
            reason: "a replay has one schedule for all clients: set load.mode to \"open\" and \
                     load.arrivals to \"shared\""
                .to_owned(),
        }),
    }
}

/// Sends the requests of a schedule by their indexes in it.
pub(crate) struct ReplayScript(pub(crate) Arc<Replay>);

impl Script for ReplayScript {
    type Op = HttpOp;

    fn next(&mut self, context: ScriptContext) -> Step<HttpOp> {
        let replay = &self.0;
        let line = replay.lines.get(context.index as usize);
        let Some(request) = line.map(|line| &replay.requests[line.request as usize]) else {
            return Step::Done;
        };
        Step::Issue(HttpOp {
            kind: OpKind(request.method),
            request: Request::Url(u32::from(request.method)),
            method: replay.methods[usize::from(request.method)],
            verify: false,
            key: context.index,
        })
    }
}

/// The paths of requests.
#[derive(Debug)]
pub(crate) struct ReplayPaths(pub(crate) Arc<Replay>);

impl ReplayPaths {
    pub(crate) fn new(replay: &Arc<Replay>) -> Rc<Self> {
        Rc::new(Self(Arc::clone(replay)))
    }
}

impl RequestVariables for ReplayPaths {
    fn key(&self, op: &HttpOp) -> u64 {
        op.key
    }

    fn write(&self, op: &HttpOp, _number: u16, into: &mut Vec<u8>) {
        if let Some((_, request)) = self.0.line_of(op) {
            into.extend_from_slice(request.path.as_bytes());
        }
    }
}

/// Holds replies against the recorded statuses.
#[derive(Debug)]
pub(crate) struct ReplayReader(pub(crate) Arc<Replay>);

impl Reader for ReplayReader {
    type Reply = ();

    fn reads(&self, _: &HttpOp) -> bool {
        false
    }

    fn take(&mut self, (): &mut (), _: &HttpOp, _: &[u8]) {}

    fn read_ended(&mut self, (): &mut (), _: &At<'_>, _: &mut impl Io) {}

    fn end(&mut self, (): &mut (), at: &At<'_>, io: &mut impl Io) -> Result<(), ErrorClass> {
        let Some((line, request)) = self.0.line_of(at.op) else { return Ok(()) };
        if line.status == at.status || is_partial(line.status) && at.status == 200 {
            return Ok(());
        }
        let (method, path) = (at.op.method.as_str(), &request.path);
        let (status, recorded) = (at.status, line.status);
        let number = at.op.key + FIRST_LINE;
        io.explain(format_args!(
            "line {number}: {method} {path}: status {status}, where the recording has {recorded}"
        ));
        Err(ErrorClass::Status(status.into()))
    }
}
