//! A workload of generated text as the engine runs it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::seam::{ClientSeat, Session};
use plimsoll_engine::worker::Seat;
use plimsoll_engine::workload::Workload;
use plimsoll_http::h2::windows::H2Settings;
use plimsoll_http::h2_session::H2Session;
use plimsoll_http::session::HttpSession;
use plimsoll_http::site::{HttpOp, Site, WorkerSite};
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
        let sites: Vec<Rc<WorkerSite>> = self.sites.iter().map(site).collect();
        let site = |c: &ClientSeat| sites[c.endpoint % sites.len()].clone();
        let reader = || AnswerReader::new(requests.clone());
        match self.h2 {
            None => {
                self.run(seat, &requests, |c| HttpSession::new(site(c), reader(), c.op_timeout))
            }
            Some(settings) => self.run(seat, &requests, |c| {
                H2Session::new(site(c), settings, reader(), c.op_timeout)
            }),
        }
    }
}

impl LlmLoad {
    fn run<S: Session<Op = HttpOp>>(
        &self,
        seat: Seat<'_>,
        requests: &Rc<WorkerRequests>,
        session: impl Fn(&ClientSeat) -> S,
    ) {
        let load = &seat.assignment.load;
        let script = |c: &ClientSeat| ChatScript::new(requests.clone(), load, c);
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
