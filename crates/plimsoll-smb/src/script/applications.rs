//! What the application sessions of a pass are made from: the model alone, or a list of
//! applications with a script each.

use plimsoll_protocol::draw::Weights;

use super::cards::CardShares;
use crate::parameters::{self, DiskMixModel, SizeTable, SmbWorkload};
use crate::workspace::{FIRST_LARGE, SEED_FILES, SeedFile};

/// Documents of the model's sessions: presentation, word processor, database, spreadsheet, word
/// processor 2, database 2, drawing. Each has room for the largest read.
const DOCUMENTS: [SeedFile; 7] = [
    SeedFile(48),
    SeedFile(49),
    SeedFile(55),
    SeedFile(50),
    SeedFile(51),
    SeedFile(54),
    SeedFile(52),
];

/// The sessions of a pass.
#[derive(Debug)]
pub(super) struct Desktop {
    sessions: Vec<Application>,
    /// Every session has a script of its own; otherwise they differ in their documents alone.
    pub distinct: bool,
}

/// What a session plays.
#[derive(Debug)]
pub(super) struct Application {
    /// Its deck.
    pub cards: CardShares,
    /// How much it reads at a time.
    pub read_sizes: Sizes,
    /// How much it writes.
    pub write_sizes: Sizes,
    /// Reads that go on where the last one ended.
    pub sequential_read_percent: f64,
    /// Writes likewise.
    pub sequential_write_percent: f64,
    /// Opened first and closed last.
    pub document: SeedFile,
    /// The files it works with, its document among them.
    pub files: Vec<SeedFile>,
}

impl Desktop {
    pub(super) fn new(workload: &SmbWorkload) -> Self {
        let model = &workload.model;
        let distinct = !model.applications.is_empty();
        let sessions = match distinct {
            true => {
                let numbered = model.applications.values().zip(0..);
                numbered.map(|(one, at)| distinct_one(workload, one, at)).collect()
            }
            // Those beyond the documents begin again with the first.
            false => DOCUMENTS.map(|document| alike(workload, document)).into(),
        };
        Self { sessions, distinct }
    }

    /// The application session at this index of a pass.
    pub(super) fn session(&self, index: usize) -> &Application {
        &self.sessions[index % self.sessions.len()]
    }
}

fn alike(workload: &SmbWorkload, document: SeedFile) -> Application {
    let files = (0..SEED_FILES).map(SeedFile).collect();
    Application::new(workload, &workload.model, (document, files))
}

/// Application number `at` of the pass. The small files of different applications overlap as little
/// as possible.
fn distinct_one(
    workload: &SmbWorkload,
    parameters: &parameters::Application,
    at: u32,
) -> Application {
    let small = FIRST_LARGE.0;
    let document = SeedFile(parameters.document);
    let first = at * small / workload.model.sessions;
    let files = (first..first + parameters.files).map(|n| SeedFile(n % small));
    let files = files.chain([document]).collect();
    Application::new(workload, &workload.model.of_application(parameters), (document, files))
}

impl Application {
    fn new(
        workload: &SmbWorkload,
        model: &DiskMixModel,
        (document, files): (SeedFile, Vec<SeedFile>),
    ) -> Self {
        Self {
            cards: CardShares::new(model, workload.shared_percent),
            read_sizes: Sizes::new(&model.read_sizes),
            write_sizes: Sizes::new(&model.write_sizes),
            sequential_read_percent: model.sequential_read_percent,
            sequential_write_percent: model.sequential_write_percent,
            document,
            files,
        }
    }
}

/// Sizes to draw from.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    rows: Weights,
    table: SizeTable,
}

impl Sizes {
    fn new(table: &SizeTable) -> Self {
        Self { rows: Weights::new(&table.percent), table: table.clone() }
    }

    /// The size in bytes at `quantile` (in 0..1).
    pub(super) fn size_at(&self, quantile: f64) -> u32 {
        let (row, within) = self.rows.within(quantile);
        let (min, max) = (self.table.bytes_min[row], self.table.bytes_max[row]);
        min + (within * f64::from(max - min + 1)) as u32
    }
}
