//! The work on the shares around each load point: probe, validate once, prepare the workspaces for
//! the load; after the last point remove them, if the suite requires it.

use std::sync::Arc;

use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Load, TargetDistribution};
use plimsoll_model::units::Bytes;

use super::super::loadfile::LoadFile;
use super::super::logon::Offer;
use super::super::parameters::{Pattern, SmbWorkload};
use super::super::session::SmbSite;
use super::super::target::SmbTarget;
use super::super::workspace::{Layout, Workspace};
use super::layout::Depth;
use super::remote::{self, Remote, on_site};
use super::set::{self, CHANNELS, Order, clean};
use super::validate::{self, Check};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set;
use plimsoll_protocol::net::{Dial, OnProgress, PointPreparation, SetupError};

/// What a client's script makes and has not removed yet, at most: a pass writes 6 to 8 MB, a part
/// of them to files it made, and removes them as it goes.
pub(crate) const WORK_BYTES: u64 = 4 * 1024 * 1024;

/// Makes the workload of a load point, when its data is on the shares.
pub type MakeWorkload = Box<dyn Fn(&Load) -> Result<Arc<dyn Workload>, SetupError> + Send>;

/// What a preparation is made from.
pub struct PreparationRequest {
    /// The shares, in the order of the targets.
    pub targets: Vec<SmbTarget>,
    /// From the suite.
    pub workload: SmbWorkload,
    /// Scale of the profile.
    pub scale: f64,
    /// The load file that is replayed instead of the suite's pattern.
    pub replay: Option<Arc<LoadFile>>,
    /// Makes the workload of a load point.
    pub make: MakeWorkload,
}

/// The shares of a run, and the state of each.
pub struct SmbPreparation {
    sites: Vec<ShareState>,
    distribution: TargetDistribution,
    workload: SmbWorkload,
    offer: Offer,
    needs: Needs,
    table: ContentTable,
    make: MakeWorkload,
}

/// A share, and its state as far as this process knows.
struct ShareState {
    target: SmbTarget,
    is_validated: bool,
    /// Clients (of all shares) whose workspaces were prepared here once.
    prepared_clients: u32,
    /// The shared files were prepared here once.
    is_prepared: bool,
}

/// What must lie on a share.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    NicFile { bytes: u32 },
    Workspaces { workspace: Workspace, shared: bool },
    ReplayRoot,
}

impl Needs {
    fn new(request: &PreparationRequest) -> Self {
        let workload = &request.workload;
        match workload.pattern {
            _ if request.replay.is_some() => Self::ReplayRoot,
            Pattern::DiskMix => Self::Workspaces {
                workspace: Workspace::new(workload.workspace_mib, request.scale),
                shared: workload.shared_percent > 0.0,
            },
            Pattern::Nic => Self::NicFile { bytes: workload.nic_file_bytes },
            Pattern::Logons | Pattern::Sessions | Pattern::Echo => Self::Nothing,
        }
    }

    /// The operations of a mix are tried before they are measured.
    fn is_mix(self) -> bool {
        matches!(self, Self::Workspaces { .. } | Self::ReplayRoot)
    }
}

impl SmbPreparation {
    /// Nothing is known of the shares yet.
    pub fn new(request: PreparationRequest) -> Self {
        let needs = Needs::new(&request);
        let PreparationRequest { targets, workload, make, .. } = request;
        let site = |target| ShareState {
            target,
            is_validated: false,
            prepared_clients: 0,
            is_prepared: false,
        };
        Self {
            distribution: TargetDistribution::round_robin(targets.len()),
            sites: targets.into_iter().map(site).collect(),
            needs,
            offer: workload.offer(),
            table: ContentTable::new(workload.file_set_seed),
            workload,
            make,
        }
    }

    /// What must lie on share `at` for `clients` clients in all.
    fn layouts(&self, at: usize, clients: u32) -> Vec<(Layout, Depth<'_>)> {
        let site = &self.sites[at];
        let seed = self.table.seed();
        let depth =
            |is_prepared| if is_prepared { Depth::Sizes } else { Depth::Content(&self.table) };
        match self.needs {
            Needs::Nothing => Vec::new(),
            Needs::NicFile { bytes } => vec![(Layout::nic(seed, bytes), depth(site.is_prepared))],
            Needs::ReplayRoot => vec![(Layout::replay(), depth(site.is_prepared))],
            Needs::Workspaces { workspace, shared } => {
                let here = (0..clients).filter(|client| self.distribution.target_of(*client) == at);
                let of_client = |client| {
                    let layout = Layout::of_client(seed, client, workspace);
                    (layout, depth(client < site.prepared_clients))
                };
                let mut layouts: Vec<_> = here.map(of_client).collect();
                if shared {
                    layouts.push((Layout::shared(seed, workspace), depth(site.is_prepared)));
                }
                layouts
            }
        }
    }

    /// Size of a workspace, and how many of `clients` have one, for the marker of a share.
    fn workspaces(&self, clients: u32) -> (Workspace, u32) {
        match self.needs {
            Needs::Workspaces { workspace, .. } => (workspace, clients),
            _ => (Workspace::new(self.workload.workspace_mib, 1.0), 0),
        }
    }

    fn ready_at(
        &mut self,
        at: usize,
        clients: u32,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        let layouts = self.layouts(at, clients);
        let (workspace, clients) = self.workspaces(clients);
        let clients_here = if clients > 0 { layouts.len() as u64 } else { 0 };
        let order = Order {
            layouts: &layouts,
            table: &self.table,
            workspace,
            clients,
            growth: Bytes(clients_here * WORK_BYTES),
            channels: CHANNELS,
        };
        let site = &self.sites[at];
        on_site(&site.target, &self.offer, &self.table, dial, |share| {
            let opened = set::open(share, &order, progress)?;
            if self.needs.is_mix() && !site.is_validated {
                data_set::report_validating(progress)?;
                self.validate(validate::mix(), site, dial)?;
            }
            set::write(share, &order, &opened, progress)?;
            match self.needs {
                Needs::NicFile { bytes } if !site.is_validated => {
                    let request_bytes = self.workload.nic_request_bytes;
                    let checks = validate::nic(self.table.seed(), bytes, request_bytes);
                    self.validate(checks, site, dial)
                }
                _ => Ok(()),
            }
        })?;
        let site = &mut self.sites[at];
        site.is_validated = true;
        site.is_prepared = true;
        site.prepared_clients = site.prepared_clients.max(clients);
        Ok(())
    }

    /// Tries these operations with a client like the measured ones.
    fn validate(
        &self,
        checks: Vec<Check>,
        site: &ShareState,
        dial: &dyn Dial,
    ) -> Result<(), SetupError> {
        let open = || {
            let settings = remote::site(&site.target, &self.offer, &self.table);
            let as_measured = SmbSite { caching: self.workload.caching, ..settings };
            // Where the logon itself is tried, nobody has logged on before.
            match self.needs {
                Needs::Nothing => Remote::connect(as_measured, &site.target, dial, dial.stop()),
                _ => Remote::open_as(as_measured, &site.target, dial, dial.stop()),
            }
        };
        validate::validate(checks, &open, &site.target.name)
    }
}

/// Some servers admit an unknown user as a guest; the run would measure a guest's session.
fn check_identity(target: &SmbTarget, is_guest: bool) -> Result<(), SetupError> {
    if !is_guest || target.credentials.is_guest() {
        return Ok(());
    }
    Err(SetupError::Unusable(format!(
        "{}: the server took {:?} for a guest; check the user in the URL and the password in \
         PLIMSOLL_PASSWORD, or name no user",
        target.name, target.credentials.user
    )))
}

impl PointPreparation for SmbPreparation {
    fn probe(&mut self, dial: &dyn Dial) -> Result<(), SetupError> {
        self.sites.iter().try_for_each(|site| {
            let share = Remote::open(&site.target, &self.offer, &self.table, dial, dial.stop())?;
            let is_guest = share.established().is_some_and(|session| session.guest);
            check_identity(&site.target, is_guest)
        })
    }

    fn clients_max(&mut self, dial: &dyn Dial) -> Result<Option<u32>, SetupError> {
        let Needs::Workspaces { workspace, .. } = self.needs else { return Ok(None) };
        let shares = self.sites.len() as u32;
        let each = |site: &ShareState| {
            on_site(&site.target, &self.offer, &self.table, dial, |share| {
                set::clients_max(share, &self.table, (workspace, Bytes(WORK_BYTES)), shares)
            })
        };
        let each = self.sites.iter().map(each).collect::<Result<Vec<_>, _>>()?;
        Ok(each.into_iter().min().map(|clients| clients.saturating_mul(shares)))
    }

    fn distribute(&mut self, distribution: &TargetDistribution) {
        if self.distribution != *distribution {
            self.distribution = distribution.clone();
            self.sites.iter_mut().for_each(|site| site.prepared_clients = 0);
        }
    }

    fn ready(
        &mut self,
        load: &Load,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        for at in 0..self.sites.len() {
            if self.needs != Needs::Nothing {
                self.ready_at(at, load.clients(), dial, progress)?;
            } else if matches!(self.workload.pattern, Pattern::Logons | Pattern::Sessions)
                && !self.sites[at].is_validated
            {
                self.validate(validate::logons(), &self.sites[at], dial)?;
                self.sites[at].is_validated = true;
            }
        }
        (self.make)(load)
    }

    fn attach(
        &mut self,
        load: &Load,
        _: Option<u32>,
        dial: &dyn Dial,
    ) -> Result<Arc<dyn Workload>, SetupError> {
        if self.needs != Needs::Nothing {
            let workspaces = self.workspaces(load.clients());
            self.sites.iter().try_for_each(|site| {
                on_site(&site.target, &self.offer, &self.table, dial, |share| {
                    set::find(share, &self.table, workspaces)
                })
            })?;
        }
        (self.make)(load)
    }

    fn after(
        &mut self,
        _: &Load,
        last: bool,
        dial: &dyn Dial,
        progress: &mut OnProgress<'_>,
    ) -> Result<(), SetupError> {
        if !last || self.workload.save_workspace || self.needs == Needs::Nothing {
            return Ok(());
        }
        for site in &mut self.sites {
            on_site(&site.target, &self.offer, &self.table, dial, |share| clean(share, progress))?;
            (site.prepared_clients, site.is_prepared) = (0, false);
        }
        Ok(())
    }
}
