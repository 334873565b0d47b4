//! From the bytes of a reply to a verdict: what came is what the call means, or a complaint.

mod v2;
mod v3;

use plimsoll_model::outcome::OpStatus;

use super::super::op::{Accessed, LinkNo, NfsCall, Presence, Span, Verify};
use super::super::wire::rpc::{ReplyHead, ReplyOutcome};
use super::super::wire::{Decode, Path, XdrIn};
use super::words::Complaint;
use super::{NfsSite, NfsVersion};

/// `NFSERR_NOENT`, `NFS3ERR_NOENT`
const NOENT: u32 = 2;

/// What a reply is compared with.
pub(super) struct Asked<'s> {
    pub(super) site: &'s NfsSite,
    pub(super) call: NfsCall,
    /// It was sent more than once, so it may have been done more than once.
    pub(super) resent: bool,
}

/// A reply that is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) status: OpStatus,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    /// All content was compared.
    pub(super) verified: bool,
}

impl Checked {
    const OK: Self =
        Self { status: OpStatus::Ok, bytes_read: 0, bytes_written: 0, verified: false };
}

type Judged<'m> = Result<Checked, Complaint<'m>>;

/// The verifier of the server's present run, once it is known. RFC 1813 §3.3.7
#[derive(Debug, Default)]
pub(super) struct ServerRun {
    verifier: Option<[u8; 8]>,
}

impl ServerRun {
    /// Complains once for each change.
    fn check<'m>(&mut self, verifier: [u8; 8]) -> Judged<'m> {
        match self.verifier.replace(verifier) {
            Some(before) if before != verifier => Err(Complaint::Verifier),
            _ => Ok(Checked::OK),
        }
    }
}

impl Asked<'_> {
    /// Judges a whole message whose xid is that of the call.
    pub(super) fn judge<'m>(&self, message: &'m [u8], run: &mut ServerRun) -> Judged<'m> {
        let mut input = XdrIn::new(message);
        match ReplyHead::decode(&mut input)?.outcome {
            ReplyOutcome::Success => {}
            refusal => return Err(Complaint::Refused(refusal)),
        }
        match self.site.version {
            NfsVersion::V2 => self.judge_v2(input),
            NfsVersion::V3 => self.judge_v3(input, run),
        }
    }

    /// The call ended with an error status.
    fn failed<'m>(&self, code: u32, name: Option<&'static str>) -> Judged<'m> {
        match self.call {
            NfsCall::Remove(_, Presence::Missing) if code == NOENT => {
                Ok(Checked { status: OpStatus::ExpectedFailure, ..Checked::OK })
            }
            // The first try has removed it.
            NfsCall::Remove(_, Presence::Exists) if code == NOENT && self.resent => Ok(Checked::OK),
            _ => Err(Complaint::Status { code, name }),
        }
    }

    /// A REMOVE succeeded.
    fn removed<'m>(&self, presence: Presence) -> Judged<'m> {
        match presence {
            Presence::Exists => Ok(Checked::OK),
            Presence::Missing => Err(Complaint::Unexpected { expected: NOENT, actual: 0 }),
        }
    }

    /// The data of a READ.
    fn read<'m>(&self, span: Span, verify: Verify, data: &[u8]) -> Judged<'m> {
        length(span.bytes, data.len())?;
        let verified = verify == Verify::Content;
        if verified {
            let content = self.site.content_of(span);
            if data != content {
                return Err(first_difference(span, content, data));
            }
        }
        Ok(Checked { bytes_read: data.len() as u64, verified, ..Checked::OK })
    }

    /// What the server calls a file it was looked up by name.
    fn handle<'m>(&self, file: Accessed, found: &[u8]) -> Judged<'m> {
        let known = self.site.handles.file(file);
        match known.is_some_and(|known| known.as_bytes() == found) {
            true => Ok(Checked::OK),
            false => Err(Complaint::Handle),
        }
    }

    /// Files only grow during a run.
    fn size<'m>(&self, file: Accessed, found: u64) -> Judged<'m> {
        match file.bytes() {
            made if found < made => Err(Complaint::Shrunk { made, found }),
            _ => Ok(Checked::OK),
        }
    }
}

fn length<'m>(asked: u32, got: usize) -> Judged<'m> {
    match asked as usize == got {
        true => Ok(Checked::OK),
        false => Err(Complaint::Length { asked: u64::from(asked), got: got as u64 }),
    }
}

/// Where the data of a READ goes wrong.
fn first_difference<'m>(span: Span, content: &[u8], data: &[u8]) -> Complaint<'m> {
    let mut pairs = content.iter().zip(data).zip(span.offset..);
    let ((expected, found), at) =
        pairs.find(|((expected, found), _)| expected != found).expect("the two differ");
    Complaint::Content { at, expected: *expected, found: *found, bytes: data.len() as u64 }
}

fn link_text<'m>(link: LinkNo, found: Path<'m>) -> Judged<'m> {
    match found.0 == link.text().as_bytes() {
        true => Ok(Checked::OK),
        false => Err(Complaint::LinkText { expected: link.text(), found }),
    }
}

/// A directory of the set is not empty, and every part of a listing but the last has entries.
fn listing<'m>(has_entries: bool, eof: bool) -> Judged<'m> {
    match has_entries || eof {
        true => Ok(Checked::OK),
        false => Err(Complaint::Nonsense("no entry, and yet not the end of the directory")),
    }
}

#[cfg(test)]
mod tests;
