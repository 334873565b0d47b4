//! Makes a preparation for each load point from a suite and its targets, with the values derived
//! from its parameters, and the load point as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::ClientContext;
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Load;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::method::Practice;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::sessions::SessionsPlan;
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_model::units::Bytes;
use plimsoll_protocol::net::{PointPreparation as _, SetupError};
use plimsoll_protocol::{Plan, PlanError, PlanRequest};

use super::loadfile::LoadFileSource;
use super::logon::Signing;
use super::op::SmbKind;
use super::parameters::{self, Application, Pattern, SizeTable, SmbWorkload};
use super::prepare::{PreparationRequest, SmbPreparation};
use super::script::{Pacing, ScriptPlan, SmbScript};
use super::session::{SmbSession, SmbSite};
use super::target::SmbTarget;
use super::wire::status;
use super::workspace::{ContentTable, Workspace};

/// Resolves the targets and checks that they let us in: a wrong password must not become a load
/// point.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload = request.suite.workload.parameters::<SmbWorkload>();
    let targets = targets(request)?;
    check_load(request.suite, workload)?;
    let input = request.loadfile.filter(|_| workload.pattern == Pattern::DiskMix);
    let replay = input.and_then(LoadFileSource::from_input);
    let replay = replay.as_ref();
    let facts = facts(request, workload, &targets, replay);
    let practices = practices(request, workload, replay);
    let op_shares = match replay {
        Some(_) => None,
        None => parameters::op_shares(workload),
    };
    let sessions = sessions(request, workload).filter(|_| replay.is_none());
    let loads = Loads {
        sessions: sessions.clone(),
        seed: request.seed,
        scale: request.profile.workload_scale,
        shares: targets.clone(),
        replay: replay.cloned(),
        content: ContentTable::new(workload.file_set_seed),
        workload: workload.clone(),
    };
    let mut preparation = SmbPreparation::new(PreparationRequest {
        targets,
        workload: workload.clone(),
        scale: request.profile.workload_scale,
        replay: replay.map(|source| Arc::clone(&source.file)),
        make: Box::new(move |load| loads.make(load)),
    });
    preparation.probe(request.dial)?;
    let names = parameters::op_names();
    Ok(Plan::per_point(preparation, names, op_shares, practices, facts).holding(sessions))
}

/// Of clients that stay. A profile that scales think times brings them on faster, too.
fn sessions(request: &PlanRequest<'_>, workload: &SmbWorkload) -> Option<SessionsPlan> {
    let scale = request.profile.think_scale;
    let starts_per_s = workload.logons_per_s / if scale > 0.0 { scale } else { 1.0 };
    let op = SmbKind::Logon.name().to_owned();
    (workload.pattern == Pattern::Sessions).then_some(SessionsPlan { op, starts_per_s })
}

fn targets(request: &PlanRequest<'_>) -> Result<Vec<SmbTarget>, PlanError> {
    let caller = request.dial.caller();
    let targets: Vec<SmbTarget> = request
        .targets
        .iter()
        .map(|target| SmbTarget::new(target, &caller))
        .collect::<Result<_, PlanError>>()?;
    for (at, one) in targets.iter().enumerate() {
        let identity =
            |target: &SmbTarget| (target.address, target.unc.clone(), target.base.clone());
        if let Some(other) = targets[..at].iter().find(|other| identity(other) == identity(one)) {
            return Err(SetupError::Wrong(format!(
                "targets {} and {} are the same directory of one share; name each once",
                other.name, one.name
            ))
            .into());
        }
    }
    Ok(targets)
}

/// A desktop waits for its answers; a logon storm does not.
fn check_load(suite: &Suite, workload: &SmbWorkload) -> Result<(), PlanError> {
    let wrong = |reason: &str| {
        Err(PlanError::Unfit { suite: suite.name.clone(), reason: reason.to_owned() })
    };
    match (&suite.load, workload.pattern) {
        (LoadSpec::Open { .. }, Pattern::DiskMix | Pattern::Nic | Pattern::Sessions) => {
            wrong("its clients wait for each answer; set load.mode to \"closed\"")
        }
        (
            LoadSpec::Open { arrivals: Arrivals::PerClient | Arrivals::Sessions, .. },
            Pattern::Logons,
        ) => wrong("whoever logs on next is any of the users; set load.arrivals to \"shared\""),
        _ => Ok(()),
    }
}

/// Common input of the workloads of all load points.
struct Loads {
    seed: u64,
    scale: f64,
    shares: Vec<SmbTarget>,
    workload: SmbWorkload,
    sessions: Option<SessionsPlan>,
    replay: Option<LoadFileSource>,
    content: ContentTable,
}

impl Loads {
    fn make(&self, load: &Load) -> Result<Arc<dyn Workload>, SetupError> {
        let mut plan =
            ScriptPlan::new(self.seed, load.clients(), self.workload.clone(), self.scale);
        plan.replay = self.replay.as_ref().map(|source| Arc::clone(&source.file));
        plan.sessions = self.sessions.clone();
        if matches!(load, Load::Open { .. }) {
            plan.pacing = Pacing::Open;
        }
        Ok(Arc::new(SmbLoad {
            shares: self.shares.clone(),
            plan: Arc::new(plan),
            content: self.content.clone(),
        }))
    }
}

fn practices(
    request: &PlanRequest<'_>,
    workload: &SmbWorkload,
    replay: Option<&LoadFileSource>,
) -> Vec<Practice> {
    let mut practices = Vec::new();
    let mut add = |key: &str, text: &str| practices.push(Practice::new(key, text));
    match workload.pattern {
        Pattern::DiskMix if replay.is_none() => {
            add(
                "generator.requests",
                "drawn from a statistical model of desktop applications, workload.model",
            );
            add("generator.applications", &applications(workload));
            if workload.shared_percent > 0.0 {
                let writers = if workload.shared_write_percent > 0.0 { "all" } else { "none" };
                let text = format!("read by all clients, written by {writers}");
                add("generator.shared_files", &text);
            }
            let scale = request.profile.workload_scale;
            if scale != 1.0 {
                let bytes = Bytes(Workspace::new(workload.workspace_mib, scale).bytes());
                let text = format!("{bytes} (workload_scale = {scale})");
                add("workload.workspace_mib", &text);
            }
        }
        Pattern::Logons => add("generator.logoff", "each client logs off at once"),
        Pattern::Sessions => {
            if let Some(plan) = sessions(request, workload)
                && plan.starts_per_s != workload.logons_per_s
            {
                let scale = request.profile.think_scale;
                let text = format!("{} (think_scale = {scale})", plan.starts_per_s);
                add("workload.logons_per_s", &text);
            }
        }
        Pattern::Echo => add("generator.requests", "ECHO, nothing else"),
        Pattern::DiskMix | Pattern::Nic => {}
    }
    let replayed = replay.map(LoadFileSource::deviations).unwrap_or_default();
    let replayed = replayed.into_iter().map(|text| Practice::new("generator.replay", text));
    practices.extend(replayed.map(Practice::as_deviation));
    practices
}

/// As the method's column has them, where they are the same.
fn applications(workload: &SmbWorkload) -> String {
    let applications = &workload.model.applications;
    let names: Vec<&str> = applications.keys().map(String::as_str).collect();
    match names.as_slice() {
        [] => {
            let sessions = workload.model.sessions;
            format!("{sessions} sessions, each with the whole mix and a document of its own")
        }
        names => format!("with a script each: {}", names.join(", ")),
    }
}

fn facts(
    request: &PlanRequest<'_>,
    workload: &SmbWorkload,
    targets: &[SmbTarget],
    replay: Option<&LoadFileSource>,
) -> Vec<Setting> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
    let users: Vec<&str> = targets
        .iter()
        .map(|target| match target.credentials.user.as_str() {
            "" => "guest",
            user => user,
        })
        .collect();
    fact("user", users.join(", "));
    fact("dialect", format!("up to {}", workload.dialect_max.as_str()));
    let signing = match workload.signing {
        Signing::WhenAsked => "when the server asks for it",
        Signing::Required => "required",
        Signing::Off => "off",
    };
    fact("signing", signing.to_owned());
    fact("encryption", if workload.encryption { "required" } else { "when asked" }.to_owned());
    fact("client caching", format!("{:?}", workload.caching).to_lowercase());
    fact("unexpected statuses after which a client leaves", workload.unexpected_max.to_string());
    if let Some(source) = replay {
        facts.extend(source.facts());
        return facts;
    }
    if workload.pattern == Pattern::DiskMix {
        facts.extend(model_facts(request, workload));
    }
    if matches!(workload.pattern, Pattern::Nic | Pattern::Echo) {
        let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
        fact("in flight per client", workload.outstanding_max.to_string());
    }
    facts
}

fn model_facts(request: &PlanRequest<'_>, workload: &SmbWorkload) -> Vec<Setting> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
    let model = &workload.model;
    let shares = parameters::op_names().into_iter().zip(model.shares());
    let mix: Vec<_> = shares
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{name} {:.2}", share * 100.0))
        .collect();
    fact("op mix", format!("{} % of ops", mix.join(", ")));
    let workspace = Workspace::new(workload.workspace_mib, request.profile.workload_scale);
    fact("workspace of a client", Bytes(workspace.bytes()).to_string());
    fact(
        "application sessions",
        format!("{} in a pass of about {} ops", model.sessions, model.ops_per_pass),
    );
    fact(
        "expected failures",
        format!(
            "{} % of creates, {} % of path queries, {} % of finds",
            model.missing_create_percent, model.missing_query_percent, model.missing_find_percent
        ),
    );
    for (name, application) in &model.applications {
        fact(&format!("application {name}"), application_text(application));
    }
    if model.applications.is_empty() {
        let (reads, writes) = (model.sequential_read_percent, model.sequential_write_percent);
        fact("sequential", format!("{reads} % of reads, {writes} % of writes"));
        fact("read sizes", model.read_sizes.to_string());
        fact("write sizes", model.write_sizes.to_string());
    }
    fact("reads of shared files", format!("{} %", workload.shared_percent));
    fact("writes to shared files", format!("{} %", workload.shared_write_percent));
    fact("content verified", format!("one read in {}", workload.verify_one_in));
    fact("file set seed", workload.file_set_seed.to_string());
    facts
}

fn application_text(application: &Application) -> String {
    let Application { ops, files, read_sizes, write_sizes, .. } = application;
    let kib = |sizes: &SizeTable| sizes.mean_bytes() / 1024.0;
    format!(
        "{ops} ops a session; a document and {files} files; reads of {:.1} KiB and writes of \
         {:.1} KiB on average",
        kib(read_sizes),
        kib(write_sizes)
    )
}

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct SmbLoad {
    /// One per endpoint of the assignment, in its order; never empty.
    pub shares: Vec<SmbTarget>,
    /// What the clients do.
    pub plan: Arc<ScriptPlan>,
    /// What is in the files.
    pub content: ContentTable,
}

impl SmbLoad {
    fn site(&self, share: &SmbTarget) -> SmbSite {
        let workload = &self.plan.workload;
        SmbSite {
            credentials: share.credentials.clone(),
            offer: workload.offer(),
            unc: share.unc.clone(),
            prefix: share.base.clone(),
            caching: workload.caching,
            content: self.content.clone(),
            outstanding_max: workload.outstanding_max,
            unexpected_max: workload.unexpected_max,
            buffers: Default::default(),
        }
    }
}

impl Workload for SmbLoad {
    fn op_names(&self) -> OpNames {
        OpNames(parameters::op_names())
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        match self.plan.replay {
            Some(_) => None,
            None => parameters::op_shares(&self.plan.workload),
        }
    }

    fn status_name(&self, status: u32) -> Option<&'static str> {
        status::name(status)
    }

    fn data_bytes(&self) -> Option<u64> {
        let homes = u64::from(self.plan.clients) * self.plan.workspace.bytes();
        Some(homes).filter(|_| self.plan.replay.is_none())
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        let sites: Vec<Rc<SmbSite>> =
            self.shares.iter().map(|share| Rc::new(self.site(share))).collect();
        context.drive(|client: ClientContext| {
            let site = Rc::clone(&sites[client.endpoint % sites.len()]);
            let script = SmbScript::new(Arc::clone(&self.plan), &client);
            (SmbSession::new(site, client), script)
        });
    }
}
