//! All layouts of one share, with several connections: first all is surveyed, then free space is
//! queried, then what is missing is written. Cleaning removes everything below our directory, if it
//! is ours.

use std::sync::atomic::Ordering;

use plimsoll_model::units::Bytes;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set::{
    self, MARKER, MARKER_NEW, Need, ROOT, Space, Terms, Tree, disk_bytes,
};
use plimsoll_protocol::net::{Dial, OnProgress, SetupError};
use plimsoll_protocol::{PlanError, ResolvedTarget};

use super::super::logon::Offer;
use super::super::op::PathText;
use super::super::target::SmbTarget;
use super::super::workspace::{Layout, ShareMarker, Workspace, root_path};
use super::layout::{Depth, Survey, build, patiently, remove_all, survey};
use super::remote::on_site;
use super::share::{Entry, Kind, Share, ShareError, Site};

/// Connections that work on a share at once by default.
pub(super) const CHANNELS: usize = 4;
/// Left free beyond our files: the file system's own needs, and other users of it.
const SPARE_BYTES: u64 = 32 * 1024 * 1024;

/// What is to be there.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    /// The layouts, and how closely each is looked at.
    pub layouts: &'a [(Layout, Depth<'a>)],
    /// What is in the files.
    pub table: &'a ContentTable,
    /// For the marker: the size of a workspace.
    pub workspace: Workspace,
    /// For the marker: clients that have one when all is done.
    pub clients: u32,
    /// What the clients themselves will write.
    pub growth: Bytes,
    /// Connections at work at once.
    pub channels: usize,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Files written or cut.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Our directory, found or made, with room for what is missing in it.
pub(super) struct Opened {
    surveys: Vec<Survey>,
    /// Clients of the marker.
    marker_clients: u32,
}

/// Looks at everything, then finds or makes our directory. Refuses foreign directories, other
/// seeds and too little room before it writes a byte.
pub(super) fn open(
    site: &Site<'_>,
    order: &Order<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Opened, SetupError> {
    let mut share = site.connection()?;
    let here = &mut OnShare(&mut *share, site);
    let state: RootState = data_set::look(here)?;
    let mut marker_clients = 0;
    if let Some(marker) = state.marker() {
        data_set::check_seed(here, marker.seed(), order.table.seed())?;
        if marker.is_of(order.table.seed(), order.workspace) {
            marker_clients = marker.clients();
        }
    }
    let surveys = survey_all(site, order, progress)?;
    let bytes = surveys.iter().map(|survey| survey.missing_bytes).sum();
    Need { files: 0, bytes, growth: order.growth, spare: SPARE_BYTES }.check(here)?;
    data_set::open(here, state, &order.marker(marker_clients))?;
    Ok(Opened { surveys, marker_clients })
}

/// Finds what another host has prepared for `clients` clients.
pub(super) fn find(
    site: &Site<'_>,
    table: &ContentTable,
    (workspace, clients): (Workspace, u32),
) -> Result<(), SetupError> {
    let mut share = site.connection()?;
    let here = &mut OnShare(&mut *share, site);
    let ((), marker): (_, ShareMarker) = data_set::prepared(here)?;
    data_set::check_seed(here, marker.seed(), table.seed())?;
    let has_all = marker.is_of(table.seed(), workspace) && marker.clients() >= clients;
    if has_all || clients == 0 { Ok(()) } else { Err(data_set::not_prepared(here)) }
}

/// How many clients this share, one of `shares`, has room for, each with a workspace and what it
/// writes itself, beside the files that clients share.
pub(super) fn clients_max(
    site: &Site<'_>,
    table: &ContentTable,
    (workspace, growth): (Workspace, Bytes),
    shares: u32,
) -> Result<u32, SetupError> {
    let mut share = site.connection()?;
    let here = &mut OnShare(&mut *share, site);
    let state: RootState = data_set::look(here)?;
    let marker = state.marker().filter(|marker| marker.is_of(table.seed(), workspace));
    // A marker has the clients of all shares.
    let prepared = marker.map_or(0, |marker| u64::from(marker.clients() / shares));
    let free = data_set::space_of(here)?.bytes.saturating_sub(SPARE_BYTES);
    let files = workspace.files().map(|file| disk_bytes(u64::from(workspace.bytes_of(file))));
    let bytes: u64 = files.sum();
    let shared = if prepared == 0 { bytes } else { 0 };
    let clients = (free + prepared * bytes).saturating_sub(shared) / (bytes + growth.0);
    Ok(u32::try_from(clients).unwrap_or(u32::MAX).max(1))
}

/// Builds the layouts.
pub(super) fn write(
    site: &Site<'_>,
    order: &Order<'_>,
    opened: &Opened,
    progress: &mut OnProgress<'_>,
) -> Result<Written, SetupError> {
    let written = write_all(site, order, &opened.surveys, progress)?;
    if order.clients > opened.marker_clients {
        let marker = order.marker(order.clients);
        data_set::write_marker(&mut OnShare(&mut *site.connection()?, site), &(), &marker)?;
    }
    Ok(written)
}

impl Order<'_> {
    fn marker(&self, clients: u32) -> ShareMarker {
        ShareMarker::new(self.table.seed(), self.workspace, clients)
    }
}

fn survey_all(
    site: &Site<'_>,
    order: &Order<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Vec<Survey>, SetupError> {
    let (tally, total) = (Tally::default(), order.layouts.len() as u64);
    let each = |share: &mut Box<dyn Share>, (layout, depth): &(Layout, Depth<'_>)| {
        let surveyed = survey(&mut **share, site, layout, *depth)?;
        tally.step();
        Ok(surveyed)
    };
    let pool = ChannelPool { open: site.open, channels: order.channels };
    let report = Report { tally: &tally, doing: "looking at workspaces", total, progress };
    pool.collect(order.layouts, each, report)
}

fn write_all(
    site: &Site<'_>,
    order: &Order<'_>,
    surveys: &[Survey],
    progress: &mut OnProgress<'_>,
) -> Result<Written, SetupError> {
    let tally = Tally::default();
    let jobs: Vec<_> = order
        .layouts
        .iter()
        .zip(surveys)
        .filter(|(_, survey)| !survey.is_in_order())
        .map(|((layout, _), survey)| (layout, survey))
        .collect();
    let total = jobs.iter().map(|(_, survey)| survey.files.len() as u64).sum();
    let each = |share: &mut Box<dyn Share>, job: &(&Layout, &Survey)| {
        build(&mut **share, site, *job, &tally)
    };
    let pool = ChannelPool { open: site.open, channels: order.channels };
    let report = Report { tally: &tally, doing: "writing files", total, progress };
    pool.collect(&jobs, each, report)?;
    Ok(Written {
        files: tally.done.load(Ordering::Relaxed),
        bytes: tally.bytes.load(Ordering::Relaxed),
    })
}

/// What a share has under [`ROOT`].
pub(super) type RootState = data_set::RootState<(), ShareMarker>;

/// Our directory on a share over one connection, as what all data sets share reaches it.
pub(super) struct OnShare<'a>(pub &'a mut dyn Share, pub &'a Site<'a>);

impl Tree for OnShare<'_> {
    type Root = ();
    type File = PathText;
    type Error = ShareError;
    const TERMS: Terms = Terms {
        subject: ("files", "them"),
        elsewhere: "share or directory",
        needed: "the workspaces and what the clients write",
        less: "ask for fewer clients, or scale the workspaces down with --set \
               workload.workspace_mib or --profile quick",
    };

    fn find_root(&mut self) -> Result<Option<()>, ShareError> {
        Ok(self.0.find(ROOT)?.map(drop))
    }

    fn make_root(&mut self) -> Result<(), ShareError> {
        self.0.make_dir(ROOT)
    }

    fn names(&mut self, (): &()) -> Result<Vec<Vec<u8>>, ShareError> {
        let entries = self.0.list(ROOT)?.unwrap_or_default();
        Ok(entries.into_iter().map(|entry| entry.name.into_bytes()).collect())
    }

    fn find(&mut self, (): &(), name: &str) -> Result<Option<PathText>, ShareError> {
        let path = root_path(name);
        Ok(self.0.find(path.as_str())?.map(|_| path))
    }

    fn read(&mut self, file: &PathText, bytes: u32) -> Result<Vec<u8>, ShareError> {
        self.0.read(file.as_str(), 0, bytes)
    }

    fn replace_marker(&mut self, (): &(), text: &str) -> Result<(), ShareError> {
        let (new, path) = (root_path(MARKER_NEW), root_path(MARKER));
        self.0.write_text(new.as_str(), text)?;
        self.0.rename(new.as_str(), path.as_str())
    }

    fn space(&mut self) -> Result<Space, ShareError> {
        // If the server does not report its free space, too large a set fails when it is written.
        Ok(Space { bytes: self.0.free_bytes()?.unwrap_or(u64::MAX), files: None })
    }

    fn location(&self) -> String {
        self.1.name.to_owned()
    }

    fn unable_to(&self, doing: &str, error: ShareError) -> SetupError {
        self.1.unable_to(doing)(error)
    }
}

/// Removes our directory from a share; returns a message.
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
    let state: RootState = data_set::look(&mut OnShare(&mut *share, site))?;
    if state == RootState::Absent {
        return Ok(None);
    }
    let listed = share.list(ROOT).map_err(site.unable_to("list plimsoll-files"))?;
    let is_ours_alone = |entry: &Entry| entry.name != MARKER && entry.name != MARKER_NEW;
    let entries: Vec<Entry> =
        listed.unwrap_or_default().into_iter().filter(is_ours_alone).collect();
    let (tally, total) = (Tally::default(), entries.len() as u64);
    let each = |share: &mut Box<dyn Share>, entry: &Entry| {
        let path = format!("{ROOT}\\{}", entry.name);
        let files = remove_all(&mut **share, site, &path, entry.stat.kind)?;
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
