//! Entry points of the fuzz targets. `cargo xtask fuzz` runs them all.

pub mod entries;
pub mod nfs_entries;
pub mod smb_entries;
