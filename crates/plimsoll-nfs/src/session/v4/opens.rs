//! Files that are open at the server, and files that it has delegated.

use std::collections::HashMap;

use crate::handles::OwnedHandle;
use crate::op::{Accessed, OpenNo};
use crate::wire::v4::StateId;

/// Name of the owner of an open file. No two that are open at the same time have the same: a second
/// OPEN by the same owner would be the same open file.
pub(super) fn owner(of: OpenNo) -> [u8; 8] {
    let mut name = *b"open\0\0\0\0";
    name[4..].copy_from_slice(&of.0.to_be_bytes());
    name
}

#[derive(Clone, Copy, Debug)]
struct Open {
    handle: OwnedHandle,
    /// `None` until OPEN was answered.
    state: Option<StateId>,
    /// It stays open: of this file, and whether for writing.
    kept_open: Option<(Accessed, bool)>,
    /// CLOSE is on its way, or waits for a slot.
    is_closing: bool,
}

/// A delegation, under which files are opened without asking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delegated {
    pub(super) handle: OwnedHandle,
    pub(super) state: StateId,
    pub(super) to_write: bool,
    /// Ops under way that use it.
    pub(super) users: u32,
    pub(super) is_recalled: bool,
}

/// What a client has open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    opens: Vec<Option<Open>>,
    free: Vec<u32>,
    /// Those that stay open: by file, and whether they are for writing.
    kept_open: HashMap<(Accessed, bool), OpenNo>,
    delegations: HashMap<Accessed, Delegated>,
}

impl OpenFiles {
    /// An owner for a file that is about to be opened.
    pub(super) fn begin(&mut self, handle: OwnedHandle) -> OpenNo {
        let open = Some(Open { handle, state: None, kept_open: None, is_closing: false });
        match self.free.pop() {
            Some(number) => {
                self.opens[number as usize] = open;
                OpenNo(number)
            }
            None => {
                self.opens.push(open);
                OpenNo(self.opens.len() as u32 - 1)
            }
        }
    }

    /// OPEN was answered: with the file's handle, and its state.
    pub(super) fn opened(&mut self, number: OpenNo, handle: OwnedHandle, state: StateId) {
        let open = &mut self.opens[number.0 as usize];
        *open = Some(Open { handle, state: Some(state), kept_open: None, is_closing: false });
    }

    /// The open file, once OPEN was answered.
    pub(super) fn get(&self, number: OpenNo) -> Option<(OwnedHandle, StateId)> {
        let open = self.opens.get(number.0 as usize).copied().flatten()?;
        Some((open.handle, open.state?))
    }

    /// The server does not know it any more, or never did.
    pub(super) fn forget(&mut self, number: OpenNo) {
        let Some(open) = self.opens.get_mut(number.0 as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(number.0);
        if let Some(kept_open) = open.kept_open
            && self.kept_open.get(&kept_open) == Some(&number)
        {
            self.kept_open.remove(&kept_open);
        }
    }

    /// CLOSE is to be sent; false: it is not open, or that is done already.
    pub(super) fn begin_close(&mut self, number: OpenNo) -> bool {
        let open = self.opens.get_mut(number.0 as usize).and_then(Option::as_mut);
        open.filter(|open| open.state.is_some())
            .is_some_and(|open| !std::mem::replace(&mut open.is_closing, true))
    }

    pub(super) fn hold(&mut self, file: Accessed, to_write: bool, number: OpenNo) {
        if let Some(Some(open)) = self.opens.get_mut(number.0 as usize) {
            open.kept_open = Some((file, to_write));
            self.kept_open.insert((file, to_write), number);
        }
    }

    pub(super) fn kept_open(&self, file: Accessed, to_write: bool) -> Option<OpenNo> {
        self.kept_open.get(&(file, to_write)).copied().filter(|number| self.get(*number).is_some())
    }

    pub(super) fn is_kept_open(&self, number: OpenNo) -> bool {
        let open = self.opens.get(number.0 as usize).copied().flatten();
        open.is_some_and(|open| open.kept_open.is_some())
    }

    /// The server has forgotten everything.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// All that is open, to be closed.
    pub(super) fn all(&self) -> Vec<OpenNo> {
        let is_open = |number: &OpenNo| self.get(*number).is_some();
        (0..self.opens.len() as u32).map(OpenNo).filter(is_open).collect()
    }

    pub(super) fn delegate(&mut self, file: Accessed, delegated: Delegated) {
        self.delegations.insert(file, delegated);
    }

    /// The delegation of a file that permits this, unless it is recalled.
    pub(super) fn delegation(&mut self, file: Accessed, to_write: bool) -> Option<&mut Delegated> {
        let delegated = self.delegations.get_mut(&file)?;
        (!delegated.is_recalled && (delegated.to_write || !to_write)).then_some(delegated)
    }

    /// The file is delegated.
    pub(super) fn is_delegated(&self, file: Accessed) -> bool {
        self.delegations.contains_key(&file)
    }

    /// The server has taken a delegation away. It may have given another one since.
    pub(super) fn forget_delegation(&mut self, file: Accessed, state: &StateId) {
        if self.present(file, state).is_some() {
            self.delegations.remove(&file);
        }
    }

    /// The delegation of a file, if it is the one of this state.
    fn present(&mut self, file: Accessed, state: &StateId) -> Option<&mut Delegated> {
        let delegated = self.delegations.get_mut(&file)?;
        (delegated.state.other == state.other).then_some(delegated)
    }

    /// An op that used the delegation of a file has ended. Answers with the file when the
    /// delegation is to be returned now.
    pub(super) fn leave_delegation(
        &mut self,
        file: Accessed,
        state: &StateId,
    ) -> Option<Delegated> {
        let delegated = self.present(file, state)?;
        delegated.users = delegated.users.saturating_sub(1);
        self.returned(file)
    }

    /// The server recalls a delegation. `None`: it is unknown. Within: what is to be returned now.
    pub(super) fn recall(&mut self, handle: &[u8], state: &StateId) -> Option<Option<Delegated>> {
        let (file, delegated) = self.delegations.iter_mut().find(|(_, delegated)| {
            delegated.handle.as_bytes() == handle && delegated.state.other == state.other
        })?;
        delegated.is_recalled = true;
        let file = *file;
        Some(self.returned(file))
    }

    fn returned(&mut self, file: Accessed) -> Option<Delegated> {
        let is_due = |delegated: &&Delegated| delegated.is_recalled && delegated.users == 0;
        self.delegations.get(&file).filter(is_due)?;
        self.delegations.remove(&file)
    }

    /// All delegations, to be returned.
    pub(super) fn take_delegations(&mut self) -> Vec<Delegated> {
        self.delegations.drain().map(|(_, delegated)| delegated).collect()
    }
}
