//! An HTTP workload as the engine runs it. The only dynamic dispatch is once per worker; within,
//! every combination of session and script is its own code.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::{ClientSeat, Session};
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_model::outcome::OpNames;

use super::fileset::directory_bytes;
use super::h2::windows::H2Settings;
use super::h2_session::H2Session;
use super::reader::Plain;
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
}

/// What the clients do.
#[derive(Clone, Debug)]
pub(crate) enum Scripts {
    /// Ask for files of the file set.
    Files(Arc<FilePlan>),
    /// Ask for URLs.
    Urls(Arc<UrlPlan>),
}

impl Workload for HttpLoad {
    fn op_names(&self) -> OpNames {
        OpNames(self.names.clone())
    }

    fn op_shares(&self) -> Option<Vec<f64>> {
        self.shares.clone()
    }

    fn data_bytes(&self) -> Option<u64> {
        match &self.scripts {
            Scripts::Files(plan) => {
                let of_one = u64::from(plan.directories) * directory_bytes();
                Some(of_one * self.sites.len() as u64)
            }
            Scripts::Urls(_) => None,
        }
    }

    fn clients_per_session(&self) -> u32 {
        self.h2.map_or(1, |settings| settings.streams)
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let sites: Vec<Rc<WorkerSite>> =
            self.sites.iter().map(|site| WorkerSite::new(site.clone())).collect();
        let site = |c: ClientSeat| sites[c.endpoint % sites.len()].clone();
        let reader = || self.reader.clone();
        match self.h2 {
            None => self.run(seat, |c| HttpSession::new(site(c), reader(), c.op_timeout)),
            Some(settings) => {
                self.run(seat, |c| H2Session::new(site(c), settings, reader(), c.op_timeout));
            }
        }
    }
}

impl HttpLoad {
    fn run<S: Session<Op = HttpOp>>(&self, seat: Seat<'_>, session: impl Fn(ClientSeat) -> S) {
        let tls_sites: Vec<Rc<TlsSite>> = self.tls.iter().flat_map(TlsLoad::sites).collect();
        let tls_session =
            |c: ClientSeat| Tls::new(session(c), tls_sites[c.endpoint % tls_sites.len()].clone());
        match (&self.scripts, tls_sites.is_empty()) {
            (Scripts::Files(plan), true) => {
                seat.drive(|c| (session(c), FileScript::new(plan.clone(), c.client)));
            }
            (Scripts::Files(plan), false) => {
                seat.drive(|c| (tls_session(c), FileScript::new(plan.clone(), c.client)));
            }
            (Scripts::Urls(plan), true) => {
                seat.drive(|c| (session(c), UrlScript::new(plan.clone(), c.client)));
            }
            (Scripts::Urls(plan), false) => {
                seat.drive(|c| (tls_session(c), UrlScript::new(plan.clone(), c.client)));
            }
        }
    }
}
