//! Removes everything below our directory, if it is ours.

use super::super::logon::Offer;
use super::super::target::SmbTarget;
use super::super::workspace::root_path;
use super::build::{patiently, remove_all};
use super::ours::{OnShare, Standing};
use super::remote::on_site;
use super::set::CHANNELS;
use super::share::{Entry, Kind, Share};
use super::site::Site;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set::{self, MARKER, MARKER_NEW, ROOT};
use plimsoll_protocol::net::{Dial, OnProgress, SetupError};
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
    let standing: Standing = data_set::look(&mut OnShare(&mut *share, site))?;
    if standing == Standing::Absent {
        return Ok(None);
    }
    let listed = share.list(ROOT).map_err(site.unable_to("list plimsoll-files"))?;
    let is_ours_alone = |entry: &Entry| entry.name != MARKER && entry.name != MARKER_NEW;
    let entries: Vec<Entry> =
        listed.unwrap_or_default().into_iter().filter(is_ours_alone).collect();
    let (tally, total) = (Tally::default(), entries.len() as u64);
    let each = |share: &mut Box<dyn Share>, entry: &Entry| {
        let path = format!("{ROOT}\\{}", entry.name);
        let files = remove_all(&mut **share, site, &path, entry.found.kind)?;
        tally.step();
        Ok(files)
    };
    let pool = ChannelPool { open: site.open, channels: CHANNELS };
    let report = Report { tally: &tally, doing: "removing workspaces", total, progress };
    let files = pool.collect(&entries, each, report)?;
    // The marker last: a cleaning that was cut short can be done again.
    let mut share = site.connection()?;
    let mut finish = || {
        for path in [MARKER_NEW, MARKER].map(root_path) {
            share.remove(path.as_str(), Kind::File)?;
        }
        patiently(&mut *share, |share| share.remove(ROOT, Kind::Directory))
    };
    finish().map_err(site.unable_to("remove plimsoll-files"))?;
    Ok(Some(files.into_iter().sum()))
}
