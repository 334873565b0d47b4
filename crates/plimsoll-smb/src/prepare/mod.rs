//! Brings shares into the state a load point begins with, and removes what was brought there. Only
//! below a directory that carries our marker, or that we made.
//!
//! Every load point begins with the same files. A client that left, or a script that the window
//! ended, leaves others behind, so set-up looks first and writes only what is missing or changed.
//! The first look of a run compares content, later ones names and sizes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `share`, `remote` | what is asked of a share; a session that asks it |
//! | `site`, `ours` | our directory, and its marker |
//! | `survey` | what is there of it |
//! | `build` | the work on one place |
//! | `set` | all places, with several connections |
//! | `validate` | each operation once, before any is measured |
//! | `points` | what happens around each load point |
//! | `clean` | the way back |

mod build;
mod clean;
mod ours;
mod points;
mod remote;
mod set;
mod share;
mod site;
mod survey;
mod validate;

pub use self::clean::clean_target;
pub use self::points::{MakeWorkload, PreparationRequest, SmbPreparation};
pub use self::remote::Remote;
pub use self::share::{Entry, Found, Kind, Share, ShareError};

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;
