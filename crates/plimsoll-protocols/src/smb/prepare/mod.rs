//! Brings shares into the state a load point begins with, and removes what was brought there. Only
//! below a directory that carries our marker, or that we made.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `share` | what is asked of a share, over one connection |
//! | `place` | what must lie there |
//! | `site`, `ours` | our directory, and its marker |
//! | `survey` | what is there of it |
//! | `space` | room is looked for before the first byte |
//! | `build` | the work on one place |
//! | `set` | all places, with several connections |
//! | `clean` | the way back |

mod build;
mod clean;
mod ours;
mod place;
mod set;
mod share;
mod site;
mod space;
mod survey;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;
