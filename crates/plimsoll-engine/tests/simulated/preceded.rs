//! Ops with an OPEN before and a CLOSE after them, and waits for a slot of their session: on the
//! simulated clock, where every time is known.

use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::interface::{
    Io, Link, LinkError, LinkKind, Mark, Script, ScriptContext, Session, Step, Ticket, TimeKind,
};
use plimsoll_engine::recorder::{Arrived, Flight, Landing, Recorder, StreamState};
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_model::event::{Phase, Times, new_times};
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpNames, OpStatus, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::sim::SimDriver;

use crate::support::{Observation, assignment, closed, run};

/// How long the first op of a file waits for a slot after its OPEN.
const SLOT_WAIT: Nanos = Nanos::from_millis(5);
const FIRST: OpKind = OpKind(0);
const LAST: OpKind = OpKind(1);

/// Two ops on a file: OPEN and a wait for a slot precede the first, CLOSE follows the second.
struct Opened;

/// What the session has sent, or waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Open(Ticket),
    Slot(Ticket, Nanos),
    Op(Ticket, OpKind),
    Close(Ticket, Nanos),
}

struct OpenedSession {
    link: Option<Link>,
    state: State,
    follows: bool,
}

impl OpenedSession {
    fn send(&mut self, state: State, io: &mut impl Io) {
        self.state = state;
        if let Some(link) = self.link {
            io.send(link, &[0; 8]);
        }
    }

    fn end(&mut self, ticket: Ticket, kind: OpKind, io: &mut impl Io) {
        (self.state, self.follows) = (State::Idle, kind == FIRST);
        io.complete(ticket, outcome(kind, OpStatus::Ok));
    }
}

fn outcome(kind: OpKind, status: OpStatus) -> Outcome {
    Outcome { kind, status, bytes_read: 0, bytes_written: 0, ambiguous: false }
}

impl Session for OpenedSession {
    type Op = OpKind;

    fn kind(&self, op: &OpKind) -> OpKind {
        *op
    }

    fn has_room(&self) -> bool {
        self.state == State::Idle
    }

    fn issue(&mut self, ticket: Ticket, op: OpKind, _now: Nanos, io: &mut impl Io) {
        if self.link.is_none() {
            self.link = Some(io.connect(LinkKind::Stream));
        }
        match op {
            FIRST => self.send(State::Open(ticket), io),
            _ => {
                io.mark(ticket, Mark::Value(TimeKind::SlotWait, 1_000));
                self.send(State::Op(ticket, op), io);
            }
        }
    }

    fn on_connected(&mut self, _link: Link, _now: Nanos, _io: &mut impl Io) {}

    fn on_bytes(&mut self, _link: Link, _bytes: &[u8], now: Nanos, io: &mut impl Io) {
        match self.state {
            State::Open(ticket) => {
                io.mark(ticket, Mark::Preceded(TimeKind::Open));
                self.state = State::Slot(ticket, now + SLOT_WAIT);
            }
            State::Op(ticket, FIRST) => self.end(ticket, FIRST, io),
            State::Op(ticket, _) => {
                io.mark(ticket, Mark::Complete);
                self.send(State::Close(ticket, now), io);
            }
            State::Close(ticket, since) => {
                io.mark(ticket, Mark::Value(TimeKind::Close, (now - since).0));
                self.end(ticket, LAST, io);
            }
            State::Idle | State::Slot(..) => {}
        }
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {}

    fn on_eof(&mut self, _link: Link, _now: Nanos, _io: &mut impl Io) {}

    fn on_failed(&mut self, _link: Link, _error: LinkError, _now: Nanos, _io: &mut impl Io) {}

    fn next_deadline(&self) -> Option<Nanos> {
        let State::Slot(_, until) = self.state else { return None };
        Some(until)
    }

    fn on_timer(&mut self, _now: Nanos, io: &mut impl Io) {
        if let State::Slot(ticket, _) = self.state {
            io.mark(ticket, Mark::ServiceBegins);
            io.mark(ticket, Mark::Value(TimeKind::SlotWait, SLOT_WAIT.0));
            self.send(State::Op(ticket, FIRST), io);
        }
    }

    fn take_follow_on(&mut self, _ended: Ticket) -> Option<OpKind> {
        std::mem::take(&mut self.follows).then_some(LAST)
    }
}

struct Draws;

impl Script for Draws {
    type Op = OpKind;

    fn next(&mut self, _context: ScriptContext) -> Step<OpKind> {
        Step::Issue(FIRST)
    }
}

impl Workload for Opened {
    fn op_names(&self) -> OpNames {
        OpNames(vec!["first".to_owned(), "last".to_owned()])
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        context
            .drive(|_| (OpenedSession { link: None, state: State::Idle, follows: false }, Draws));
    }
}

/// Number, shortest and longest of these times, in milliseconds.
fn in_ms(times: &Times) -> (u64, u64, u64) {
    let ms = |ns: u64| (ns as f64 / 1e6).round() as u64;
    (times.len(), ms(times.min()), ms(times.max()))
}

fn of_kind(observed: &Observation, op: OpKind, kind: TimeKind) -> (u64, u64, u64) {
    let mut all = new_times();
    let measured = observed.intervals.iter().filter(|i| i.record.phase != Phase::WarmUp);
    let times = measured.filter_map(|i| kind.times_in(&i.ops[usize::from(op.0)]));
    times.for_each(|times| all.add(times).unwrap());
    in_ms(&all)
}

#[test]
fn an_op_lasts_from_the_end_of_its_open_to_its_own_reply() {
    let mut driver = SimDriver::new(|now: Nanos| Some(now + Nanos::from_millis(10)));
    let observed = run(&Opened, &assignment(closed(1, Nanos::ZERO)), 0, &mut driver);
    let totals = &observed.totals;
    let (first, last) = (totals.ops["first"].count, totals.ops["last"].count);
    // OPEN 10 ms, slot 5, first 10, last 10, CLOSE 10: a file every 45 ms of the 10 s.
    assert!((221..=223).contains(&first) && first.abs_diff(last) <= 1, "{first} {last}");
    assert!(totals.done_in_window.abs_diff(444) <= 2, "{}", totals.done_in_window);
    assert_eq!(of_kind(&observed, FIRST, TimeKind::Open), (first, 10, 10));
    assert_eq!(of_kind(&observed, FIRST, TimeKind::Response), (first, 15, 15));
    assert_eq!(of_kind(&observed, FIRST, TimeKind::Service), (first, 10, 10));
    assert_eq!(of_kind(&observed, FIRST, TimeKind::SlotWait), (first, 5, 5));
    assert_eq!(of_kind(&observed, FIRST, TimeKind::Lateness), (first, 0, 0));
    assert_eq!(of_kind(&observed, LAST, TimeKind::Response), (last, 10, 10));
    assert_eq!(of_kind(&observed, LAST, TimeKind::Close), (last, 10, 10));
    // Marked while a follow-on is issued: counted with it, not with the op before.
    assert_eq!(of_kind(&observed, LAST, TimeKind::SlotWait), (last, 0, 0));
    assert_eq!((totals.due, totals.not_sent + totals.unfinished), (first + last, 0));
    let service = &totals.per_target[0].service;
    let longest_ms = service.quantile_ns(1.0).unwrap() / 1_000_000;
    assert!(service.n() == first + last && (9..=11).contains(&longest_ms), "{service:?}");
}

/// In the middle of the window of [`assignment`].
const DUE: Nanos = Nanos::from_secs(5);

fn after(millis: u64) -> Nanos {
    DUE + Nanos::from_millis(millis)
}

/// A recorder at [`DUE`], whose good ops take 12 ms at most, and an op sent 2 ms later.
fn recorder_and_flight() -> (Recorder, Flight) {
    let phases = assignment(closed(1, Nanos::ZERO)).phases;
    let names = OpNames(vec!["read".to_owned()]);
    let fresh = FreshTimes::on_the_spot(1);
    let mut recorder = Recorder::new(0, phases, names, &["a".to_owned()], fresh);
    recorder.count_good(Some(GoodLimits {
        response: Some(Nanos::from_millis(12)),
        ..GoodLimits::default()
    }));
    while recorder.boundary() <= DUE {
        recorder.roll(recorder.boundary());
    }
    let flight = Flight {
        kind: FIRST,
        due: DUE,
        free: DUE,
        sent: after(2),
        server_wakeup: Nanos::ZERO,
        late_max: Nanos::from_millis(1),
        stream: StreamState::default(),
    };
    (recorder, flight)
}

fn landing() -> Landing {
    let arrived = Arrived::Stamped(after(19));
    Landing { done: after(20), arrived, late_max: Nanos::from_millis(1) }
}

#[test]
fn times_of_an_op_run_from_what_preceded_it_and_its_accounts_from_due_and_sent() {
    let (mut recorder, mut flight) = recorder_and_flight();
    recorder.mark(&mut flight, Mark::Preceded(TimeKind::Open), None, after(10));
    recorder.mark(&mut flight, Mark::ServiceBegins, None, after(13));
    assert_eq!((flight.response_from(), flight.service_from()), (after(10), after(13)));
    recorder.record(flight, &outcome(FIRST, OpStatus::Ok), 0, landing());
    let interval = recorder.roll(recorder.boundary());
    let of = |kind: TimeKind| in_ms(kind.times_in(&interval.ops[0]).unwrap()).2;
    assert_eq!((of(TimeKind::Open), of(TimeKind::SendLag), of(TimeKind::Lateness)), (10, 2, 2));
    assert_eq!((of(TimeKind::Response), of(TimeKind::ResponseLow)), (10, 8));
    assert_eq!((of(TimeKind::Service), of(TimeKind::ServiceLow)), (7, 5));
    let totals = recorder.into_totals(Nanos::MAX);
    assert_eq!((totals.good, totals.done_in_window), (1, 1), "20 ms from due, 10 of its own");
}

#[test]
fn an_op_that_only_waited_in_its_session_has_its_response_time_from_due() {
    let (mut recorder, mut flight) = recorder_and_flight();
    recorder.mark(&mut flight, Mark::ServiceBegins, None, after(13));
    recorder.record(flight, &outcome(FIRST, OpStatus::Ok), 0, landing());
    let interval = recorder.roll(recorder.boundary());
    let times = &interval.ops[0];
    assert_eq!((in_ms(&times.response).2, in_ms(&times.service).2), (20, 7));
    assert!(times.stream.is_none());
    assert_eq!(recorder.into_totals(Nanos::MAX).good, 0);
}

#[test]
fn what_preceded_a_failed_op_is_not_recorded() {
    let (mut recorder, mut flight) = recorder_and_flight();
    recorder.mark(&mut flight, Mark::Preceded(TimeKind::Open), None, after(10));
    let failed = OpStatus::Failed(ErrorClass::Timeout);
    recorder.record(flight, &outcome(FIRST, failed), 0, landing());
    let interval = recorder.roll(recorder.boundary());
    assert_eq!((in_ms(&interval.ops[0].response).2, interval.ops[0].service.len()), (10, 0));
    assert!(interval.ops[0].stream.is_none());
}

#[test]
fn an_unfinished_op_is_as_old_as_its_own_part_of_the_work() {
    let ages = |marks: &[(Mark, Nanos)]| {
        let (mut recorder, mut flight) = recorder_and_flight();
        for (mark, at) in marks {
            recorder.mark(&mut flight, *mark, None, *at);
        }
        recorder.unfinished(flight, after(30));
        let totals = recorder.into_totals(Nanos::MAX);
        [totals.response_age_min, totals.service_age_min].map(|age| age.unwrap().0 / 1_000_000)
    };
    let preceded = (Mark::Preceded(TimeKind::Open), after(10));
    assert_eq!(ages(&[]), [30, 28]);
    assert_eq!(ages(&[preceded]), [20, 20]);
    assert_eq!(ages(&[preceded, (Mark::ServiceBegins, after(13))]), [20, 17]);
}

#[test]
fn an_op_that_waits_in_its_session_when_the_drain_ends_has_no_service_time() {
    let (mut recorder, mut flight) = recorder_and_flight();
    recorder.mark(&mut flight, Mark::ServiceWaits, None, after(10));
    recorder.unfinished(flight, after(30));
    let totals = recorder.into_totals(Nanos::MAX);
    let age = |age: Option<Nanos>| age.map(|age| age.0 / 1_000_000);
    assert_eq!((age(totals.response_age_min), totals.service_age_min), (Some(30), None));
}
