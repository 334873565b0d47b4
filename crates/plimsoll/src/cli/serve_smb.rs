//! Flags of `plimsoll serve smb`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Bytes;
use plimsoll_servers::PASSWORD_VARIABLE;

use super::values::parse_size;

#[derive(Debug, Args)]
pub struct ServeSmbArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4450")]
    pub listen: SocketAddr,
    /// Serve this directory instead of an empty file system in memory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Most memory that files and their names may take
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size, conflicts_with = "root")]
    pub memory_max: Bytes,
    /// Let this user in, with a password; without it everybody is a guest, neither signed nor
    /// encrypted
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Environment variable that holds the user's password
    #[arg(long, value_name = "VAR", default_value = PASSWORD_VARIABLE, requires = "user")]
    pub password_env: String,
    /// Let nobody change the directory
    #[arg(long, requires = "root")]
    pub read_only: bool,
    /// Refuse clients that cannot encrypt
    #[arg(long, requires = "user")]
    pub encrypt: bool,
    /// Cores to use, one thread each, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,
    /// Hold each reply to READ until a queue of known law would have served it, for example
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
