//! An HTTP workload as the engine runs it. The only dynamic dispatch is once per worker; within,
//! every combination of session and script is its own code.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{ClientContext, Script};
use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::event::PageLimits;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::page_cache::AccessPattern;

use super::fileset::directory_bytes;
use super::h2::windows::H2Settings;
use super::h2_session::H2Session;
use super::journey::Journeys;
use super::journey::user::{Draws, Origin};
use super::journey::users::{UserReader, UserScript, UserTls, Users};
use super::parallel_session::ParallelSession;
use super::reader::{Plain, Reader};
use super::replay::{Replay, ReplayPaths, ReplayReader, ReplayScript};
use super::script::{FilePlan, FileScript, UrlPlan, UrlScript};
use super::session::HttpSession;
use super::site::{HttpOp, Site, WorkerSite};
use super::tls::{Tls, TlsSite};
use super::transport::TlsLoad;

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct HttpLoad {
    /// One per target.
    pub sites: Vec<Arc<Site>>,
    /// What the clients do.
    pub scripts: Scripts,
    /// For `https` targets.
    pub tls: Option<TlsLoad>,
    /// Of HTTP/2, where that is spoken.
    pub h2: Option<H2Settings>,
    /// What is done with the bodies of replies.
    pub reader: Plain,
    /// Names of the ops.
    pub names: Vec<String>,
    /// Shares of the ops, where the mix is fixed.
    pub shares: Option<Vec<f64>>,
    /// When requests of a log are due.
    pub recorded: Option<Recorded>,
}

/// What the clients do.
#[derive(Clone, Debug)]
pub(crate) enum Scripts {
    /// Ask for files of the file set.
    Files(Arc<FilePlan>),
    /// Ask for URLs.
    Urls(Arc<UrlPlan>),
    /// Follow journeys.
    Journeys(Arc<JourneyLoad>),
    /// Send what was recorded.
    Replay(Arc<Replay>),
}

/// What the users of a load point share.
#[derive(Debug)]
pub(crate) struct JourneyLoad {
    pub(crate) journeys: Arc<Journeys>,
    /// One per target.
    pub(crate) origins: Vec<Origin>,
    /// Seed of the run.
    pub(crate) seed: u64,
}

impl Workload for HttpLoad {
    fn op_names(&self) -> OpNames {
        OpNames(self.names.clone())
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        self.shares.clone()
    }

    fn page_limits(&self) -> Vec<PageLimits> {
        match &self.scripts {
            Scripts::Journeys(load) => load.journeys.page_limits(),
            Scripts::Files(_) | Scripts::Urls(_) | Scripts::Replay(_) => Vec::new(),
        }
    }

    fn data_bytes(&self) -> Option<u64> {
        match &self.scripts {
            Scripts::Files(plan) => {
                let of_one = u64::from(plan.directories) * directory_bytes();
                Some(of_one * self.sites.len() as u64)
            }
            Scripts::Urls(_) | Scripts::Journeys(_) | Scripts::Replay(_) => None,
        }
    }

    fn recorded(&self) -> Option<Recorded> {
        self.recorded.clone()
    }

    fn access_pattern(&self) -> Option<AccessPattern> {
        match &self.scripts {
            Scripts::Files(plan) => plan.access_pattern(self.sites.len() as u64),
            Scripts::Urls(_) | Scripts::Journeys(_) | Scripts::Replay(_) => None,
        }
    }

    fn clients_per_session(&self) -> u32 {
        match (&self.scripts, self.h2) {
            // Each user has a connection, and what is parallel in a page the streams.
            (Scripts::Journeys(_), _) | (_, None) => 1,
            (_, Some(settings)) => settings.streams,
        }
    }

    fn connections_per_session(&self) -> u32 {
        match (&self.scripts, self.h2) {
            (Scripts::Journeys(load), None) => load.journeys.parallel_max(),
            _ => 1,
        }
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        let transport = Transport { sites: &self.sites, tls: self.tls.as_ref(), h2: self.h2 };
        let (site, reader) =
            (|site: &Arc<Site>| WorkerSite::new(site.clone()), |_: &_| self.reader.clone());
        match &self.scripts {
            Scripts::Files(plan) => {
                transport.drive(context, site, reader, |c| FileScript::new(plan.clone(), c.client));
            }
            Scripts::Urls(plan) => {
                transport.drive(context, site, reader, |c| UrlScript::new(plan.clone(), c.client));
            }
            Scripts::Replay(replay) => {
                let paths = ReplayPaths::new(replay);
                let site =
                    |site: &Arc<Site>| WorkerSite::with_variables(site.clone(), paths.clone());
                let reader = |_: &_| ReplayReader(replay.clone());
                transport.drive(context, site, reader, |_| ReplayScript(replay.clone()));
            }
            Scripts::Journeys(load) => {
                let assignment = context.assignment;
                let nonce = assignment.nonce;
                let by_client = !assignment.load.is_sessions();
                let clients = by_client.then(|| assignment.load.clients());
                let draws = Draws { seed: load.seed, nonce, clients };
                let users = Users::new(load.journeys.clone(), load.origins.clone(), draws);
                let users = Rc::new(users);
                let site =
                    |site: &Arc<Site>| WorkerSite::with_variables(site.clone(), users.clone());
                let reader = |c: &ClientContext| UserReader::new(users.clone(), c);
                let script = |c: &ClientContext, tls| UserScript::new(users.clone(), c, tls);
                transport.drive_users(context, (site, &load.journeys), reader, script);
            }
        }
    }
}

/// How the clients of a load point reach their servers.
#[derive(Clone, Copy, Debug)]
pub struct Transport<'a> {
    /// One per target.
    pub sites: &'a [Arc<Site>],
    /// For `https` targets.
    pub tls: Option<&'a TlsLoad>,
    /// Of HTTP/2, where that is spoken.
    pub h2: Option<H2Settings>,
}

impl Transport<'_> {
    /// Runs a worker: `site` makes what its clients share of a server, `reader` and `script` what
    /// each of them has.
    pub fn drive<R: Reader, S: Script<Op = HttpOp>>(
        self,
        context: WorkerContext<'_>,
        site: impl Fn(&Arc<Site>) -> Rc<WorkerSite>,
        reader: impl Fn(&ClientContext) -> R,
        script: impl Fn(&ClientContext) -> S,
    ) {
        let servers = self.servers(&context, site);
        let one = |c: &ClientContext| HttpSession::new(servers.site(c), reader(c), c.op_timeout);
        let several =
            |c: &ClientContext, h2| H2Session::new(servers.site(c), h2, reader(c), c.op_timeout);
        match (self.h2, servers.tls.is_empty()) {
            (None, true) => context.drive(|c| (one(&c), script(&c))),
            (None, false) => {
                context.drive(|c| (Tls::new(one(&c), servers.tls_site(&c)), script(&c)));
            }
            (Some(h2), true) => context.drive(|c| (several(&c, h2), script(&c))),
            (Some(h2), false) => {
                context.drive(|c| (Tls::new(several(&c, h2), servers.tls_site(&c)), script(&c)));
            }
        }
    }

    /// The same of users. Where those have certificates or resume TLS sessions, each user's script
    /// gets the TLS of that user.
    fn drive_users<R: Reader, S: Script<Op = HttpOp>>(
        self,
        context: WorkerContext<'_>,
        (site, journeys): (impl Fn(&Arc<Site>) -> Rc<WorkerSite>, &Journeys),
        reader: impl Fn(&ClientContext) -> R,
        script: impl Fn(&ClientContext, Option<UserTls>) -> S,
    ) {
        let servers = self.servers(&context, site);
        let own_tls = self.tls.filter(|tls| tls.resumes() || journeys.certificates.is_some());
        let tls_site = |c: &ClientContext| {
            let own = own_tls.and_then(|tls| {
                let site = tls.sites().nth(c.endpoint % servers.sites.len())?;
                site.spare_links.limit(0);
                Some(UserTls { site, resumes: tls.resumes() })
            });
            let site = own.as_ref().map(|own| own.site.clone());
            (site.unwrap_or_else(|| servers.tls_site(c)), own)
        };
        let one = |c: &ClientContext| {
            let readers = (0..journeys.parallel_max()).map(|_| reader(c));
            ParallelSession::new(&servers.site(c), readers, c.op_timeout)
        };
        let several =
            |c: &ClientContext, h2| H2Session::new(servers.site(c), h2, reader(c), c.op_timeout);
        match (self.h2, servers.tls.is_empty()) {
            (None, true) => context.drive(|c| (one(&c), script(&c, None))),
            (None, false) => context.drive(|c| {
                let (site, own) = tls_site(&c);
                (Tls::new(one(&c), site), script(&c, own))
            }),
            (Some(h2), true) => context.drive(|c| (several(&c, h2), script(&c, None))),
            (Some(h2), false) => context.drive(|c| {
                let (site, own) = tls_site(&c);
                (Tls::new(several(&c, h2), site), script(&c, own))
            }),
        }
    }

    fn servers(
        self,
        context: &WorkerContext<'_>,
        site: impl Fn(&Arc<Site>) -> Rc<WorkerSite>,
    ) -> WorkerServers {
        let sites: Vec<Rc<WorkerSite>> = self.sites.iter().map(site).collect();
        let tls: Vec<Rc<TlsSite>> = self.tls.into_iter().flat_map(TlsLoad::sites).collect();
        let spare = context.spare_links / (sites.len() + tls.len()).max(1) as u32;
        sites.iter().for_each(|site| site.spare_links.limit(spare));
        tls.iter().for_each(|site| site.spare_links.limit(spare));
        WorkerServers { sites, tls }
    }
}

/// What the clients of a worker share of the servers.
struct WorkerServers {
    sites: Vec<Rc<WorkerSite>>,
    /// Empty without TLS.
    tls: Vec<Rc<TlsSite>>,
}

impl WorkerServers {
    fn site(&self, client: &ClientContext) -> Rc<WorkerSite> {
        self.sites[client.endpoint % self.sites.len()].clone()
    }

    fn tls_site(&self, client: &ClientContext) -> Rc<TlsSite> {
        self.tls[client.endpoint % self.tls.len()].clone()
    }
}
