//! Desktop applications that differ, as data: `[workload.model.applications.NAME]`.

use std::collections::BTreeMap;

use plimsoll_model::suite::{SuiteError, TableReader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DiskMix, DiskMixModel, SizeTable, check_model};

/// A client that keeps all the handles it may keep still has a file to open.
const FILES_MIN: u32 = 8;
/// Those of a workspace that are no documents.
const FILES_MAX: u32 = 48;
/// A pass of more is no pass.
const APPLICATIONS_MAX: usize = 64;

/// One desktop application. Fields that it omits have the model's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Ops of a session, about.
    #[schemars(range(min = 50, max = 20_000))]
    pub ops: u32,
    /// The seed file that is its document: 48 to 53 have 1 MiB in a workspace of 20 MiB, 54 has
    /// 320 KiB, 55 has 1,824 KiB.
    #[schemars(range(min = 48, max = 55))]
    pub document: u32,
    /// Smaller seed files that it works with besides its document.
    #[schemars(range(min = FILES_MIN, max = FILES_MAX))]
    pub files: u32,
    /// How often each op occurs.
    pub mix: DiskMix,
    /// Percent of reads that continue where the last one on that handle ended.
    #[schemars(range(min = 0.0, max = 100.0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_percent: Option<f64>,
    /// Percent of writes that continue where the last one on that handle ended.
    #[schemars(range(min = 0.0, max = 100.0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_write_percent: Option<f64>,
    /// Percent of creates that expect name-not-found.
    #[schemars(range(min = 0.0, max = 100.0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_create_percent: Option<f64>,
    /// Sizes of reads.
    #[serde(deserialize_with = "SizeTable::reads")]
    pub read_sizes: SizeTable,
    /// Sizes of writes; one of 1 byte extends a file.
    #[serde(deserialize_with = "SizeTable::writes")]
    pub write_sizes: SizeTable,
}

/// Applications by name; the order of the names is that of a pass.
pub type Applications = BTreeMap<String, Application>;

impl DiskMixModel {
    /// The model of one application, as if it were alone.
    pub(crate) fn of_application(&self, application: &Application) -> Self {
        let own = |percent: Option<f64>, models: f64| percent.unwrap_or(models);
        let Application { sequential_read_percent, sequential_write_percent, .. } = application;
        Self {
            applications: BTreeMap::new(),
            sessions: 1,
            ops_per_pass: application.ops,
            mix: application.mix,
            sequential_read_percent: own(*sequential_read_percent, self.sequential_read_percent),
            sequential_write_percent: own(*sequential_write_percent, self.sequential_write_percent),
            missing_create_percent: own(
                application.missing_create_percent,
                self.missing_create_percent,
            ),
            read_sizes: application.read_sizes.clone(),
            write_sizes: application.write_sizes.clone(),
            ..self.clone()
        }
    }

    /// The models of the applications, in the order of a pass.
    pub(crate) fn of_applications(&self) -> impl Iterator<Item = Self> {
        self.applications.values().map(|application| self.of_application(application))
    }
}

/// A pass has a session of each application.
pub(super) fn fit_pass(
    table: &TableReader<'_>,
    model: &mut DiskMixModel,
) -> Result<(), SuiteError> {
    if model.applications.is_empty() {
        return Ok(());
    }
    let sessions = model.applications.len() as u32;
    let ops = model.applications.values().map(|application| application.ops).sum();
    let pass = [("sessions", model.sessions, sessions), ("ops_per_pass", model.ops_per_pass, ops)];
    for (name, written, follows) in pass {
        let key = format!("model.{name}");
        if table.has(&key) && written != follows {
            let message = format!("`workload.{key}` is {written}; its applications make {follows}");
            let help = format!("leave {name} out, or write {follows}");
            return Err(table.error_at(&key, message).with_help(help));
        }
    }
    (model.sessions, model.ops_per_pass) = (sessions, ops);
    Ok(())
}

pub(super) fn check_applications(
    table: &TableReader<'_>,
    model: &DiskMixModel,
) -> Result<(), SuiteError> {
    if model.applications.len() > APPLICATIONS_MAX {
        let message = format!("there are {} applications", model.applications.len());
        return Err(table
            .error_at("model.applications", message)
            .with_help(format!("write at most {APPLICATIONS_MAX}")));
    }
    for (name, application) in &model.applications {
        let key = format!("model.applications.{name}");
        if model.handles_kept + 4 > application.files {
            let message = format!("{} files for {} handles", application.files, model.handles_kept);
            return Err(table
                .error_at(&format!("{key}.files"), message)
                .with_help("write more files, or fewer handles_kept: four less than the files"));
        }
        check_model(table, &key, &model.of_application(application))?;
    }
    Ok(())
}
