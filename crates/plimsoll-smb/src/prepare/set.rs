//! All places of one share, with several connections: first a look at everything, then room is
//! asked for, then what is missing is written.

use std::sync::atomic::Ordering;

use plimsoll_model::units::Bytes;

use super::super::workspace::{Place, ShareMarker, Workspace};
use super::build;
use super::ours::{OnShare, Standing};
use super::share::Share;
use super::site::Site;
use super::survey::{self, Depth, Survey};
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set::{self, Need};
use plimsoll_protocol::net::{OnProgress, SetupError};

/// Connections that work on a share at once, when nothing else is said.
pub(super) const CHANNELS: usize = 4;
/// Left free beyond our files: the file system's own needs, and other users of it.
const SPARE_BYTES: u64 = 32 * 1024 * 1024;

/// What is to be there.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    /// The places, and how closely each is looked at.
    pub places: &'a [(Place, Depth<'a>)],
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
    held: u32,
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
    let standing: Standing = data_set::look(here)?;
    let mut held = 0;
    if let Some(marker) = standing.marker() {
        data_set::check_seed(here, marker.seed(), order.table.seed())?;
        if marker.is_of(order.table.seed(), order.workspace) {
            held = marker.clients();
        }
    }
    let surveys = survey_all(site, order, progress)?;
    let bytes = surveys.iter().map(|survey| survey.missing_bytes).sum();
    Need { files: 0, bytes, growth: order.growth, spare: SPARE_BYTES }.check(here)?;
    data_set::open(here, standing, &order.marker(held))?;
    Ok(Opened { surveys, held })
}

/// Brings the places into order.
pub(super) fn write(
    site: &Site<'_>,
    order: &Order<'_>,
    opened: &Opened,
    progress: &mut OnProgress<'_>,
) -> Result<Written, SetupError> {
    let written = write_all(site, order, &opened.surveys, progress)?;
    if order.clients > opened.held {
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
    let (tally, total) = (Tally::default(), order.places.len() as u64);
    let each = |share: &mut Box<dyn Share>, (place, depth): &(Place, Depth<'_>)| {
        let found = survey::survey(&mut **share, site, place, *depth)?;
        tally.step();
        Ok(found)
    };
    let pool = ChannelPool { open: site.open, channels: order.channels };
    let report = Report { tally: &tally, doing: "looking at workspaces", total, progress };
    pool.collect(order.places, each, report)
}

fn write_all(
    site: &Site<'_>,
    order: &Order<'_>,
    surveys: &[Survey],
    progress: &mut OnProgress<'_>,
) -> Result<Written, SetupError> {
    let tally = Tally::default();
    let jobs: Vec<_> = order
        .places
        .iter()
        .zip(surveys)
        .filter(|(_, survey)| !survey.is_in_order())
        .map(|((place, _), survey)| (place, survey))
        .collect();
    let total = jobs.iter().map(|(_, survey)| survey.files.len() as u64).sum();
    let each = |share: &mut Box<dyn Share>, job: &(&Place, &Survey)| {
        build::build(&mut **share, site, *job, &tally)
    };
    let pool = ChannelPool { open: site.open, channels: order.channels };
    let report = Report { tally: &tally, doing: "writing files", total, progress };
    pool.collect(&jobs, each, report)?;
    Ok(Written {
        files: tally.done.load(Ordering::Relaxed),
        bytes: tally.bytes.load(Ordering::Relaxed),
    })
}
