//! A request of a page on its way.

use plimsoll_engine::interface::Ticket;

/// A request of a page, with the redirects that it leads to.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    pub(super) state: FetchState,
    /// Index of the request.
    pub(crate) request: usize,
    /// Of the request in its session; what is drawn for it follows from that.
    pub(super) number: u64,
    /// Path and query.
    pub(crate) path: Vec<u8>,
    /// The redirect that is followed, and how many came before it.
    pub(crate) redirect: Option<Redirect>,
    /// What the replies before it set that is taken, with the indexes of the variables.
    pub(crate) set_by_redirects: Vec<(u16, Vec<u8>)>,
}

/// How far a fetch has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FetchState {
    /// It has ended.
    #[default]
    Ended,
    /// A redirect is to be followed.
    Redirected,
    /// A request is in flight, with this ticket once that is known.
    InFlight(Option<Ticket>),
}

/// A redirect that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// With GET, whatever the method of the request was.
    pub(crate) with_get: bool,
    /// Of this request so far.
    pub(crate) count: u32,
}
