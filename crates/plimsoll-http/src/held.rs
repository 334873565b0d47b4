//! Connections that are held: each client opens one when its turn has come, and keeps it.

use plimsoll_engine::seam::Step;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::sessions::SessionsPlan;
use plimsoll_model::suite::{LoadSpec, Suite};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::PlanError;

use super::parameters::HttpWorkload;
use super::site::HttpOp;

/// The op that opens a connection which is held: the first request of each client.
const OPENING: &str = "open";

/// How clients open the connections that they hold.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    sessions: SessionsPlan,
    /// Kind of each client's first op.
    opening: OpKind,
}

impl Held {
    /// Adds the name of the op to those there are; `None` where connections are not held.
    pub(crate) fn new(workload: &HttpWorkload, names: &mut Vec<String>) -> Option<Self> {
        let sessions = sessions(workload)?;
        names.push(OPENING.to_owned());
        // At most nine names are there before.
        Some(Self { sessions, opening: OpKind(names.len() as u8 - 1) })
    }

    /// The first request of a client, when its turn has come.
    pub(crate) fn open(&self, op: HttpOp, client: u32, now: Nanos) -> Step<HttpOp> {
        match self.sessions.start(client) {
            start if now < start => Step::SleepUntil(start),
            _ => Step::Issue(HttpOp { kind: self.opening, ..op }),
        }
    }
}

/// Of connections that are held.
pub(crate) fn sessions(workload: &HttpWorkload) -> Option<SessionsPlan> {
    let starts_per_s = workload.opened_per_s?;
    Some(SessionsPlan { op: OPENING.to_owned(), starts_per_s })
}

/// A client has a connection of its own to hold, and asks for nothing before it is open.
pub(crate) fn check_load(suite: &Suite, workload: &HttpWorkload) -> Result<(), PlanError> {
    match &suite.load {
        LoadSpec::Open { .. } if workload.opened_per_s.is_some() => Err(PlanError::Unfit {
            suite: suite.name.clone(),
            reason: "connections are held by the clients of a closed load; set load.mode to \
                     \"closed\""
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Connections;
    use crate::session::HttpSession;
    use crate::site::Request;
    use crate::test_io::{Bench, SMALL, file_op, file_set, file_site, reply};
    use crate::wire::request::Method;
    use plimsoll_engine::seam::{Link, Session as _};
    use plimsoll_model::outcome::{ErrorClass, OpStatus};

    #[test]
    fn a_client_sleeps_until_its_turn_and_then_opens_its_connection() {
        let workload = HttpWorkload {
            connections: Connections::Held,
            opened_per_s: Some(100.0),
            ..HttpWorkload::default()
        };
        let mut names = vec!["GET".to_owned()];
        let held = Held::new(&workload, &mut names).unwrap();
        assert_eq!(names, ["GET", "open"]);
        let (kind, request) = (OpKind(0), Request::Url(0));
        let op = HttpOp { kind, request, method: Method::GET, verify: false, key: 0 };
        let turn = Nanos::from_millis(70);
        assert_eq!(held.open(op, 7, Nanos::ZERO), Step::SleepUntil(turn));
        assert_eq!(held.open(op, 7, turn), Step::Issue(HttpOp { kind: OpKind(1), ..op }));
    }

    /// A client has its first reply; then something happens to its connection. Why it has left.
    fn left(happens: impl FnOnce(&mut Bench<HttpSession>, Link)) -> (Bench<HttpSession>, String) {
        let mut bench = Bench::new(file_site(Connections::Held));
        let link = bench.issue_and_connect(file_op(SMALL));
        bench.bytes(link, &reply(file_set().content(SMALL)));
        assert_eq!((bench.last().status, bench.session.lost()), (OpStatus::Ok, None));
        happens(&mut bench, link);
        let why = bench.session.lost().expect("it has left");
        assert!(!bench.session.has_room());
        assert_eq!(bench.io.links, 1, "it does not connect again");
        (bench, why)
    }

    #[test]
    fn a_client_whose_idle_connection_ends_leaves_without_an_error() {
        let (bench, why) = left(|bench, link| bench.eof(link));
        assert_eq!((bench.io.done.len(), &*why), (1, "the server closed the idle connection"));
        left(|bench, link| bench.reset(link));
        left(|bench, link| bench.bytes(link, b"HTTP/1.1 408 Request Timeout\r\n\r\n"));
    }

    #[test]
    fn a_request_on_a_connection_that_is_held_is_not_repeated_on_another() {
        let (bench, why) = left(|bench, link| {
            bench.issue(file_op(SMALL));
            bench.eof(link);
        });
        assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Transport));
        assert_eq!(why, "a request on the connection failed");
    }

    #[test]
    fn a_reply_that_announces_the_end_of_its_connection_ends_the_client() {
        let (bench, why) = left(|bench, link| {
            bench.issue(file_op(SMALL));
            let whole = reply(file_set().content(SMALL));
            let (status, rest) = whole.split_at("HTTP/1.1 200 OK".len());
            bench.bytes(link, &[status, b"\r\nConnection: close", rest].concat());
        });
        assert_eq!((bench.io.done.len(), bench.last().status), (2, OpStatus::Ok));
        assert_eq!(why, "the server closed the connection after a reply");
    }
}
