//! Loads from what a server recorded.
//!
//! | module | content |
//! | --- | --- |
//! | `line/` | a line of an access log, and its formats |
//! | `source.rs`, `order.rs` | the files of a log, and their requests in order, in bounded memory |
//! | `request.rs` | a request as numbers, and a temporary file of them |
//! | `paths.rs`, `pages.rs` | distinct paths, and the pages that they are |
//! | `sessions.rs`, `arrivals.rs` | who went from page to page, and when sessions began |
//! | `fit.rs` | laws of popularity, think times and sizes |
//! | `options.rs`, `access_log.rs` | from files to a [`Derived`] load |
//! | `nfs/` | from the counters of an NFS server or client to a suite |
//! | `suite_text.rs` | what the files of loads have in common |
//! | `output/` | the files of the load: model, replay, and the page about both |
//!
//! Nothing here prints, reads a clock or opens a socket.

mod access_log;
mod arrivals;
mod error;
mod fit;
pub mod line;
mod nfs;
mod options;
mod order;
mod output;
mod pages;
mod paths;
mod request;
#[cfg(test)]
mod scipy;
mod sessions;
mod source;
mod suite_text;

pub use access_log::derive_from_logs;
pub use arrivals::ArrivalTestOutcome;
pub use error::DeriveError;
pub use fit::ZipfFit;
pub use nfs::{NfsDerived, NfsFacts, NfsOptions, derive_from_nfs};
pub use options::DeriveOptions;
pub use output::{Derived, LogFacts};
