//! Entry points of the fuzz targets. `cargo +nightly fuzz run reply` and `… suite`.

pub mod entries;
