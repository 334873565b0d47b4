//! The measured client, script and session, against the reference server in memory: the whole
//! mix of every suite over both kinds of link, on networks good and bad.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::memory::{HOST, Host, PORT};
use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, Script, ScriptContext, Session, SessionCounters, Step,
    Ticket,
};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_nfs::PROTOCOL;
use plimsoll_nfs::fileset::{Content, FileSet};
use plimsoll_nfs::mounting::{MountRequest, Mounted, mount};
use plimsoll_nfs::op::{NfsOp, Presence};
use plimsoll_nfs::parameters::{NfsWorkload, op_names};
use plimsoll_nfs::script::{NfsScript, ScriptPlan};
use plimsoll_nfs::session::{NfsSession, NfsSite};
use plimsoll_nfs::{op::NfsCall, prepare};
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::net::{Caller, Channel, Dial, GoOn, LinkKind, SourcePort};

/// A set whose accessed hundred has files of every size.
const FILES: u32 = 1_000;
const OP_TIMEOUT: Nanos = Nanos::from_secs(60);

/// The network as one client sees it. Time passes only when nothing arrives.
struct Net<'h> {
    host: &'h Host,
    channels: BTreeMap<u64, Box<dyn Channel>>,
    links: u64,
    opened: Vec<Link>,
    sends: u64,
    /// A stream breaks after this many sends, with whatever is under way.
    breaks_after: Option<u64>,
    broken: Vec<Link>,
    detail: String,
    done: Vec<(Ticket, Outcome)>,
}

impl Io for Net<'_> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        self.links += 1;
        let address = SocketAddr::new(HOST, PORT);
        let channel = self.host.dial(address, kind, SourcePort::Any).unwrap();
        self.channels.insert(self.links, channel);
        self.opened.push(Link(self.links));
        Link(self.links)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        let Some(channel) = self.channels.get_mut(&link.0) else { return };
        channel.send(bytes).unwrap();
        self.sends += 1;
        if self.breaks_after.is_some_and(|n| self.sends.is_multiple_of(n)) {
            self.channels.remove(&link.0);
            self.broken.push(link);
        }
    }
    fn discard(&mut self, _: Link, _: u64) {
        unreachable!("NFS replies are always read");
    }
    fn close(&mut self, link: Link) {
        self.channels.remove(&link.0);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.done.push((ticket, outcome));
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        panic!("trailing bytes after {kind:?}");
    }
}

/// One client at work.
struct Client<'h> {
    session: NfsSession,
    script: NfsScript,
    net: Net<'h>,
    now: Nanos,
    in_flight: Vec<Option<NfsOp>>,
    ended: Vec<(NfsOp, Outcome, String)>,
    counters: SessionCounters,
}

impl<'h> Client<'h> {
    fn new(host: &'h Host, site: NfsSite, workload: &NfsWorkload) -> Self {
        let client =
            ClientContext { client: 0, endpoint: 0, seed: 1, op_timeout: OP_TIMEOUT, nonce: 99 };
        let set = FileSet::new(FILES);
        let plan = Arc::new(ScriptPlan::new(workload, set, client.seed, 1).unwrap());
        Self {
            session: NfsSession::new(Rc::new(site), client, workload.outstanding_max),
            script: NfsScript::new(plan, client.client),
            net: Net {
                host,
                channels: BTreeMap::new(),
                links: 0,
                opened: Vec::new(),
                sends: 0,
                breaks_after: None,
                broken: Vec::new(),
                detail: String::new(),
                done: Vec::new(),
            },
            now: Nanos::ZERO,
            in_flight: Vec::new(),
            ended: Vec::new(),
            counters: SessionCounters::default(),
        }
    }

    fn run(&mut self, ops: u64) {
        let mut index = 0;
        loop {
            while index < ops && self.session.has_room() {
                let Step::Issue(op) =
                    self.script.next(ScriptContext { index, due: self.now, now: self.now })
                else {
                    break;
                };
                index += 1;
                let ticket = self.ticket(op);
                self.script.on_issued(ticket);
                self.session.issue(ticket, op, self.now, &mut self.net);
                self.settle();
            }
            if !self.deliver() {
                if index == ops && self.in_flight.iter().all(Option::is_none) {
                    break;
                }
                self.now = self.session.next_deadline().expect("it waits for something");
                self.session.on_timer(self.now, &mut self.net);
            }
            self.settle();
        }
        self.counters.add(self.session.take_counters());
    }

    fn ticket(&mut self, op: NfsOp) -> Ticket {
        let at = self.in_flight.iter().position(Option::is_none).unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[at] = Some(op);
        Ticket(at as u32)
    }

    /// Everything that happens without time passing; false when nothing does.
    fn deliver(&mut self) -> bool {
        let mut happened = false;
        for link in std::mem::take(&mut self.net.opened) {
            happened = true;
            self.session.on_connected(link, self.now, &mut self.net);
        }
        for link in std::mem::take(&mut self.net.broken) {
            happened = true;
            let error = LinkError { class: ErrorClass::Transport, errno: 104 };
            self.session.on_failed(link, error, self.now, &mut self.net);
        }
        let links: Vec<u64> = self.net.channels.keys().copied().collect();
        for link in links {
            let mut bytes = Vec::new();
            let channel = self.net.channels.get_mut(&link);
            if channel.is_some_and(|c| c.receive(&mut bytes, Duration::ZERO).is_ok()) {
                happened = true;
                self.session.on_bytes(Link(link), &bytes, self.now, &mut self.net);
            }
        }
        happened
    }

    fn settle(&mut self) {
        for (ticket, outcome) in std::mem::take(&mut self.net.done) {
            let op = self.in_flight[ticket.0 as usize].take().expect("no op ends twice");
            self.ended.push((op, outcome, self.net.detail.clone()));
            self.script.on_outcome(ticket, &outcome, self.now);
            if let Some(op) = self.session.take_follow_on(ticket) {
                let next = self.ticket(op);
                self.script.on_follow_on(ticket, next);
                self.session.issue(next, op, self.now, &mut self.net);
            }
        }
    }

    fn assert_all_went_well(&self) {
        for (op, outcome, detail) in &self.ended {
            let missing = matches!(op.call, NfsCall::Remove(_, Presence::Missing));
            let expected = if missing { OpStatus::ExpectedFailure } else { OpStatus::Ok };
            assert_eq!(outcome.status, expected, "{op:?}: {detail}");
        }
    }
}

/// A shipped suite and its file set on a server in memory.
struct Bed {
    host: Host,
    mounted: Mounted,
    workload: NfsWorkload,
    site: NfsSite,
}

fn bed(suite: &str, kind: LinkKind) -> Bed {
    let host = Host::new(1 << 30);
    let suite = PROTOCOL.parse_suite(suite, PROTOCOL.shipped(suite).unwrap(), &[]).unwrap();
    let workload =
        NfsWorkload { verify_one_in: 1, ..suite.workload.parameters::<NfsWorkload>().clone() };
    let url = TargetUrl::parse("nfs://server/export").unwrap();
    let target = ResolvedTarget::new(url, SocketAddr::new(HOST, PORT));
    let request = MountRequest {
        target: &target,
        version: workload.version,
        transport: kind,
        caller: &Caller { host: "client".to_owned(), nonce: 1, ..Caller::default() },
        source: SourcePort::Any,
    };
    let mounted = mount(&request, &host).unwrap();
    let content = Content::new(workload.file_set_seed);
    let set = FileSet::new(FILES);
    let order = prepare::Order { set, content: &content, growth: Bytes(0), channels: 1 };
    let mut remote = mounted.remote(&host, Arc::default()).unwrap();
    let opened = prepare::open(&mut remote, &mounted, &order).unwrap();
    let prepared =
        prepare::prepare(&mounted, &host, &order, opened, None, &mut |_| GoOn::Yes).unwrap();
    let site = NfsSite { handles: prepared.handles, content, ..mounted.site.clone() };
    Bed { host, mounted, workload, site }
}

const SUITES: [&str; 3] = ["nfs-v2", "nfs-v3", "nfs-v3-2008"];
const KINDS: [LinkKind; 2] = [LinkKind::Stream, LinkKind::Datagram];

#[test]
fn the_mix_of_every_suite_runs_without_a_fault_over_both_kinds_of_link() {
    for suite in SUITES {
        for kind in KINDS {
            let bed = bed(suite, kind);
            assert_eq!((bed.mounted.site.link, bed.site.link), (kind, kind));
            let mut client = Client::new(&bed.host, bed.site, &bed.workload);
            client.run(2_000);
            client.assert_all_went_well();
            assert!(client.ended.len() > 2_000, "some draws are several blocks");
            assert!(client.ended.iter().all(|(_, outcome, _)| !outcome.ambiguous));
            let kinds = op_names(&bed.workload).len();
            let mut counts = vec![0; kinds];
            client.ended.iter().for_each(|(op, ..)| counts[usize::from(op.kind.0)] += 1);
            assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
            let reads =
                client.ended.iter().filter(|(op, ..)| matches!(op.call, NfsCall::Read(..))).count();
            let counted = SessionCounters { verified: reads as u64, ..SessionCounters::default() };
            assert_eq!(client.counters, counted);
        }
    }
}

#[test]
fn lost_and_doubled_datagrams_neither_lose_an_op_nor_count_it_twice() {
    for suite in SUITES {
        let mut bed = bed(suite, LinkKind::Datagram);
        bed.host.unreliable_one_in = Some(20);
        let mut client = Client::new(&bed.host, bed.site, &bed.workload);
        client.run(2_000);
        client.assert_all_went_well();
        assert!(client.counters.retransmissions > 100, "{:?}", client.counters);
        assert!(client.ended.iter().any(|(_, outcome, _)| outcome.ambiguous));
    }
}

#[test]
fn connections_that_break_with_calls_under_way_neither_lose_an_op_nor_count_it_twice() {
    for suite in SUITES {
        let mut bed = bed(suite, LinkKind::Stream);
        bed.host.fragment_bytes = 500;
        let mut client = Client::new(&bed.host, bed.site, &bed.workload);
        client.net.breaks_after = Some(150);
        client.run(2_000);
        client.assert_all_went_well();
        assert!(client.net.links > 10, "{}", client.net.links);
        assert!(client.ended.iter().any(|(_, outcome, _)| outcome.ambiguous));
        assert_eq!(client.counters.retransmissions, 0);
    }
}
