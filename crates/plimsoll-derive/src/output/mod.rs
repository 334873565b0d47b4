//! The files of a derived load.

mod facts;
mod journey;
mod names;
mod page;
mod replay;
mod suite;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;

use crate::error::DeriveError;
use crate::options::DeriveOptions;
use crate::pages::Pages;
use crate::paths::extension;
use crate::request::PathId;
use crate::sessions::SessionFinder;
use crate::source::Reading;
use crate::suite_text::write_file;

pub use facts::LogFacts;
pub(crate) use replay::ReplayWriter;

/// A derived load: what was written.
#[derive(Clone, Debug)]
pub struct Derived {
    /// What the log has.
    pub facts: LogFacts,
    /// The page about the load, Markdown.
    pub page: String,
}

/// Writes the files.
pub(crate) struct Output<'a> {
    pub options: &'a DeriveOptions,
    pub reading: &'a Reading,
    /// Its key is nowhere: it is gone when the program ends.
    hasher: RandomState,
}

/// Hexadecimal digits of a hashed name: two of a million names are hardly ever the same.
const HASH_DIGITS: usize = 12;

impl<'a> Output<'a> {
    /// Of this log.
    pub fn new(options: &'a DeriveOptions, reading: &'a Reading) -> Self {
        Self { options, reading, hasher: RandomState::new() }
    }

    /// A path as it is written: kept, or with each name hashed but for a usual ending.
    pub fn path(&self, id: PathId) -> String {
        let path = self.reading.paths.text(id);
        if self.options.keeps_paths {
            return path.to_owned();
        }
        let hashed = |name: &str| match name {
            "" => String::new(),
            name => {
                let hash = format!("{:016x}", self.hasher.hash_one(name));
                format!("{}{}", &hash[..HASH_DIGITS], extension(name))
            }
        };
        path.split('/').map(hashed).collect::<Vec<_>>().join("/")
    }

    /// Writes the model and the page about everything.
    pub fn write_model(
        &self,
        facts: &LogFacts,
        finder: &SessionFinder<'_>,
        pages: &Pages,
    ) -> Result<Derived, DeriveError> {
        let rate = self.write_rate(finder)?;
        let journey = journey::Writer::new(self, finder, pages).write()?;
        self.write("journey.toml", &journey.text)?;
        self.write("model.toml", &suite::model(self, facts))?;
        if self.options.keeps_paths {
            self.write("pages.toml", &suite::pages(self, facts))?;
        }
        let mut facts = facts.clone();
        facts.pages = journey.pages;
        facts.left_out_resources = journey.left_out_resources;
        facts.rate_bin_s = rate;
        let page = page::text(self, &facts);
        let json = serde_json::to_string_pretty(&facts).unwrap_or_default();
        self.write("derived.json", &(json + "\n"))?;
        self.write("derived.md", &page)?;
        Ok(Derived { facts, page })
    }

    /// Sessions over time: `seconds,rate_per_s`, the rate from there to the next line. The width of
    /// a bin, in seconds.
    fn write_rate(&self, finder: &SessionFinder<'_>) -> Result<f64, DeriveError> {
        let mut bins = finder.rate.clone();
        // Enough sessions in a bin that their number is more than chance.
        while bins.counts.len() > RATE_BINS_MAX
            || (bins.counts.len() > RATE_BINS_MIN
                && sessions_per_bin(&bins.counts) < SESSIONS_PER_BIN_MIN)
        {
            bins.join(2);
        }
        let width = bins.width.as_secs_f64();
        let mut text = "seconds,rate_per_s\n".to_owned();
        for (bin, [_, sessions]) in bins.counts.iter().enumerate() {
            text.push_str(&format!("{},{:.6}\n", bin as f64 * width, f64::from(*sessions) / width));
        }
        text.push_str(&format!("{},0\n", bins.counts.len() as f64 * width));
        self.write("rate.csv", &text)?;
        Ok(width)
    }

    /// Writes a file of the load.
    pub fn write(&self, name: &str, text: &str) -> Result<(), DeriveError> {
        write_file(&self.file(name), text)
    }

    /// Path of a file of the load.
    pub fn file(&self, name: &str) -> PathBuf {
        self.options.out.join(name)
    }
}

const RATE_BINS_MAX: usize = 10_000;
const RATE_BINS_MIN: usize = 60;
const SESSIONS_PER_BIN_MIN: f64 = 10.0;

fn sessions_per_bin(counts: &[[u32; 2]]) -> f64 {
    counts.iter().map(|counts| f64::from(counts[1])).sum::<f64>() / counts.len() as f64
}
