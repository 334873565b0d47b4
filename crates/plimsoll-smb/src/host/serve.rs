//! Flags of `plimsoll serve smb`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_servers::PASSWORD_VARIABLE;

use plimsoll_protocol::host::arguments::{parse_size, parse_span_arg};
use plimsoll_protocol::host::{Console, HostError};
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::{Login, cores, raise_descriptor_limit};

use crate::server::{Encryption, FilesAccess, SmbConfig, SmbFiles, SmbServer};

/// Its flags.
pub(super) fn command() -> clap::Command {
    ServeSmbArgs::augment_args(
        clap::Command::new("smb")
            .about("The reference SMB server, dialects 2.0.2 to 3.1.1; one share, named plimsoll"),
    )
}

/// Serves until it is stopped.
pub(super) fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeSmbArgs::from_arg_matches(matches)?;
    // First, so that every thread of ours is pinned; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    let access = if args.read_only { FilesAccess::Read } else { FilesAccess::ReadWrite };
    let files = match &args.root {
        Some(root) => SmbFiles::Directory { root: root.clone(), access },
        None => SmbFiles::Memory { bytes_max: args.memory_max.0 },
    };
    let encryption = if args.encrypt { Encryption::Required } else { Encryption::AsClient };
    let (login, cores) = (login(&args)?, args.cores.clone());
    raise_descriptor_limit();
    let work = Work(args.work.unwrap_or_default());
    let config = SmbConfig { listen: args.listen, files, login, encryption, cores, work };
    let law = DelayLaw::from_spec(args.calibrated.as_ref(), args.log.as_ref())?;
    let server = SmbServer::bind_delayed(&config, law.clone())?;
    let stop = console.listens(
        &server.url(),
        args.stop_with_stdin,
        &["disk-mix URL --points 1,8,24 --profile quick"],
    )?;
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(())
}

fn login(args: &ServeSmbArgs) -> Result<Option<Login>, HostError> {
    let Some(user) = args.user.clone() else { return Ok(None) };
    let variable = &args.password_env;
    match std::env::var(variable).ok().filter(|password| !password.is_empty()) {
        Some(password) => Ok(Some(Login { user, password })),
        None => Err(HostError::wrong(format!(
            "--user {user} needs a password, and the environment variable {variable} holds none; \
             set it, or name another with --password-env"
        ))),
    }
}

#[derive(Debug, Args)]
struct ServeSmbArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4450")]
    listen: SocketAddr,
    /// Serve this directory instead of an empty file system in memory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Most memory that files and their names may take
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size, conflicts_with = "root")]
    memory_max: Bytes,
    /// Let this user in, with a password; without it everybody is a guest, neither signed nor
    /// encrypted
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Environment variable that holds the user's password
    #[arg(long, value_name = "VAR", default_value = PASSWORD_VARIABLE, requires = "user")]
    password_env: String,
    /// Let nobody change the directory
    #[arg(long, requires = "root")]
    read_only: bool,
    /// Refuse clients that cannot encrypt
    #[arg(long, requires = "user")]
    encrypt: bool,
    /// Cores to use, one thread each, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Spend this much additional processor time on each read and write, for example 50us: a slower
    /// server of known speed
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg, conflicts_with = "root")]
    work: Option<Nanos>,
    /// Hold each reply to READ until a queue of known law would have served it, for example
    /// service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", hide = true, conflicts_with = "root")]
    calibrated: Option<CalibratedSpec>,
    /// File for its log of those replies, written at its end
    #[arg(long, value_name = "FILE", hide = true, requires = "calibrated")]
    log: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}
