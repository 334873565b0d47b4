//! What the operations of a compound share: the session, the current and the saved filehandle.
//! RFC 8881 §16.2.3

use std::sync::Arc;

use super::slots::Session;
use super::{Nfs4, PSEUDO_ROOT};
use crate::server::core::{CallContext, NfsCore};
use crate::server::store::Object;
use crate::wire::v4::{StateId, Status4};

/// A filehandle with the stateid that goes with it. RFC 8881 §16.2.3.1.2
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) object: Object,
    pub(super) state: Option<StateId>,
}

/// A compound that is executed.
pub(super) struct Compound<'a> {
    pub(super) core: &'a NfsCore,
    pub(super) context: &'a CallContext<'a>,
    pub(super) session: &'a Arc<Session>,
    pub(super) current: Option<Current>,
    pub(super) saved: Option<Current>,
    pub(super) operations_left: u32,
}

impl<'a> Compound<'a> {
    pub(super) fn v4(&self) -> &'a Nfs4 {
        self.core.v4()
    }

    /// The current filehandle.
    pub(super) fn object(&self) -> Result<Object, Status4> {
        self.current.map(|current| current.object).ok_or(Status4::NOFILEHANDLE)
    }

    /// The same, to make or change names in it.
    pub(super) fn changeable(&self) -> Result<Object, Status4> {
        exported(self.object()?)
    }

    /// The saved filehandle, to change names in it.
    pub(super) fn saved(&self) -> Result<Object, Status4> {
        exported(self.saved.ok_or(Status4::NOFILEHANDLE)?.object)
    }

    pub(super) fn set_object(&mut self, object: Object) {
        self.current = Some(Current { object, state: None });
    }

    pub(super) fn set_state(&mut self, state: StateId) {
        if let Some(current) = &mut self.current {
            current.state = Some(state);
        }
    }

    /// `state`, or the current one if it stands for that.
    pub(super) fn resolve(&self, state: StateId) -> Result<StateId, Status4> {
        match self.current {
            Some(current) if state == StateId::CURRENT => current.state.ok_or(Status4::BAD_STATEID),
            _ => Ok(state),
        }
    }
}

/// Nobody changes the pseudo file system.
fn exported(object: Object) -> Result<Object, Status4> {
    if object == PSEUDO_ROOT { Err(Status4::ROFS) } else { Ok(object) }
}
