//! Entry points of the fuzz targets. `cargo xtask fuzz` runs them all.

pub mod entries;
