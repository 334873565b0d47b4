//! Replies of NFSv2. RFC 1094 §2.2

use super::super::super::op::NfsCall;
use super::super::super::wire::v2::{self, FileAttributes2, FileKind2, Reply2};
use super::super::super::wire::{Decode, XdrIn};
use super::{Asked, Checked, Complaint, Judged, link_text, listing};

impl Asked<'_> {
    /// `input` stands at the result.
    pub(super) fn judge_v2<'m>(&self, input: XdrIn<'m>) -> Judged<'m> {
        match self.call {
            NfsCall::GetAttr(file) => self.on2(input, |ok: v2::AttrOk| {
                regular(&ok.attributes)?;
                self.size(file, u64::from(ok.attributes.size))
            }),
            NfsCall::SetAttr(_) => self.on2(input, |ok: v2::AttrOk| regular(&ok.attributes)),
            NfsCall::Lookup(file) => self.on2(input, |ok: v2::DirOpOk| {
                regular(&ok.attributes)?;
                self.handle(file, &ok.file.0)
            }),
            NfsCall::ReadLink(link) => {
                self.on2(input, |ok: v2::ReadLinkOk<'m>| link_text(link, ok.path))
            }
            NfsCall::Read(span, verify) => self.on2(input, |ok: v2::ReadOk<'m>| {
                regular(&ok.attributes)?;
                self.read(span, verify, ok.data.0)
            }),
            NfsCall::Write(span, _) => self.on2(input, |ok: v2::AttrOk| {
                regular(&ok.attributes)?;
                // The reply has no count: the size must hold what was written.
                let end = span.offset + u64::from(span.bytes);
                let size = u64::from(ok.attributes.size);
                if size < end {
                    return Err(Complaint::Shrunk { made: end, found: size });
                }
                Ok(Checked { bytes_written: u64::from(span.bytes), ..Checked::OK })
            }),
            NfsCall::Create(_) => self.on2(input, |ok: v2::DirOpOk| regular(&ok.attributes)),
            NfsCall::Remove(_, presence) => self.on2(input, |()| self.removed(presence)),
            NfsCall::ReadDir(_) => self.on2(input, |ok: v2::ReadDirOk<'m>| {
                listing(ok.entries.iter().next().is_some(), ok.eof)
            }),
            NfsCall::FsStat => self.on2(input, |_: v2::StatFsOk| Ok(Checked::OK)),
            NfsCall::Access(_) | NfsCall::ReadDirPlus(_) | NfsCall::Commit(_) => {
                unreachable!("NFSv2 has no such call, so none was sent: {:?}", self.call)
            }
        }
    }

    /// Decodes the result and has `check` look at a success.
    #[inline]
    fn on2<'m, T: Decode<'m>>(
        &self,
        mut input: XdrIn<'m>,
        check: impl FnOnce(T) -> Judged<'m>,
    ) -> Judged<'m> {
        let reply = Reply2::<T>::decode(&mut input)?;
        input.finish()?;
        match reply {
            Reply2::Ok(ok) => check(ok),
            Reply2::Err(status) => self.failed(status.0, status.name()),
        }
    }
}

fn regular<'m>(attributes: &FileAttributes2) -> Judged<'m> {
    let (expected, found) = (FileKind2::Regular, attributes.kind);
    if found == expected {
        return Ok(Checked::OK);
    }
    Err(Complaint::Kind { expected: expected.number(), found: found.number() })
}
