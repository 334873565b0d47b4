//! Flags of `plimsoll board`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_model::board::BoardColumn;

#[derive(Debug, Args)]
pub(crate) struct BoardArgs {
    /// Directories to look through for bundles, and published results: published:NAME (all systems
    /// of it), published:NAME/SYSTEM, published:all
    #[arg(value_name = "DIR|published:NAME", default_value = "runs")]
    pub places: Vec<String>,
    /// What the lines are sorted by; on the HTML page every heading sorts too
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = BoardSort::Date)]
    pub sort: BoardSort,
    /// What the systems cost, each by the name of its runs' directory, of a directory above or of
    /// the target: price per unit of the peak
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// HTML file to write
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// CSV file to write
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// What the lines are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoardSort {
    /// Highest first, by unit
    Peak,
    /// Shortest 99th percentile first
    Response,
    /// By the alphabet
    System,
    /// Newest first
    Date,
}

impl BoardSort {
    /// The column of that order.
    pub(crate) const fn column(self) -> BoardColumn {
        match self {
            Self::Peak => BoardColumn::Peak,
            Self::Response => BoardColumn::ResponseP99,
            Self::System => BoardColumn::System,
            Self::Date => BoardColumn::Date,
        }
    }
}
