//! Transcribed results of the source reports, for `plimsoll published`. Facts and figures only,
//! each with its place in the source; what is computed from them here is marked as computed.

mod bytes;
mod curves;
mod systems;
mod tables;
mod types;

use plimsoll_model::published::{PublishedPage, PublishedTable};
use plimsoll_model::suite::nearest;

pub use bytes::{ByteCurve, PriceItem, Rival};
pub use curves::{PublishedCurve, board_rows, curve};
pub use systems::compare;
pub use types::{Comparison, Configuration, ListedResult, Note, Published, Transport};

/// Version of the files' format.
pub const PUBLISHED_FORMAT: u32 = 2;

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../published/", $name, ".toml")))
    };
}

/// Name and text of every file.
const FILES: [(&str, &str); 8] = [
    file!("netbench-netfinity-1999"),
    file!("netbench-nt-1998"),
    file!("netbench-proliant-1995"),
    file!("netbench-sun-1998"),
    file!("nfs-pseries-v2-2002"),
    file!("nfs-pseries-v3-2002"),
    file!("transactions-netfinity-1999"),
    file!("web-n440bx-1998"),
];

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// Not TOML, or not this format.
    #[error("published result {name}: {message}")]
    Malformed {
        /// The file.
        name: String,
        /// What the parser says.
        message: String,
    },
    /// Another version of the format.
    #[error("published result {name} has format {found}; this program reads {PUBLISHED_FORMAT}")]
    Format {
        /// The file.
        name: String,
        /// Its version.
        found: u32,
    },
    /// Its parts do not fit together.
    #[error("published result {name}: {what}")]
    Inconsistent {
        /// The file.
        name: String,
        /// What does not fit.
        what: String,
    },
    /// No such file.
    #[error("no published result is called {name:?}; {help}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, or all there are.
        help: String,
    },
    /// The file has several systems, or none of that name.
    #[error("{name}: {what}; write {name}/SYSTEM with one of: {systems}")]
    System {
        /// The file.
        name: String,
        /// What is wrong with what was asked for.
        what: String,
        /// What may be written in the place of SYSTEM.
        systems: String,
    },
    /// The file prints no throughput.
    #[error("{name} prints ratios and charts only: there is no figure to compare")]
    NoFigures {
        /// The file.
        name: String,
    },
    /// Two methods: a ratio would mean nothing.
    #[error("{first} and {second} follow different methods ({suites}); a ratio would mean nothing")]
    Different {
        /// The first.
        first: String,
        /// The second.
        second: String,
        /// Suites of both.
        suites: String,
    },
}

/// Names of the transcribed results, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The transcribed result of that name.
pub fn published(name: &str) -> Result<Published, PublishedError> {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(PublishedError::Unknown { name: name.to_owned(), help });
    };
    parse(name, text)
}

/// Reads a file and checks that its parts fit together.
pub fn parse(name: &str, text: &str) -> Result<Published, PublishedError> {
    let published: Published = toml::from_str(text)
        .map_err(|e| PublishedError::Malformed { name: name.to_owned(), message: e.to_string() })?;
    if published.format != PUBLISHED_FORMAT {
        return Err(PublishedError::Format { name: name.to_owned(), found: published.format });
    }
    match published.inconsistency() {
        None => Ok(published),
        Some(what) => Err(PublishedError::Inconsistent { name: name.to_owned(), what }),
    }
}

/// One row per transcribed result: name, year, suites, title, source.
pub fn catalogue() -> Result<PublishedTable, PublishedError> {
    let row = |p: Published| vec![p.name, p.year.to_string(), p.suites.join(", "), p.title];
    let rows: Result<Vec<_>, _> = names().map(|name| published(name).map(row)).collect();
    Ok(PublishedTable {
        name: "published results".to_owned(),
        place: String::new(),
        columns: ["name", "year", "suites", "title"].map(str::to_owned).to_vec(),
        rows: rows?,
    })
}

/// What stands beside a run of that suite: the reports whose method it follows, oldest first, each
/// with its figures alone. They are context of their time and rank nothing.
pub fn beside(suite: &str) -> Result<Vec<PublishedPage>, PublishedError> {
    let all: Result<Vec<Published>, _> = names().map(published).collect();
    let mut of_suite = all?;
    of_suite.retain(|it| it.suites.iter().any(|name| name == suite));
    of_suite.sort_by_key(|it| it.year);
    Ok(of_suite.iter().map(Published::extract).collect())
}

#[cfg(test)]
mod tests;
