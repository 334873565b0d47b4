//! Brings shares into the state a load point begins with, and removes what was brought there. Only
//! below a directory that carries our marker, or that we made.
//!
//! Every load point begins with the same files. A client that left, or a script that the window
//! ended, leaves others behind, so set-up looks first and writes only what is missing or changed.
//! The first look of a run compares content, later ones names and sizes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `share`, `remote` | the operations on a share; a session that carries them out |
//! | `layout` | one layout: what is there of it, and the work on it |
//! | `set` | all layouts, with several connections; their removal |
//! | `validate` | each operation once, before any is measured |
//! | `points` | what happens around each load point |

mod layout;
mod points;
mod remote;
mod set;
mod share;
mod validate;

#[cfg(test)]
pub(crate) use self::points::WORK_BYTES;
pub use self::points::{MakeWorkload, PreparationRequest, SmbPreparation};
pub use self::remote::Remote;
pub use self::set::clean_target;
pub use self::share::{Entry, EntryStat, Kind, Share, ShareError};

#[cfg(test)]
mod tests;
