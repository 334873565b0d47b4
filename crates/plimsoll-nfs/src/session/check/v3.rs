//! Replies of NFSv3. RFC 1813 §3.3

use super::super::super::op::{NfsCall, Span, Stability};
use super::super::super::wire::v3::{self, FileKind, PostOpAttr, Reply3, WccData};
use super::super::super::wire::{Decode, XdrIn};
use super::super::encode::{RIGHTS, stable3};
use super::{Asked, Checked, Complaint, Judged, ServerRun, length, link_text, listing};

impl Asked<'_> {
    /// `input` stands at the result.
    pub(super) fn judge_v3<'m>(&self, input: XdrIn<'m>, run: &mut ServerRun) -> Judged<'m> {
        match self.call {
            NfsCall::GetAttr(file) => self.on::<_, ()>(input, |ok: v3::GetAttrOk| {
                regular(Some(ok.attributes))?;
                self.size(file, ok.attributes.size)
            }),
            NfsCall::SetAttr(_) => {
                self.on::<_, WccData>(input, |ok: v3::SetAttrOk| regular(ok.wcc.after))
            }
            NfsCall::Lookup(file) => self.on::<_, PostOpAttr>(input, |ok: v3::LookupOk<'m>| {
                regular(ok.attributes)?;
                directory(ok.dir_attributes)?;
                self.handle(file, ok.object.bytes())
            }),
            NfsCall::Access(_) => self.on::<_, PostOpAttr>(input, |ok: v3::AccessOk| {
                regular(ok.attributes)?;
                rights(ok.access)
            }),
            NfsCall::ReadLink(link) => self.on::<_, PostOpAttr>(input, |ok: v3::ReadLinkOk<'m>| {
                is(FileKind::Symlink, ok.attributes)?;
                link_text(link, ok.path)
            }),
            NfsCall::Read(span, verify) => self.on::<_, PostOpAttr>(input, |ok: v3::ReadOk<'m>| {
                regular(ok.attributes)?;
                if ok.count as usize != ok.data.len() {
                    return Err(Complaint::Nonsense("READ's count is not that of its data"));
                }
                self.read(span, verify, ok.data)
            }),
            NfsCall::Write(span, stability) => self.on::<_, WccData>(input, |ok: v3::WriteOk| {
                regular(ok.wcc.after)?;
                written(span, stability, &ok, run)
            }),
            NfsCall::Create(_) => self.on::<_, WccData>(input, |ok: v3::CreateOk<'m>| {
                regular(ok.attributes)?;
                directory(ok.dir_wcc.after)
            }),
            NfsCall::Remove(_, presence) => self.on::<_, WccData>(input, |ok: v3::RemoveOk| {
                directory(ok.dir_wcc.after)?;
                self.removed(presence)
            }),
            NfsCall::ReadDir(_) => self.on::<_, PostOpAttr>(input, |ok: v3::ReadDirOk<'m>| {
                directory(ok.dir_attributes)?;
                listing(ok.entries.iter().next().is_some(), ok.eof)
            }),
            NfsCall::ReadDirPlus(_) => {
                self.on::<_, PostOpAttr>(input, |ok: v3::ReadDirPlusOk<'m>| {
                    directory(ok.dir_attributes)?;
                    listing(ok.entries.iter().next().is_some(), ok.eof)
                })
            }
            NfsCall::FsStat => {
                self.on::<_, PostOpAttr>(input, |ok: v3::FsStatOk| directory(ok.attributes))
            }
            NfsCall::Commit(_) => self.on::<_, WccData>(input, |ok: v3::CommitOk| {
                regular(ok.wcc.after)?;
                run.check(ok.verifier)
            }),
        }
    }

    /// Decodes the result and has `check` look at a success.
    #[inline]
    fn on<'m, T: Decode<'m>, E: Decode<'m>>(
        &self,
        mut input: XdrIn<'m>,
        check: impl FnOnce(T) -> Judged<'m>,
    ) -> Judged<'m> {
        let reply = Reply3::<T, E>::decode(&mut input)?;
        input.finish()?;
        match reply {
            Reply3::Ok(ok) => check(ok),
            Reply3::Err(status, _) => self.failed(status.0, status.name()),
        }
    }
}

fn is<'m>(expected: FileKind, attributes: PostOpAttr) -> Judged<'m> {
    match attributes {
        Some(attributes) if attributes.kind != expected => {
            Err(Complaint::Kind { expected: expected.number(), found: attributes.kind.number() })
        }
        _ => Ok(Checked::OK),
    }
}

fn regular<'m>(attributes: PostOpAttr) -> Judged<'m> {
    is(FileKind::Regular, attributes)
}

fn directory<'m>(attributes: PostOpAttr) -> Judged<'m> {
    is(FileKind::Directory, attributes)
}

/// The caller made the file, so it may at least read it.
fn rights<'m>(granted: u32) -> Judged<'m> {
    if granted & !RIGHTS != 0 {
        return Err(Complaint::Nonsense("the server grants accesses it was not asked about"));
    }
    match granted & v3::access::READ {
        0 => Err(Complaint::Unreadable),
        _ => Ok(Checked::OK),
    }
}

fn written<'m>(
    span: Span,
    stability: Stability,
    ok: &v3::WriteOk,
    run: &mut ServerRun,
) -> Judged<'m> {
    length(span.bytes, ok.count as usize)?;
    if ok.committed < stable3(stability) {
        return Err(Complaint::Nonsense("FILE_SYNC was asked for, and less was done"));
    }
    // Data that is durable survives a restart of the server.
    if stability == Stability::Unstable {
        run.check(ok.verifier)?;
    }
    Ok(Checked { bytes_written: u64::from(ok.count), ..Checked::OK })
}
