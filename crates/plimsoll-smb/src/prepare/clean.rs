//! Removes everything below our directory, if it is ours.

use plimsoll_model::units::Bytes;

use super::super::logon::Offer;
use super::super::target::SmbTarget;
use super::super::workspace::{self, MARKER, MARKER_NEW, ROOT};
use super::build::{patiently, remove_all};
use super::ours::{self, RootState};
use super::points::on_site;
use super::set::CHANNELS;
use super::share::{Entry, Kind, Share};
use super::site::Site;
use plimsoll_protocol::channel_pool::{ChannelPool, Overseer};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::{Dial, GoOn, OnProgress, SetupError, SetupProgress};
use plimsoll_protocol::{PlanError, ResolvedTarget};

/// Removes our directory from a share; answers in words.
pub fn clean_target(
    target: &ResolvedTarget,
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<String, SetupError> {
    let target = SmbTarget::new(target, &dial.caller()).map_err(|error| match error {
        PlanError::Setup(error) => error,
        error => SetupError::Wrong(error.to_string()),
    })?;
    let (offer, content) = (Offer::default(), ContentTable::new(0));
    let cleaned = on_site(&target, &offer, &content, dial, |site| clean(site, progress))?;
    Ok(match cleaned {
        Some(files) => format!("removed {files} files below {ROOT}"),
        None => format!("no {ROOT} there, nothing to remove"),
    })
}

/// Removes our directory; answers with the number of files removed. `None`: there is none.
pub(super) fn clean(
    site: &Site<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Option<u64>, SetupError> {
    let mut share = site.connection()?;
    if ours::look(&mut *share, site)? == RootState::Absent {
        return Ok(None);
    }
    let listed = share.list(ROOT).map_err(site.unable_to("list plimsoll-files"))?;
    let is_ours_alone = |entry: &Entry| entry.name != MARKER && entry.name != MARKER_NEW;
    let entries: Vec<Entry> =
        listed.unwrap_or_default().into_iter().filter(is_ours_alone).collect();
    let mut sweep = Sweep { entries: entries.len() as u64, ended: 0, files: 0, progress };
    if !entries.is_empty() {
        let each = |share: &mut Box<dyn Share>, entry: &Entry| {
            remove_all(&mut **share, site, &format!("{ROOT}\\{}", entry.name), entry.found.kind)
        };
        ChannelPool { open: site.open, channels: CHANNELS }.work(&entries, each, &mut sweep)?;
    }
    let files = sweep.files;
    // The marker last: a cleaning that was cut short can be done again.
    let mut share = site.connection()?;
    let mut finish = || {
        for path in [workspace::new_marker_path(), workspace::marker_path()] {
            share.remove(path.as_str(), Kind::File)?;
        }
        patiently(&mut *share, |share| share.remove(ROOT, Kind::Directory))
    };
    finish().map_err(site.unable_to("remove plimsoll-files"))?;
    Ok(Some(files))
}

struct Sweep<'a, 'p> {
    entries: u64,
    ended: u64,
    files: u64,
    progress: &'a mut OnProgress<'p>,
}

impl Overseer<u64> for Sweep<'_, '_> {
    fn on_done(&mut self, _: usize, files: u64) -> Result<(), SetupError> {
        self.ended += 1;
        self.files += files;
        Ok(())
    }

    fn tick(&mut self) -> GoOn {
        (self.progress)(SetupProgress {
            doing: "removing workspaces",
            done: self.ended,
            total: self.entries,
            bytes: Bytes(0),
        })
    }
}
