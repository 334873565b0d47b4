//! Entry points of the fuzz targets. `cargo xtask fuzz` runs them all.

pub mod app_entries;
pub mod app_server_entries;
pub mod entries;
pub mod fleet_entries;
pub mod nfs_entries;
pub mod smb_entries;

// `app_server_entries` takes in a file of this crate.
pub use plimsoll_app::wire;
