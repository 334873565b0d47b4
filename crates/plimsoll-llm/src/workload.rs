//! A workload of generated text as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::seam::ClientSeat;
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_http::session::HttpSession;
use plimsoll_http::site::{Site, WorkerSite};
use plimsoll_http::tls::{Tls, TlsSite};
use plimsoll_http::transport::TlsLoad;
use plimsoll_model::outcome::OpNames;

use super::prompts::Prompts;
use super::reader::AnswerReader;
use super::requests::WorkerRequests;
use super::script::ChatScript;

/// The one kind of op.
pub(crate) const OP: &str = "chat";

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct LlmLoad {
    /// One per target.
    pub(crate) sites: Vec<Arc<Site>>,
    /// For `https` targets.
    pub(crate) tls: Option<TlsLoad>,
    /// What is asked.
    pub(crate) prompts: Arc<Prompts>,
    /// Questions of a conversation.
    pub(crate) turns: u32,
    /// Due times of a recorded load.
    pub(crate) recorded: Option<Recorded>,
}

impl Workload for LlmLoad {
    fn op_names(&self) -> OpNames {
        OpNames(vec![OP.to_owned()])
    }

    fn recorded(&self) -> Option<Recorded> {
        self.recorded.clone()
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let assignment = seat.assignment;
        let requests = WorkerRequests::new(self.prompts.clone(), assignment.nonce, self.turns);
        let requests = Rc::new(requests);
        let site = |site: &Arc<Site>| WorkerSite::with_bodies(site.clone(), requests.clone());
        let sites: Vec<Rc<WorkerSite>> = self.sites.iter().map(site).collect();
        let session = |c: &ClientSeat| {
            let reader = AnswerReader::new(requests.clone());
            HttpSession::new(sites[c.endpoint % sites.len()].clone(), reader, c.op_timeout)
        };
        let script = |c: &ClientSeat| ChatScript::new(requests.clone(), &assignment.load, c);
        let tls: Vec<Rc<TlsSite>> = self.tls.iter().flat_map(TlsLoad::sites).collect();
        match tls.is_empty() {
            true => seat.drive(|c| (session(&c), script(&c))),
            false => seat.drive(|c| {
                let site = tls[c.endpoint % tls.len()].clone();
                (Tls::new(session(&c), site), script(&c))
            }),
        }
    }
}
