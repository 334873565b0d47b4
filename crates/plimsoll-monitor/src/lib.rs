//! What a host is and how busy it is: the inventory for the disclosure, and samplers that watch
//! CPU, memory, disks, network and processes while a load point runs.
//!
//! Everything about the host is read from `/proc` and `/sys`. Parsers are pure functions over text;
//! a thin reader takes the root directory, so that a test can lay out a machine of its own. The
//! caller gives a function that polls servers for their own figures. An unknown value is `None`,
//! never a guess. The crate chooses no directory and prints nothing: rows go to writers that the
//! caller gives.
//!
//! | module | content |
//! | --- | --- |
//! | [`mod@inventory`] | every field of [`plimsoll_model::disclosure::Host`] |
//! | [`sampler`] | one sample of everything, as rows of tables |
//! | [`source`] | other hosts: through ssh, from Prometheus exporters, over SNMP |
//! | [`watch`] | a thread that samples on schedule and sums up per load point |
//! | [`process`] | CPU time and memory of this and other processes; which are watched |
//! | [`clock`] | did somebody set the clock while we measured |
//! | [`parse`] | the texts of `/proc` and `/sys` |

#![warn(unreachable_pub)]

mod census;
mod cgroups;
pub mod clock;
mod core_users;
pub mod inventory;
mod pace;
pub mod parse;
pub mod process;
mod profile;
mod root;
pub mod sampler;
pub mod source;
pub mod watch;

pub use clock::{ClockReading, clock_step_ns};
pub use core_users::WatchedCores;
pub use inventory::{DiskTree, appended_files, interface_towards, inventory, mounted, unreadable};
pub use process::{Scope, WatchedProcess};
pub use profile::{Folded, ProfileError, Profiler};
pub use root::Root;
pub use sampler::{ServerProbe, has_server_figures};
pub use source::{
    Community, Lost, MonitorUrl, MonitorUrlError, NginxStatus, Post, PostTls, Source, SourceError,
    SourceOptions,
};
pub use watch::{
    Monitor, MonitorConfig, MonitorError, Output, Outputs, PointMonitors, RemoteMonitor,
    RemotePoint,
};
