//! Flags of `plimsoll serve nfs`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Bytes;

use super::values::parse_size;

#[derive(Debug, Args)]
pub struct ServeNfsArgs {
    /// Address to listen on, TCP and UDP; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:2049")]
    pub listen: SocketAddr,
    /// Serve this directory instead of an empty file system in memory; set-id bits are never set
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Most memory that files and their names may take
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size, conflicts_with = "root")]
    pub memory_max: Bytes,
    /// Answer as a portmapper too, normally on port 111
    #[arg(long, value_name = "ADDR")]
    pub portmapper: Option<SocketAddr>,
    /// Say that data is on disk before it is; faster, and lost when the system crashes
    #[arg(long, requires = "root")]
    pub no_sync: bool,
    /// Cores to use, for example 0,2; one UDP thread each
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,
    /// Hold each reply to GETATTR until a queue of known law would have served it, for example
    /// service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", hide = true, conflicts_with = "root")]
    pub calibrated: Option<CalibratedSpec>,
    /// Where it writes what happened to each of those, at its end
    #[arg(long, value_name = "FILE", hide = true, requires = "calibrated")]
    pub log: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
}
