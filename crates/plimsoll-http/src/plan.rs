//! From a suite and its targets to a workload, with its parameters resolved.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::disclosure::Setting;
use plimsoll_model::method::Practice;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::suite::{Arrivals, Conditioning, LoadSpec, Profile, Suite};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::{Bytes, grouped};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{Plan, PlanError, PlanRequest, Planner};

use super::fileset::{self, CLASSES, FileSet, FileSetId};
use super::headers::Header;
use super::journey;
use super::journey::plan::JourneyPlan;
use super::look::{Look, reach};
use super::parameters::{
    Connections, FileSetParameters, HttpWorkload, RequestSource, TlsResumption,
};
use super::reader::Plain;
use super::replay::ReplayPlan;
use super::script::{
    FilePlan, LongLivedConnections, UrlCard, UrlPlan, check_load, cumulative, poisson_weights,
    sessions,
};
use super::site::{Site, Version};
use super::transport::{self, TlsLoad, check_targets};
use super::urls::{self, UrlLine};
use super::version::{Spoken, check_streams, peer_fact, spoken_name};
use super::warm::Warming;
use super::wire::request::RequestText;
use super::wire::template::Template;
use super::workload::{HttpLoad, JourneyLoad, Scripts};
use crate::error::HttpPlanError;
use crate::headers::HEADER_FACT;

/// Load that the file set is made for while the peak is still being searched.
pub(crate) const ASSUMED_PEAK_OPS_PER_S: f64 = 2_000.0;
/// The number of directories is a parameter whether the suite names one or not.
const DIRECTORIES: &str = "workload.file_set.directories";
/// Lists up to this long have statistics per URL.
const OPS_PER_URL_MAX: usize = 8;

/// The file set a server must hold for this suite; `None` when the suite needs none.
pub(crate) fn needed_file_set(
    suite: &Suite,
    profile: &Profile,
    highest_ops_per_s: Option<f64>,
) -> Result<Option<FileSetId>, PlanError> {
    Ok(suite.workload.parameters::<HttpWorkload>().file_set.as_ref().map(|set| FileSetId {
        seed: set.seed,
        directories: required_directories(set, profile, highest_ops_per_s),
    }))
}

fn required_directories(set: &FileSetParameters, profile: &Profile, highest: Option<f64>) -> u32 {
    set.directories.unwrap_or_else(|| {
        let ops = highest.unwrap_or(ASSUMED_PEAK_OPS_PER_S);
        fileset::directories_for(ops, profile.workload_scale)
    })
}

/// Makes the workload of a load point.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload = request.suite.workload.parameters::<HttpWorkload>();
    let secure = check_targets(request.targets)?;
    check_load(request.suite, workload)?;
    let journeys = match workload.requests {
        RequestSource::Journey => Some(journey::plan::read(request, workload)?),
        RequestSource::FileSet | RequestSource::Urls | RequestSource::Replay => None,
    };
    let replay = match workload.requests {
        RequestSource::Replay => Some(ReplayPlan::new(request, workload)?),
        _ => None,
    };
    let recorded = replay.as_ref().map(|plan| plan.recorded.clone());
    let streams = journeys.as_ref().map(|plan| plan.journeys.parallel_max()).or(workload.streams);
    let workload = &HttpWorkload { streams, ..workload.clone() };
    let decided = request.learnt.map(serde_json::from_str).transpose().map_err(PlanError::own)?;
    let spoken = Spoken::new(workload, secure, request, decided)?;
    let learnt = serde_json::to_string(&spoken.version()).map_err(PlanError::own)?;
    let Spoken { h2, tls, facts } = spoken;
    let mut plan = Draft::new(request, workload, secure);
    plan.facts.extend(facts);
    plan.version = if h2.is_some() { Version::Http2 } else { Version::Http1 };
    let (sites, scripts, names, shares) = match (journeys, replay, &workload.file_set) {
        (Some(journeys), _, _) => plan.with_journeys(journeys)?,
        (_, Some(replay), _) => {
            plan.facts.extend(replay.facts);
            let sites = replay.replay.sites(request, workload, plan.version)?;
            (sites, Scripts::Replay(replay.replay), replay.names, None)
        }
        (_, _, Some(set)) => plan.with_files(set)?,
        (None, None, None) => plan.with_urls()?,
    };
    let reader = if workload.stream { Plain::Chunks } else { Plain::Unread };
    let load = HttpLoad { sites, scripts, reader, tls, h2, names, shares, recorded };
    if request.suite.conditioning == Conditioning::Warm {
        return Ok(Plan { learnt: Some(learnt), ..warmed(load, request, plan)? });
    }
    match request.planner {
        Planner::Controller if !matches!(load.scripts, Scripts::Files(_) | Scripts::Urls(_)) => {
            reach(request)?;
        }
        Planner::Controller if workload.file_set.is_none() && workload.first_check => {
            plan.facts.extend(look(&load, request)?);
        }
        Planner::Controller => {}
        Planner::Agent => reach(request)?,
    }
    let spoken = spoken_name(&load);
    let fixed = Plan::fixed(Arc::new(load), plan.practices, plan.facts);
    Ok(Plan { spoken, learnt: Some(learnt), ..fixed.holding(sessions(workload)) })
}

/// A plan that reads the file set before the first load point.
fn warmed(load: HttpLoad, request: &PlanRequest<'_>, draft: Draft<'_>) -> Result<Plan, PlanError> {
    let Scripts::Files(files) = &load.scripts else {
        return Err(PlanError::Unfit {
            suite: request.suite.name.clone(),
            reason: "conditioning = \"warm\" reads a file set, and there is none; set \
                     conditioning to \"as_found\""
                .to_owned(),
        });
    };
    let (directories, method) = (files.directories, files.method);
    let (names, shares) = (load.names.clone(), load.shares.clone());
    let spoken = spoken_name(&load);
    let preparation = Warming {
        load: Arc::new(load),
        targets: request.targets.to_vec(),
        directories,
        method,
        timeout: Duration::from_nanos(request.suite.op_timeout.0),
        is_warm: false,
    };
    let plan = Plan::per_point(preparation, names, shares, draft.practices, draft.facts);
    Ok(Plan { spoken, ..plan })
}

/// Sends the first request of its list to each target. Returns what the servers report of
/// themselves.
fn look(load: &HttpLoad, request: &PlanRequest<'_>) -> Result<Vec<Setting>, PlanError> {
    let Scripts::Urls(plan) = &load.scripts else { return Ok(Vec::new()) };
    let tls: Vec<_> = load.tls.iter().flat_map(TlsLoad::sites).collect();
    let mut facts = Vec::new();
    for ((site, target), at) in load.sites.iter().zip(request.targets).zip(0..) {
        let look = Look {
            site: Arc::clone(site),
            target,
            tls: tls.get(at).cloned(),
            method: plan.first_method(),
            key: request.seed,
            timeout: Duration::from_nanos(request.suite.op_timeout.0),
            h2: load.h2,
            is_complete: |_| false,
        };
        if let (Some(peer), Some(own)) = (look.perform(request.dial)?, load.h2) {
            facts.push(peer_fact(peer));
            check_streams(&target.url, peer, own)?;
        }
    }
    Ok(facts)
}

/// As the method's table has them, but for its one size that was rounded up.
fn file_sizes() -> String {
    let bytes = fileset::file_bytes(0, fileset::FILES_PER_CLASS);
    format!("four classes of nine; the last of class 0 has {bytes} bytes")
}

type Parts = (Vec<Arc<Site>>, Scripts, Vec<String>, Option<Vec<f64>>);

/// A plan in the making.
struct Draft<'a> {
    request: &'a PlanRequest<'a>,
    workload: &'a HttpWorkload,
    shared: bool,
    version: Version,
    practices: Vec<Practice>,
    facts: Vec<Setting>,
}

impl<'a> Draft<'a> {
    fn new(request: &'a PlanRequest<'a>, workload: &'a HttpWorkload, secure: bool) -> Self {
        let arrivals = match request.suite.load {
            LoadSpec::Open { arrivals, .. } => Some(arrivals),
            LoadSpec::Closed { .. } => None,
        };
        let shared = arrivals == Some(Arrivals::Shared);
        let mut draft = Self {
            request,
            workload,
            shared,
            version: Version::default(),
            practices: Vec::new(),
            facts: Vec::new(),
        };
        draft.state_common(secure);
        draft
    }

    fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.push(Setting::new(name, value));
    }

    fn state_common(&mut self, secure: bool) {
        let workload = self.workload;
        self.fact(
            "connections",
            match workload.connections {
                Connections::KeepAlive => "keep-alive",
                Connections::PerRequest => {
                    "per request; the server closes first, unless it leaves that to the client"
                }
                Connections::Held => "held; a client whose connection is closed leaves",
            },
        );
        if matches!(workload.requests, RequestSource::FileSet | RequestSource::Urls) {
            self.fact("method", workload.method.as_str());
            self.fact("expected statuses", Vec::from(workload.expect.clone()).join(", "));
        }
        for header in workload.headers.iter().filter_map(|field| Header::read(field)) {
            self.fact(HEADER_FACT, header.shown());
        }
        if secure {
            let check = if workload.tls_verify { "checked" } else { "not checked" };
            self.fact("TLS", format!("rustls with ring; certificate {check}"));
            self.fact(
                "TLS resumption",
                match workload.tls_resumption {
                    TlsResumption::Off => "off: every connection makes a full handshake",
                    TlsResumption::On if workload.requests == RequestSource::Journey => {
                        "on: within the session of each user"
                    }
                    TlsResumption::On => "on: within each worker and load point",
                },
            );
        }
        if workload.file_set.is_some() {
            self.state_practices(secure);
        }
    }

    /// Practices that the method mentions and no key of the suite sets.
    fn state_practices(&mut self, secure: bool) {
        let order = match self.shared {
            true => "one deck for all clients",
            false => "one deck for each group of 100 clients",
        };
        let transport = if secure { "TLS" } else { "plain HTTP" };
        self.practices.extend([
            Practice::new("generator.order_of_classes", order),
            Practice::new("generator.transport", transport),
            Practice::new("generator.file_sizes", file_sizes()),
        ]);
    }

    fn with_journeys(&mut self, journeys: JourneyPlan) -> Result<Parts, PlanError> {
        self.facts.extend(journeys.facts);
        let (journeys, names) = (journeys.journeys, journeys.names);
        let (mut sites, mut origins) = (Vec::new(), Vec::new());
        for target in self.request.targets {
            let frame = transport::frame(self.workload, &target.url, self.version)?;
            sites.push(Arc::new(journey::plan::site(frame, &journeys)?));
            origins.push(journey::plan::origin(&target.url));
        }
        let load = JourneyLoad { journeys: Arc::new(journeys), origins, seed: self.request.seed };
        Ok((sites, Scripts::Journeys(Arc::new(load)), names, None))
    }

    fn with_files(&mut self, set: &FileSetParameters) -> Result<Parts, PlanError> {
        let directories = self.directories(set)?;
        let seed = self.request.file_set.map_or(set.seed, |existing| existing.seed);
        let file_set = FileSet::new(seed, directories);
        let verify_one_in = self.workload.verify_one_in.unwrap_or(1);
        self.state_file_set(set, &file_set, verify_one_in);
        let mut sites = Vec::new();
        for target in self.request.targets {
            let path = urls::encoded(&target.url.path);
            let slash = if path.ends_with('/') { "" } else { "/" };
            let prefix = format!("{path}{slash}{}", set.path_prefix);
            if urls::request_target(&target.url).is_none() || target.url.query.is_some() {
                return Err(HttpPlanError::Path(target.url.to_string()).into());
            }
            let frame = transport::frame(self.workload, &target.url, self.version)?;
            sites.push(Arc::new(Site::with_files(
                frame,
                self.workload.method,
                &prefix,
                file_set.clone(),
            )));
        }
        let plan = FilePlan {
            seed: self.request.seed,
            class_percent: set.class_percent,
            cumulative: cumulative(poisson_weights(set.poisson_mean)),
            directories,
            verify_one_in,
            method: self.workload.method,
            shared: self.shared,
        };
        let names = (0..CLASSES).map(|class| format!("class{class}")).collect();
        let shares = set.class_percent.iter().map(|p| f64::from(*p) / 100.0).collect();
        Ok((sites, Scripts::Files(Arc::new(plan)), names, Some(shares)))
    }

    /// Directories to request: what the method requires, as far as the server has it.
    fn directories(&mut self, set: &FileSetParameters) -> Result<u32, PlanError> {
        let PlanRequest { profile, highest_ops_per_s: highest, file_set: existing, .. } =
            self.request;
        let required = required_directories(set, profile, *highest);
        let used = match existing {
            None => required,
            Some(FileSetId { directories: 0, .. }) => return Err(empty_file_set()),
            Some(existing) => existing.directories.min(required),
        };
        let assumed =
            format!("{ASSUMED_PEAK_OPS_PER_S} ops/s (assumed, the peak is not known yet)");
        let load = highest.map_or(assumed, |ops| format!("{} ops/s", grouped(ops)));
        let method = fileset::directories_for(highest.unwrap_or(ASSUMED_PEAK_OPS_PER_S), 1.0);
        let mut why = Vec::new();
        if set.directories.is_some() {
            why.push("fixed by the suite".to_owned());
        } else if profile.workload_scale != 1.0 {
            why.push(format!("workload_scale = {}", profile.workload_scale));
        }
        if used < required {
            why.push(format!("the server holds {used}"));
        }
        let why = match &why[..] {
            [] => String::new(),
            why => format!(" ({})", why.join("; ")),
        };
        let practice = Practice::new(DIRECTORIES, format!("{used} for {load}{why}"));
        self.practices.push(practice.unscaled(format!("{method} for {load}")));
        Ok(used)
    }

    fn state_file_set(&mut self, set: &FileSetParameters, files: &FileSet, verify_one_in: u32) {
        let id = files.id();
        let count = u64::from(id.directories) * 36;
        let size = Bytes(files.bytes());
        self.fact("file set", format!("{} directories, {count} files, {size}", id.directories));
        self.fact("file set seed", id.seed.to_string());
        let source =
            if self.request.file_set.is_some() { "read from the server" } else { "assumed" };
        self.fact("file set description", source);
        self.fact("class shares", format!("{:?} %", set.class_percent));
        self.fact("class order", "decks of 100; classes spread over the deck, clients staggered");
        let weights = poisson_weights(set.poisson_mean).map(|w| format!("{:.1}", w * 100.0));
        let mean = set.poisson_mean;
        self.fact(
            "file within the class",
            format!("Poisson({mean}) on 1..9: {} % (not published)", weights.join(" ")),
        );
        self.fact("content verified", format!("one reply in {verify_one_in}"));
    }

    fn with_urls(&mut self) -> Result<Parts, PlanError> {
        let run_urls = self.run_urls();
        let lists = self.lists(&run_urls)?;
        // Ops are called by the same names wherever the load is made.
        let first = lists.first().ok_or(PlanError::NoTarget)?;
        let (mut names, kinds) = name_ops(first);
        let cards = first.iter().zip(&kinds);
        let cards: Vec<UrlCard> = cards
            .map(|(line, kind)| UrlCard {
                kind: *kind,
                method: line.text.method,
                weight: line.weight,
            })
            .collect();
        let shares = shares(&cards, names.len());
        let is_drawn = |line: &UrlLine| !line.text.target.is_fixed() || !line.text.body.is_fixed();
        let is_drawn = first.iter().any(is_drawn);
        let long_lived = LongLivedConnections::new(self.workload, &mut names);
        let is_long_lived = long_lived.is_some();
        let plan = UrlPlan::new(self.request.seed, self.shared, cards);
        let plan = plan.drawn(is_drawn).holding(long_lived);
        self.state_requests(first, is_drawn);
        self.fact("URLs", first.len().to_string());
        for line in first.iter().take(OPS_PER_URL_MAX) {
            let UrlLine { weight, text, shown } = line;
            self.fact("URL", format!("{} {shown}, weight {weight}", text.method.as_str()));
        }
        let uses_decks = plan.uses_decks();
        self.fact("URL order", if uses_decks { "dealt from decks" } else { "drawn by weight" });
        let mut sites = Vec::new();
        for target in self.request.targets {
            let own = run_urls.iter().zip(&lists).find(|(url, _)| ***url == target.url);
            let (_, list) = own.ok_or(PlanError::NoTarget)?;
            let frame = transport::frame(self.workload, &target.url, self.version)?;
            frame.check_fields(list.iter().map(|line| &line.text))?;
            let urls = list.iter().map(|line| (&line.text, line.shown.as_str()));
            sites.push(Arc::new(Site::with_urls(frame, urls)));
        }
        let shares = shares.filter(|_| uses_decks && names.len() > 1 && !is_long_lived);
        Ok((sites, Scripts::Urls(Arc::new(plan)), names, shares))
    }

    fn state_requests(&mut self, list: &[UrlLine], is_drawn: bool) {
        if is_drawn {
            self.fact("random parts", "follow from the seed and the number of the op");
        }
        let with_body = list.iter().filter(|line| !line.text.body.is_empty()).count();
        if with_body > 0 {
            self.fact("requests with a body", format!("{with_body} of {}", list.len()));
        }
    }

    /// The defaults of a request whose line lacks them.
    fn default_request(&self) -> Result<RequestText, PlanError> {
        let workload = self.workload;
        let body = match (&workload.body, &workload.body_file) {
            (Some(text), _) => Template::parse(text).map_err(HttpPlanError::Body)?,
            (None, Some(file)) => {
                let bytes = self.request.files.read(Path::new(file));
                Template::fixed(&bytes.map_err(|e| HttpPlanError::BodyFile {
                    file: file.clone(),
                    reason: e.to_string(),
                })?)
            }
            (None, None) => Template::default(),
        };
        Ok(RequestText { body, ..RequestText::plain(workload.method, "/") })
    }

    /// Of all targets of the run.
    fn run_urls(&self) -> Vec<&'a TargetUrl> {
        match self.request.run_urls {
            Some(urls) => urls.iter().collect(),
            None => self.request.targets.iter().map(|target| &target.url).collect(),
        }
    }

    /// One list per target of the run, all of one length.
    fn lists(&self, targets: &[&TargetUrl]) -> Result<Vec<Vec<UrlLine>>, PlanError> {
        let default = self.default_request()?;
        let in_suite = self.workload.urls.as_deref().unwrap_or_default();
        if in_suite.is_empty() {
            let own = |url: &&TargetUrl| {
                let shown =
                    urls::request_target(url).ok_or_else(|| HttpPlanError::Url(url.to_string()))?;
                let target = Template::parse(&shown).map_err(HttpPlanError::Body)?;
                let text = RequestText { target, ..default.clone() };
                Ok(vec![UrlLine { weight: 1, text, shown }])
            };
            return targets.iter().map(own).collect();
        }
        let list = urls::parse_list(in_suite.iter().map(String::as_str), targets, &default)?;
        Ok(vec![list; targets.len()])
    }
}

/// Names of the ops and the kind of each line: per URL in a short list, else per method.
fn name_ops(list: &[UrlLine]) -> (Vec<String>, Vec<OpKind>) {
    let per_url = (2..=OPS_PER_URL_MAX).contains(&list.len());
    let mut names: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    for line in list {
        let method = line.text.method.as_str();
        let name = match per_url {
            true => format!("{method} {}", line.shown),
            false if names.len() < OPS_PER_URL_MAX || names.iter().any(|n| n == method) => {
                method.to_owned()
            }
            false => "OTHER".to_owned(),
        };
        let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        // At most nine names.
        kinds.push(OpKind(at as u8));
    }
    (names, kinds)
}

fn shares(cards: &[UrlCard], kinds: usize) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; kinds];
    for card in cards {
        *sums.get_mut(usize::from(card.kind.0))? += f64::from(card.weight);
    }
    let total: f64 = sums.iter().sum();
    Some(sums.into_iter().map(|sum| sum / total).collect())
}

/// The server's file set is being prepared or was left unfinished.
fn empty_file_set() -> PlanError {
    let why = "the server's file set has no complete directory; run plimsoll prepare again";
    SetupError::Unusable(why.to_owned()).into()
}
