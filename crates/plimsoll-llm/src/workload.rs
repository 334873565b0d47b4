//! A workload of generated text as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_http::h2::windows::H2Settings;
use plimsoll_http::site::{Site, WorkerSite};
use plimsoll_http::transport::TlsLoad;
use plimsoll_http::workload::Way;
use plimsoll_model::outcome::OpNames;

use super::prompts::Prompts;
use super::reader::AnswerReader;
use super::requests::{ChatScript, WorkerRequests};

/// The one kind of op.
pub(crate) const OP: &str = "chat";

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct LlmLoad {
    /// One per target.
    pub(crate) sites: Vec<Arc<Site>>,
    /// For `https` targets.
    pub(crate) tls: Option<TlsLoad>,
    /// Of HTTP/2, where that is spoken.
    pub(crate) h2: Option<H2Settings>,
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

    fn clients_per_session(&self) -> u32 {
        self.h2.map_or(1, |settings| settings.streams)
    }

    fn run_worker(&self, seat: Seat<'_>) {
        let nonce = seat.assignment.nonce;
        let requests = WorkerRequests::new(self.prompts.clone(), nonce, self.turns);
        let requests = Rc::new(requests);
        let site = |site: &Arc<Site>| WorkerSite::with_bodies(site.clone(), requests.clone());
        let load = &seat.assignment.load;
        let way = Way { sites: &self.sites, tls: self.tls.as_ref(), h2: self.h2 };
        let reader = || AnswerReader::new(requests.clone());
        way.drive(seat, site, reader, |c| ChatScript::new(requests.clone(), load, c));
    }
}
