//! From the bytes of a reply to a verdict: the reply answers the call, or the call has failed.

use std::cell::Cell;

use plimsoll_model::outcome::OpStatus;

use super::super::handles::HandleBytes;
use super::super::op::{Accessed, LinkNo, NfsCall, Presence, Span, Stability, Verify};
use super::super::procedure::results::{Attributes, Kind, Page, Written};
use super::super::wire::flaws::{Flaw, Flaws};
use super::super::wire::rpc::{ReplyHead, ReplyOutcome};
use super::super::wire::v3::{StableHow, access};
use super::super::wire::{Decode, Path, XdrIn};
use super::calls::RIGHTS;
use super::failure::Failure;
use super::{NfsSite, NfsVersion};
use crate::procedure::Reply;

/// `NFSERR_NOENT`, `NFS3ERR_NOENT`
const NOENT: u32 = 2;

/// What a reply is compared with.
pub(super) struct Check<'s> {
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
    pub(super) const OK: Self =
        Self { status: OpStatus::Ok, bytes_read: 0, bytes_written: 0, verified: false };
}

type CheckResult<'m> = Result<Checked, Failure<'m>>;

/// The verifier of the server's present run, once it is known. RFC 1813 §3.3.7
#[derive(Debug, Default)]
pub(super) struct ServerRun {
    verifier: Option<[u8; 8]>,
}

impl ServerRun {
    /// Fails once for each change.
    fn check<'m>(&mut self, verifier: [u8; 8]) -> CheckResult<'m> {
        match self.verifier.replace(verifier) {
            Some(before) if before != verifier => Err(Failure::Verifier),
            _ => Ok(Checked::OK),
        }
    }
}

impl Check<'_> {
    /// Evaluates a whole message whose xid is that of the call. Flaws that do not change its
    /// meaning go to `flaws`.
    pub(super) fn evaluate<'m>(
        &self,
        message: &'m [u8],
        flaws: &'m Cell<Flaws>,
        run: &mut ServerRun,
    ) -> CheckResult<'m> {
        let mut input = XdrIn::tolerant(message);
        let head = ReplyHead::decode(&mut input)?;
        flaws.set(input.flaws());
        match head.outcome {
            ReplyOutcome::Success => {}
            refusal => return Err(Failure::Refused(refusal)),
        }
        self.evaluate_results(Reply::new(self.site.version, input.rest(), flaws), run)
    }

    pub(super) fn evaluate_results<'m>(
        &self,
        reply: Reply<'m>,
        run: &mut ServerRun,
    ) -> CheckResult<'m> {
        match self.call {
            NfsCall::GetAttr(file) => {
                let attributes = reply.attributes()?;
                is(Kind::File, Some(attributes))?;
                self.size(file, attributes.size)
            }
            NfsCall::SetAttr(_) => self.regular(reply, reply.set_attributes()?),
            NfsCall::Lookup(file) => {
                let resolved = reply.looked_up()?;
                self.regular(reply, resolved.attributes)?;
                self.directory(reply, resolved.dir_attributes)?;
                self.handle(file, resolved.handle)
            }
            NfsCall::Access(_) => {
                let granted = reply.access()?;
                self.regular(reply, granted.attributes)?;
                rights(reply, granted.access)
            }
            NfsCall::ReadLink(link) => {
                let read = reply.link_text()?;
                self.besides(Kind::Link, reply, read.attributes)?;
                link_text(link, read.text)
            }
            NfsCall::Read(span, verify) => {
                let read = reply.read()?;
                self.regular(reply, read.attributes)?;
                if read.count as usize != read.data.len() {
                    return Err(Failure::Nonsense("READ's count is not that of its data"));
                }
                self.read(span, verify, read.data)
            }
            NfsCall::Write(span, stability) => {
                let written = reply.written()?;
                self.regular(reply, written.attributes)?;
                is_written(span, stability, &written, run)
            }
            NfsCall::Create(_) => {
                let made = reply.made()?;
                self.regular(reply, made.attributes)?;
                self.directory(reply, made.dir_attributes)
            }
            NfsCall::Remove(_, presence) => match reply.removed() {
                Ok(dir_attributes) => {
                    self.directory(reply, dir_attributes)?;
                    removed(presence)
                }
                Err(error) => self.not_removed(presence, error.into()),
            },
            NfsCall::ReadDir(_) => self.listing(reply, reply.page()?),
            NfsCall::ReadDirPlus(_) => self.listing(reply, reply.full_page()?),
            NfsCall::FsStat => self.directory(reply, reply.space()?.attributes),
            NfsCall::Commit(_) => {
                let committed = reply.committed()?;
                self.regular(reply, committed.attributes)?;
                run.check(committed.verifier)
            }
            // Set-up reads the reply.
            NfsCall::Composed => Ok(Checked::OK),
        }
    }

    /// Attributes in addition to what was requested. In NFSv3 a server may leave them out, and
    /// nobody relies on them.
    fn besides<'m>(
        &self,
        expected: Kind,
        reply: Reply<'m>,
        attributes: Option<Attributes>,
    ) -> CheckResult<'m> {
        match (is(expected, attributes), self.site.version) {
            (Err(_), NfsVersion::V3 | NfsVersion::V4_1) => {
                reply.note(Flaw::OtherObject);
                Ok(Checked::OK)
            }
            (result, _) => result,
        }
    }

    fn regular<'m>(&self, reply: Reply<'m>, attributes: Option<Attributes>) -> CheckResult<'m> {
        self.besides(Kind::File, reply, attributes)
    }

    fn directory<'m>(&self, reply: Reply<'m>, attributes: Option<Attributes>) -> CheckResult<'m> {
        self.besides(Kind::Directory, reply, attributes)
    }

    /// A directory of the set is not empty, and every part of a listing but the last has entries.
    fn listing<'m>(&self, reply: Reply<'m>, page: Page<'m>) -> CheckResult<'m> {
        self.directory(reply, page.dir_attributes)?;
        match !page.entries.is_empty() || page.is_end {
            true => Ok(Checked::OK),
            false => Err(Failure::Nonsense("no entry, and yet not the end of the directory")),
        }
    }

    fn not_removed<'m>(&self, presence: Presence, failure: Failure<'m>) -> CheckResult<'m> {
        match (presence, failure) {
            (Presence::Missing, Failure::Status { code: NOENT, .. }) => {
                Ok(Checked { status: OpStatus::ExpectedFailure, ..Checked::OK })
            }
            // The first try has removed it.
            (Presence::Exists, Failure::Status { code: NOENT, .. }) if self.resent => {
                Ok(Checked::OK)
            }
            (_, failure) => Err(failure),
        }
    }

    /// The data of a READ.
    fn read<'m>(&self, span: Span, verify: Verify, data: &[u8]) -> CheckResult<'m> {
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

    /// The handle of a file that was looked up by name.
    fn handle<'m>(&self, file: Accessed, actual: HandleBytes<'_>) -> CheckResult<'m> {
        let expected = self.site.handles.file(file);
        match expected.is_some_and(|expected| expected.as_bytes() == actual.0) {
            true => Ok(Checked::OK),
            false => Err(Failure::Handle),
        }
    }

    /// Files only grow during a run.
    fn size<'m>(&self, file: Accessed, actual: u64) -> CheckResult<'m> {
        match file.bytes() {
            made if actual < made => Err(Failure::Shrunk { made, actual }),
            _ => Ok(Checked::OK),
        }
    }
}

fn is<'m>(expected: Kind, attributes: Option<Attributes>) -> CheckResult<'m> {
    match attributes {
        Some(Attributes { kind: actual, .. }) if actual != expected => {
            Err(Failure::Kind { expected, actual })
        }
        _ => Ok(Checked::OK),
    }
}

fn removed<'m>(presence: Presence) -> CheckResult<'m> {
    match presence {
        Presence::Exists => Ok(Checked::OK),
        Presence::Missing => Err(Failure::Unexpected { expected: NOENT, actual: 0 }),
    }
}

/// The caller made the file, so it may at least read it.
fn rights<'m>(reply: Reply<'m>, granted: u32) -> CheckResult<'m> {
    if granted & !RIGHTS != 0 {
        reply.note(Flaw::Access);
    }
    match granted & access::READ {
        0 => Err(Failure::Unreadable),
        _ => Ok(Checked::OK),
    }
}

fn is_written<'m>(
    span: Span,
    stability: Stability,
    written: &Written,
    run: &mut ServerRun,
) -> CheckResult<'m> {
    let end = span.offset + u64::from(span.bytes);
    match written {
        Written { count: Some(count), .. } => length(span.bytes, *count as usize)?,
        // NFSv2 has no count: the size must hold what was written.
        Written { attributes: Some(actual), .. } if actual.size < end => {
            return Err(Failure::Shrunk { made: end, actual: actual.size });
        }
        Written { .. } => Checked::OK,
    };
    if written.committed < StableHow::from(stability) {
        return Err(Failure::Nonsense("FILE_SYNC was asked for, and less was done"));
    }
    // Data that is durable survives a restart of the server.
    if let (Stability::Unstable, Some(verifier)) = (stability, written.verifier) {
        run.check(verifier)?;
    }
    Ok(Checked { bytes_written: u64::from(span.bytes), ..Checked::OK })
}

fn length<'m>(requested: u32, got: usize) -> CheckResult<'m> {
    match requested as usize == got {
        true => Ok(Checked::OK),
        false => Err(Failure::Length { requested: u64::from(requested), got: got as u64 }),
    }
}

/// Where the data of a READ goes wrong.
fn first_difference<'m>(span: Span, content: &[u8], data: &[u8]) -> Failure<'m> {
    let mut pairs = content.iter().zip(data).zip(span.offset..);
    let ((expected, actual), at) =
        pairs.find(|((expected, actual), _)| expected != actual).expect("the two differ");
    Failure::Content { at, expected: *expected, actual: *actual, bytes: data.len() as u64 }
}

fn link_text<'m>(link: LinkNo, actual: Path<'m>) -> CheckResult<'m> {
    match actual.0 == link.text().as_bytes() {
        true => Ok(Checked::OK),
        false => Err(Failure::LinkText { expected: link.text(), actual }),
    }
}

#[cfg(test)]
mod tests;
