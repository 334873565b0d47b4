//! Histograms of the times of ops.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest time a histogram can record; an op that takes longer counts as this long.
pub const HISTOGRAM_NS_MAX: u64 = 3_600 * crate::units::NANOS_PER_SECOND;
/// Significant digits of every histogram: a recorded value is off by at most 0.1 %.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// Counts of times in nanoseconds. Merges exactly.
pub type Times = Histogram<u32>;

/// An empty [`Times`] with the bounds every part of Plimsoll uses.
pub fn new_times() -> Times {
    Times::new_with_bounds(1, HISTOGRAM_NS_MAX, HISTOGRAM_DIGITS)
        .expect("the bounds are constants that the histogram accepts")
}

/// An empty [`Times`] without an upper bound: it takes more memory as longer times come.
pub fn growing_times() -> Times {
    Times::new(HISTOGRAM_DIGITS).expect("the number of digits is one that the histogram accepts")
}

/// Adds `other` to `sum`, exactly; a value above the bounds of `sum`, which only a histogram from
/// elsewhere can record, counts as the bound.
pub fn add_times(sum: &mut Times, other: &Times) {
    // Adding looks at every counter of both.
    if other.is_empty() {
        return;
    }
    if sum.add(other).is_err() {
        for value in other.iter_recorded() {
            sum.saturating_record_n(value.value_iterated_to(), value.count_at_value());
        }
    }
}

/// Times of one op kind. Failed ops are counted in `response` only, since a failure is an answer
/// too. An op without a reply when the drain ended is counted with its age at that instant.
#[derive(Clone, Debug)]
pub struct OpTimes {
    /// done − due.
    pub response: Times,
    /// done − sent: successes, expected failures and ops without a reply only.
    pub service: Times,
    /// sent − due.
    pub send_lag: Times,
    /// sent − the later of due and the instant a client was free to send: the part of send lag
    /// that is the generator's own. The rest is a wait for a connection, which the server's
    /// earlier replies made.
    pub lateness: Times,
    /// done − arrived: how long a reply lay in the kernel before the generator read it. In open
    /// and closed loads alike it is the generator's own. Replies only: an op that ended without
    /// one has none.
    pub receive_lag: Times,
    /// What response time may have been without the generator's own delays: receive lag taken out,
    /// and the largest lateness of any op that was in flight with it (late sends bunch and queue
    /// at the server). A lower bound, op by op.
    pub response_low: Times,
    /// The same of service time.
    pub service_low: Times,
    /// Within ops whose replies come in streams.
    pub stream: Option<Box<StreamTimes>>,
    /// Ages, at the end of the drain, of ops due in the window that were never sent. Their kinds
    /// were never drawn, so the first kind has those of all kinds.
    pub unsent: Option<Box<Times>>,
}

/// Which of an op's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeKind {
    /// done − due, or − the reply to the OPEN that precedes the op.
    Response,
    /// done − sent, or − when the op got its slot or its OPEN was answered.
    Service,
    /// sent − due.
    SendLag,
    /// sent − the later of due and the instant a client was free.
    Lateness,
    /// done − arrived.
    ReceiveLag,
    /// Response time without the generator's own delays: a lower bound.
    ResponseLow,
    /// Service time without them.
    ServiceLow,
    /// Age of an op that was never sent.
    Unsent,
    /// First byte of the reply's body − due.
    FirstByte,
    /// From one chunk of the reply to the next.
    ChunkGap,
    /// First byte of the reply's body − sent.
    FirstByteService,
    /// First output of any kind − due. An op without a reply when the drain ended counts with its
    /// age where it has none.
    FirstOutput,
    /// The same without the generator's own delays: a lower bound.
    FirstOutputLow,
    /// First output of any kind − sent.
    FirstOutputService,
    /// First output that a reader sees − due.
    FirstVisible,
    /// First output that a reader sees − sent.
    FirstVisibleService,
    /// Time per output token after the first: (last chunk − first) / (tokens − 1).
    TokenTime,
    /// Time per output token after the first chunk: (last chunk − first) / its later tokens.
    LaterTokenTime,
    /// A count, of the tokens of a prompt.
    PromptTokens,
    /// A count, of the tokens of an answer.
    OutputTokens,
    /// Last byte of the last reply of a page, redirects included − due of its first request.
    Page,
    /// Last byte of the last page of a journey − due of its first request.
    Journey,
    /// The same without its think times.
    JourneyBusy,
    /// Reply to the OPEN that precedes an op − due of the op.
    Open,
    /// Reply to the CLOSE that follows an op − the op's own reply.
    Close,
    /// When an op got a slot of its session − when it asked for one. Only of those that waited;
    /// waits of their OPENs and CLOSEs are parts of the times of these.
    SlotWait,
    /// Service time of an op that was due in the warm-up and ended in the window, whose `Service`
    /// has only those that were due in it.
    FromWarmUp,
}

impl TimeKind {
    /// Every kind, with its name in a tag.
    const TAGS: [(Self, &str); 27] = [
        (Self::Response, "response"),
        (Self::Service, "service"),
        (Self::SendLag, "send_lag"),
        (Self::Lateness, "lateness"),
        (Self::ReceiveLag, "receive_lag"),
        (Self::ResponseLow, "response_low"),
        (Self::ServiceLow, "service_low"),
        (Self::Unsent, "unsent"),
        (Self::FirstByte, "first_piece"),
        (Self::ChunkGap, "piece_gap"),
        (Self::FirstByteService, "first_byte_service"),
        (Self::FirstOutput, "first_output"),
        (Self::FirstOutputLow, "first_output_low"),
        (Self::FirstOutputService, "first_output_service"),
        (Self::FirstVisible, "first_visible"),
        (Self::FirstVisibleService, "first_visible_service"),
        (Self::TokenTime, "token_time"),
        (Self::LaterTokenTime, "later_token_time"),
        (Self::PromptTokens, "prompt_tokens"),
        (Self::OutputTokens, "output_tokens"),
        (Self::Page, "page"),
        (Self::Journey, "journey"),
        (Self::JourneyBusy, "journey_busy"),
        (Self::Open, "open"),
        (Self::Close, "close"),
        (Self::SlotWait, "slot_wait"),
        (Self::FromWarmUp, "from_warm_up"),
    ];

    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TAGS.into_iter().map(|(kind, _)| kind)
    }

    /// Its name in a tag.
    pub const fn as_str(self) -> &'static str {
        Self::TAGS[self as usize].1
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::all().find(|kind| kind.as_str() == word)
    }

    /// The op's histogram of this kind, if it is not empty.
    pub fn times_in(self, times: &OpTimes) -> Option<&Times> {
        let histogram = match self {
            Self::Response => &times.response,
            Self::Service => &times.service,
            Self::SendLag => &times.send_lag,
            Self::Lateness => &times.lateness,
            Self::ReceiveLag => &times.receive_lag,
            Self::ResponseLow => &times.response_low,
            Self::ServiceLow => &times.service_low,
            Self::Unsent => times.unsent.as_deref()?,
            streamed => times.stream.as_deref()?.get(streamed)?,
        };
        (!histogram.is_empty()).then_some(histogram)
    }

    /// The op's histogram of this kind, to add to.
    pub fn of_mut(self, times: &mut OpTimes) -> &mut Times {
        match self {
            Self::Response => &mut times.response,
            Self::Service => &mut times.service,
            Self::SendLag => &mut times.send_lag,
            Self::Lateness => &mut times.lateness,
            Self::ReceiveLag => &mut times.receive_lag,
            Self::ResponseLow => &mut times.response_low,
            Self::ServiceLow => &mut times.service_low,
            Self::Unsent => times.unsent_mut(),
            streamed => times.stream.get_or_insert_default().get_mut(streamed),
        }
    }
}

/// Times within ops, or around them: a histogram of each kind that was recorded.
#[derive(Clone, Debug, Default)]
pub struct StreamTimes([Option<Times>; STREAM_KINDS]);

/// Kinds of [`TimeKind`] from [`TimeKind::FirstByte`] on.
const STREAM_KINDS: usize = TimeKind::TAGS.len() - TimeKind::FirstByte as usize;

impl StreamTimes {
    /// The histogram of that kind, one of the last of [`TimeKind`], if anything was recorded.
    pub fn get(&self, kind: TimeKind) -> Option<&Times> {
        self.0.get(stream_index(kind))?.as_ref()
    }

    /// The histogram of that kind, if anything was recorded.
    fn existing_mut(&mut self, kind: TimeKind) -> Option<&mut Times> {
        self.0.get_mut(stream_index(kind))?.as_mut()
    }

    /// The histogram of that kind, to add to.
    pub fn get_mut(&mut self, kind: TimeKind) -> &mut Times {
        self.0[stream_index(kind)].get_or_insert_with(new_times)
    }
}

/// Index among the kinds of streams; 0 for any other kind.
const fn stream_index(kind: TimeKind) -> usize {
    (kind as usize).saturating_sub(TimeKind::FirstByte as usize)
}

impl OpTimes {
    /// Empty histograms.
    pub fn new() -> Self {
        Self {
            response: new_times(),
            service: new_times(),
            send_lag: new_times(),
            lateness: new_times(),
            receive_lag: new_times(),
            response_low: new_times(),
            service_low: new_times(),
            stream: None,
            unsent: None,
        }
    }

    /// Empties every histogram, and writes to all of its memory: a new one's is only promised by
    /// the system, which then gives it page by page as ops are recorded.
    pub fn clear(&mut self) {
        let all = [
            &mut self.response,
            &mut self.service,
            &mut self.send_lag,
            &mut self.lateness,
            &mut self.receive_lag,
            &mut self.response_low,
            &mut self.service_low,
        ];
        all.into_iter().for_each(Histogram::reset);
        self.stream = None;
        self.unsent = None;
    }

    /// Nothing was recorded.
    pub fn is_empty(&self) -> bool {
        TimeKind::all().all(|kind| kind.times_in(self).is_none())
    }

    /// Adds each distribution to its like.
    pub fn add(&mut self, other: &Self) {
        for kind in TimeKind::all() {
            if let Some(times) = kind.times_in(other) {
                add_times(kind.of_mut(self), times);
            }
        }
    }

    /// The ages of ops that were never sent, to add to.
    pub fn unsent_mut(&mut self) -> &mut Times {
        self.unsent.get_or_insert_with(|| Box::new(new_times()))
    }

    /// Counts the ops that were never sent as responses, and first outputs, that took at least as
    /// long as they are old.
    pub fn with_unsent(mut self) -> Self {
        if let Some(unsent) = &self.unsent {
            add_times(&mut self.response, unsent);
            add_times(&mut self.response_low, unsent);
            for kind in [TimeKind::FirstOutput, TimeKind::FirstOutputLow] {
                if let Some(times) = self.stream.as_deref_mut().and_then(|it| it.existing_mut(kind))
                {
                    add_times(times, unsent);
                }
            }
        }
        self
    }
}

impl Default for OpTimes {
    fn default() -> Self {
        Self::new()
    }
}
