//! Flags of `plimsoll serve app`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_servers::app::THREADS_MAX;

use super::values::{parse_size, parse_span_arg};

#[derive(Debug, Args)]
pub struct ServeAppArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7415")]
    pub listen: SocketAddr,
    /// Keep the clients' data segments in this directory, new, empty or used so before [default: a
    /// temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Service threads, shared by all connections [default: 47 and one per processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<NonZeroU32>,
    /// What a write waits for before it is answered
    #[arg(long, value_enum, default_value_t = DurabilityArg::None, value_name = "HOW")]
    pub durability: DurabilityArg,
    /// Largest data segment of a client
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub segment_max: Bytes,
    /// Most connections at a time, one more than clients for a run; more are refused
    #[arg(long, value_name = "N", default_value = "8192")]
    pub connections_max: NonZeroU32,
    /// End a connection whose request is not complete, or whose reply is not taken, after so long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_span_arg)]
    pub request_timeout: Nanos,
    /// Limit the memory of the server, its part of the page cache included; needs root
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<Bytes>,
    /// Serve metrics in Prometheus' format at http://ADDR/metrics
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    /// Do no work: answer after times drawn from a known law, as a queue with so many servers, for
    /// example service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["root", "threads", "durability", "segment_max", "connections_max", "request_timeout", "memory", "metrics"])]
    pub calibrated: Option<CalibratedSpec>,
    /// Where a calibrated server writes what happened to each request, at its end
    #[arg(long, value_name = "FILE", requires = "calibrated")]
    pub log: Option<PathBuf>,
    /// Cores to use, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,
    /// Keep the segments in this new or empty directory and remove it at the end
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "root")]
    pub temporary_root: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
}

fn parse_threads(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse::<NonZeroU32>().ok().filter(|threads| threads.get() <= THREADS_MAX);
    number.ok_or_else(|| format!("write a number of threads from 1 to {THREADS_MAX}"))
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    /// Nothing: the page cache has it, and a crash of the system may lose it
    None,
    /// fdatasync: it is on stable storage
    Fdatasync,
}
