//! stub

use crate::seam::{ClientSeat, Script, Session};

/// One worker's place in a load point.
pub struct Seat<'a> {
    _a: std::marker::PhantomData<&'a ()>,
}

impl Seat<'_> {
    /// Runs the worker to the end of the point. `make` is called once per client; for a shared
    /// schedule the scripts after the first of the worker are not asked.
    pub fn drive<S, C>(self, make: impl FnMut(ClientSeat) -> (S, C))
    where
        S: Session,
        C: Script<Op = S::Op>,
    {
        let _ = make;
        unimplemented!("in progress")
    }
}
