//! The `[workload]` table of suites with `protocol = "smb"`.

mod applications;
mod sizes;

use plimsoll_model::suite::{Parameters, SuiteError, TableReader, weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::logon::{Dialect, Offer, Signing};
use super::op::SmbKind;

pub use applications::{Application, Applications};
pub use sizes::SizeTable;

/// A script numbers its ops in flight with eight bits.
const OUTSTANDING_MAX: u32 = 256;
/// Five handles are needed at a time: two documents, a made file, and two that come and go.
const HANDLES_OPEN_MIN: u32 = 5;
/// Set-up writes the file of `nic` and reads it once; more would take too long.
const NIC_BYTES_MAX: u32 = 1 << 30;
/// Every server takes a READ of 64 KiB.
const NIC_REQUEST_BYTES_MAX: u32 = 65_536;
/// Nobody waits longer for the next one.
const LOGONS_PER_S_MIN: f64 = 0.01;
/// More than a server lets in.
const LOGONS_PER_S_MAX: f64 = 100_000.0;
/// A client has 56 seed files, and opens none twice.
const HANDLES_OPEN_MAX: u32 = 48;

/// Parameters of an SMB workload, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SmbWorkload {
    /// What the clients do.
    pub pattern: Pattern,
    /// Newest dialect that is offered.
    pub dialect_max: Dialect,
    /// Log on as a guest to a server that Plimsoll starts, and not with a password made for the
    /// run. A URL itself names the user.
    pub guest: bool,
    /// When messages are signed.
    pub signing: Signing,
    /// Encrypt all messages after the logon; needs dialect 3.0.
    pub encryption: bool,
    /// What a client may keep of what it read.
    pub caching: Caching,
    /// Size of one client's workspace in MiB, before the profile's scale.
    #[schemars(range(min = 0.1, max = 4_096.0))]
    pub workspace_mib: f64,
    /// Percent of reads that go to files of the directory all clients share; and of queries of seed
    /// files and their directories by name.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub shared_percent: f64,
    /// Percent of writes that go to files of that directory, with what they hold. Locks are then
    /// on those files too, each client's on a record of its own behind their end.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub shared_write_percent: f64,
    /// Size of the file that pattern `nic` reads, in bytes; others do not read it.
    #[schemars(range(min = 1, max = NIC_BYTES_MAX))]
    pub nic_file_bytes: u32,
    /// Size of its read requests, in bytes; the last of a pass has what is left.
    #[schemars(range(min = 1, max = NIC_REQUEST_BYTES_MAX))]
    pub nic_request_bytes: u32,
    /// Clients of pattern `sessions` that log on a second, one after the other. The profile's
    /// `think_scale` divides it.
    #[schemars(range(min = LOGONS_PER_S_MIN, max = LOGONS_PER_S_MAX))]
    pub logons_per_s: f64,
    /// Leave the workspaces on the share after the run.
    pub save_workspace: bool,
    /// Most ops in flight of one client; patterns `nic` and `echo` only, others have one.
    #[schemars(range(min = 1, max = OUTSTANDING_MAX))]
    pub outstanding_max: u32,
    /// A client with more unexpected statuses than this leaves the mix.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub unexpected_max: u32,
    /// The content of one read in this many is compared; 1 means all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub verify_one_in: u32,
    /// Seed of the content.
    pub file_set_seed: u64,
    /// The statistical model behind pattern `disk-mix`.
    pub model: DiskMixModel,
}

/// The statistical model of a desktop client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiskMixModel {
    /// Ops of a pass, about.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub ops_per_pass: u32,
    /// Application sessions of a pass; each is a piece of work.
    #[schemars(range(min = 1, max = 1_000))]
    pub sessions: u32,
    /// In which order a client goes through the applications of a pass.
    pub order: SessionOrder,
    /// Client n begins with the n-th application session of its order, each at another position
    /// within it, so that a short load point sees all of them.
    pub stagger: bool,
    /// Most handles of one client open at a time.
    #[schemars(range(min = HANDLES_OPEN_MIN, max = HANDLES_OPEN_MAX))]
    pub handles_open_max: u32,
    /// A session that has opened this many closes one for each further one that it opens.
    pub handles_kept: u32,
    /// Reads from one seed file between two application sessions.
    #[schemars(range(min = 0, max = 1_000))]
    pub reads_between: u32,
    /// Percent of reads that continue where the last one on that handle ended.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub sequential_read_percent: f64,
    /// Percent of writes that continue where the last one on that handle ended.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub sequential_write_percent: f64,
    /// Percent of creates that ask for a file that exists, or should.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub open_existing_percent: f64,
    /// Percent of creates that expect name-not-found.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub missing_create_percent: f64,
    /// Percent of path queries that expect name-not-found.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub missing_query_percent: f64,
    /// Percent of finds that expect no-such-file.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub missing_find_percent: f64,
    /// How often each op occurs.
    pub mix: DiskMix,
    /// Sizes of reads.
    #[serde(deserialize_with = "SizeTable::reads")]
    pub read_sizes: SizeTable,
    /// Sizes of writes; one of 1 byte extends a file.
    #[serde(deserialize_with = "SizeTable::writes")]
    pub write_sizes: SizeTable,
    /// Applications with a script each, by name. Without any, every session has the mix and the
    /// sizes of the model.
    #[serde(skip_serializing_if = "Applications::is_empty")]
    pub applications: Applications,
}

/// Weight of each op. Those of `close`, `unlink` and `unlock` follow: opened files are closed, made
/// files are removed, locks are unlocked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = weights)]
#[expect(missing_docs, reason = "each is the weight of the op of its name")]
pub struct DiskMix {
    pub read: f64,
    pub create: f64,
    pub query_path: f64,
    pub write: f64,
    pub find: f64,
    pub query_fs: f64,
    pub query_file: f64,
    pub set_file: f64,
    pub flush: f64,
    pub rename: f64,
    pub lock: f64,
}

/// What the clients do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Desktop applications, by the statistical model.
    #[default]
    DiskMix,
    /// Every client reads the same file in small requests.
    Nic,
    /// Log on, reach the share, log off.
    Logons,
    /// Log on and stay, with a little work.
    Sessions,
    /// Nothing but the protocol's echo.
    Echo,
}

/// In which order a client goes through the applications of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionOrder {
    /// The same in every pass of every client.
    #[default]
    Fixed,
    /// Each pass of each client in an order of its own.
    Random,
}

/// What a client may keep of what it read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// Nothing: every read goes to the server.
    #[default]
    None,
    /// Under a batch oplock.
    Oplock,
    /// Under a read, write and handle lease.
    Lease,
}

impl SmbWorkload {
    /// What a client offers the server.
    pub fn offer(&self) -> Offer {
        Offer {
            dialect_max: self.dialect_max,
            signing: self.signing,
            encryption: self.encryption,
            ..Offer::default()
        }
    }
}

impl Parameters for SmbWorkload {
    /// A suite file may have keys of other patterns. They do not affect the run.
    fn concerns(&self, key: &str) -> bool {
        let pattern = self.pattern;
        match key {
            "model" | "shared_percent" | "shared_write_percent" | "workspace_mib" => {
                pattern == Pattern::DiskMix
            }
            "nic_file_bytes" | "nic_request_bytes" => pattern == Pattern::Nic,
            "logons_per_s" => pattern == Pattern::Sessions,
            "save_workspace" | "caching" => matches!(pattern, Pattern::DiskMix | Pattern::Nic),
            "outstanding_max" => matches!(pattern, Pattern::Nic | Pattern::Echo),
            _ => true,
        }
    }
}

impl Default for SmbWorkload {
    /// The method's disk mix, unscaled.
    fn default() -> Self {
        Self {
            pattern: Pattern::default(),
            dialect_max: Dialect::default(),
            guest: false,
            signing: Signing::default(),
            encryption: false,
            caching: Caching::default(),
            workspace_mib: 20.0,
            shared_percent: 0.0,
            shared_write_percent: 0.0,
            nic_file_bytes: 1_024 * 1_024,
            nic_request_bytes: 1_024,
            logons_per_s: 0.5,
            save_workspace: true,
            outstanding_max: 1,
            unexpected_max: 100,
            verify_one_in: 64,
            file_set_seed: 1,
            model: DiskMixModel::default(),
        }
    }
}

impl Default for DiskMix {
    /// The method's.
    fn default() -> Self {
        Self {
            read: 27.1,
            create: 17.3,
            query_path: 15.7,
            write: 8.6,
            find: 6.1,
            query_fs: 2.9,
            query_file: 2.8,
            set_file: 1.4,
            flush: 1.2,
            rename: 0.7,
            lock: 0.06,
        }
    }
}

impl Default for DiskMixModel {
    /// The method's values; it leaves `stagger`, `handles_kept` and `reads_between` open.
    fn default() -> Self {
        Self {
            ops_per_pass: 3_550,
            sessions: 7,
            order: SessionOrder::default(),
            stagger: true,
            handles_open_max: 23,
            handles_kept: 4,
            reads_between: 8,
            sequential_read_percent: 71.0,
            sequential_write_percent: 60.0,
            open_existing_percent: 80.0,
            missing_create_percent: 26.5,
            missing_query_percent: 34.0,
            missing_find_percent: 52.0,
            mix: DiskMix::default(),
            read_sizes: SizeTable::method_reads(),
            write_sizes: SizeTable::method_writes(),
            applications: Applications::new(),
        }
    }
}

impl DiskMixModel {
    /// Weight of an op, those that follow from others included.
    pub fn weight(&self, kind: SmbKind) -> f64 {
        let mix = &self.mix;
        match kind {
            SmbKind::Create => mix.create,
            SmbKind::Close => mix.create * (1.0 - self.missing_create_percent / 100.0),
            SmbKind::Unlink => mix.create * (1.0 - self.open_existing_percent / 100.0),
            SmbKind::Read => mix.read,
            SmbKind::Write => mix.write,
            SmbKind::QueryPath => mix.query_path,
            SmbKind::Find => mix.find,
            SmbKind::QueryFs => mix.query_fs,
            SmbKind::QueryFile => mix.query_file,
            SmbKind::SetFile => mix.set_file,
            SmbKind::Flush => mix.flush,
            SmbKind::Rename => mix.rename,
            SmbKind::Lock | SmbKind::Unlock => mix.lock,
            SmbKind::Mkdir | SmbKind::Rmdir | SmbKind::Deltree | SmbKind::Echo | SmbKind::Logon => {
                0.0
            }
        }
    }

    /// Shares of the ops, in the order of [`SmbKind::ALL`]; over a pass, where applications differ.
    pub fn shares(&self) -> Vec<f64> {
        let mut weights = SmbKind::ALL.map(|kind| self.weight(kind));
        if !self.applications.is_empty() {
            weights.fill(0.0);
        }
        for one in self.of_applications() {
            let ops = f64::from(one.ops_per_pass);
            let shares = one.shares();
            weights.iter_mut().zip(shares).for_each(|(weight, share)| *weight += ops * share);
        }
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }
}

/// Names of the ops; the index of each is its kind.
pub fn op_names() -> Vec<String> {
    SmbKind::ALL.iter().map(|kind| kind.name().to_owned()).collect()
}

/// Shares of the ops, in the order of [`op_names`]; `None` where there is but one kind.
pub fn op_shares(workload: &SmbWorkload) -> Option<Vec<f64>> {
    (workload.pattern == Pattern::DiskMix).then(|| workload.model.shares())
}

/// Fewer ops cannot hold the shares of the mix; more is a card each in memory.
const OPS_PER_SESSION: std::ops::RangeInclusive<u32> = 50..=20_000;

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<SmbWorkload, SuiteError> {
    let mut workload: SmbWorkload = table.read()?;
    fit_handles(table, &mut workload.model)?;
    applications::fit_pass(table, &mut workload.model)?;
    check(table, &workload)?;
    if !workload.concerns("caching") {
        workload.caching = Caching::None;
    }
    Ok(workload)
}

/// With all handles open, one must be there to close.
fn fit_handles(table: &TableReader<'_>, model: &mut DiskMixModel) -> Result<(), SuiteError> {
    const KEY: &str = "model.handles_kept";
    let kept_max = model.handles_open_max - 1;
    if model.handles_kept > kept_max && table.has(KEY) {
        return Err(table
            .error_at(KEY, format!("`workload.{KEY}` is {}", model.handles_kept))
            .with_help(format!("it must be from 0 to {kept_max}")));
    }
    model.handles_kept = model.handles_kept.min(kept_max);
    Ok(())
}

fn check(table: &TableReader<'_>, workload: &SmbWorkload) -> Result<(), SuiteError> {
    if workload.encryption && workload.dialect_max < Dialect::V3_0 {
        return Err(table
            .error_at("encryption", "encryption begins with dialect 3.0")
            .with_help("write dialect_max = \"3.0\" or newer, or encryption = false"));
    }
    if workload.caching == Caching::Lease && workload.dialect_max < Dialect::V2_1 {
        return Err(table
            .error_at("caching", "leases begin with dialect 2.1")
            .with_help("write dialect_max = \"2.1\" or newer, or caching = \"oplock\""));
    }
    if workload.guest && (workload.encryption || workload.signing == Signing::Required) {
        return Err(table
            .error_at("guest", "a guest's messages can be neither signed nor encrypted")
            .with_help("write guest = false, or leave signing and encryption to the server"));
    }
    let several = matches!(workload.pattern, Pattern::Nic | Pattern::Echo);
    if workload.outstanding_max > 1 && !several {
        return Err(table
            .error_at("outstanding_max", "a desktop and a logon have one op in flight")
            .with_help("write outstanding_max = 1, or pattern = \"nic\" or \"echo\""));
    }
    if workload.shared_write_percent > 0.0 && workload.shared_percent <= 0.0 {
        return Err(table
            .error_at("shared_write_percent", "nobody opens a shared file")
            .with_help("write a shared_percent above 0, or shared_write_percent = 0"));
    }
    check_model(table, "model", &workload.model)?;
    applications::check_applications(table, &workload.model)
}

/// `key` is that of the model, or of an application's.
fn check_model(table: &TableReader<'_>, key: &str, model: &DiskMixModel) -> Result<(), SuiteError> {
    let wrong = |name: &str, message: String, help: String| {
        Err(table.error_at(&format!("{key}.{name}"), message).with_help(help))
    };
    if model.missing_create_percent >= model.open_existing_percent {
        let message = format!(
            "{} % of creates expect name-not-found, but only {} % ask for what exists",
            model.missing_create_percent, model.open_existing_percent
        );
        let help = "write a missing_create_percent below open_existing_percent";
        return wrong("missing_create_percent", message, help.to_owned());
    }
    if model.mix.create <= 0.0 {
        let message = "without creates nothing can be read or written".to_owned();
        return wrong("mix.create", message, "write for example create = 17.3".to_owned());
    }
    let ops = model.ops_per_pass / model.sessions;
    if !OPS_PER_SESSION.contains(&ops) {
        let help = format!(
            "write ops_per_pass and sessions so that their quotient is from {} to {}",
            OPS_PER_SESSION.start(),
            OPS_PER_SESSION.end()
        );
        return wrong("sessions", format!("an application session has {ops} ops"), help);
    }
    let share = |kind| model.shares()[kind as usize];
    if f64::from(model.reads_between) > f64::from(ops) * share(SmbKind::Read) {
        let message = "the reads between sessions are more than all reads".to_owned();
        return wrong("reads_between", message, "write a smaller reads_between".to_owned());
    }
    model.read_sizes.check(table, &format!("{key}.read_sizes"))?;
    model.write_sizes.check(table, &format!("{key}.write_sizes"))
}

#[cfg(test)]
mod tests;
