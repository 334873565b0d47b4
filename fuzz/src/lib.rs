//! Entry points of the fuzz targets, which `cargo xtask fuzz` runs. Property tests of the workspace
//! use the same functions on the stable toolchain.

pub mod app_entries;
pub mod derive_entries;
pub mod entries;
pub mod fleet_entries;
pub mod h2_entries;
pub mod llm_entries;
pub mod nfs_entries;
mod nfs_procedures;
pub mod smb_entries;
