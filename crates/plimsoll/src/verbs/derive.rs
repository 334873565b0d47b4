//! `plimsoll derive LOG… --out DIR`: a load from access logs; `plimsoll derive --nfs BEFORE AFTER`: from
//! the counters of an NFS server or client.

use std::path::PathBuf;

use clap::Args;
use plimsoll_derive::{DeriveError, DeriveOptions, NfsOptions, derive_from_logs, derive_from_nfs};
use plimsoll_model::units::{Nanos, parse_span};
use plimsoll_run::clock;

use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::verbs::make_directory;

#[derive(Debug, Args)]
pub(crate) struct DeriveArgs {
    /// Access logs of nginx, Apache, Caddy, Traefik or Envoy, in any order; compressed ones too
    #[arg(required_unless_present = "nfs", value_name = "LOG")]
    files: Vec<PathBuf>,
    /// Counters instead of logs, read twice: texts of /proc/net/rpc/nfsd, nfsstat -s or
    /// /proc/self/mountstats
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["files", "keep", "log_format", "methods", "session_timeout"])]
    nfs: Option<Vec<PathBuf>>,
    /// With --nfs: time between the readings [default: the age of the mount, or the time between the
    /// files]
    #[arg(long, value_name = "SPAN", requires = "nfs", value_parser = read_span)]
    over: Option<Nanos>,
    /// Folder of the load; must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keep paths and queries; else paths are hashed, and the load runs on servers of ours only
    #[arg(long)]
    keep: bool,
    /// Format of the lines, if it is not recognised: combined, common, apache-combined, json, or what
    /// log_format (nginx) or LogFormat (Apache) says
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Methods whose requests are in the load
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',', default_value = "GET,HEAD")]
    methods: Vec<String>,
    /// A longer pause of a client ends its session
    #[arg(long, value_name = "SPAN", default_value = "30m", value_parser = read_timeout)]
    session_timeout: Nanos,
    /// Print the facts of derived.json instead of the page about the load
    #[arg(long)]
    json: bool,
}

fn read_timeout(text: &str) -> Result<Nanos, String> {
    let longest = Nanos::from_secs(86_400);
    let is_timeout = |span: &Nanos| *span > Nanos::ZERO && *span <= longest;
    parse_span(text).filter(is_timeout).ok_or("write a span up to a day, such as 30m".to_owned())
}

fn read_span(text: &str) -> Result<Nanos, String> {
    parse_span(text).ok_or("write a span such as 10m".to_owned())
}

/// Writes the load, and prints the page about it.
pub(crate) fn perform(args: &DeriveArgs) -> Result<Exit, Failure> {
    let out = args.out.display();
    let is_used = std::fs::read_dir(&args.out).is_ok_and(|mut files| files.next().is_some());
    if is_used || args.out.is_file() {
        return Err(Failure::wrong(format!(
            "{out} is there already: name another folder with --out"
        )));
    }
    make_directory(&args.out)?;
    let refused = |error: DeriveError| {
        // Nothing half made is left; a folder with files of others is not empty and stays.
        _ = std::fs::remove_dir(&args.out);
        match error {
            DeriveError::Unwritable { .. } => Failure::unusable(error.to_string()),
            _ => Failure::wrong(error.to_string()),
        }
    };
    if let Some([before, after]) = args.nfs.as_deref() {
        let (before, after, out) = (before.clone(), after.clone(), args.out.clone());
        let seconds = args.over.map(Nanos::as_secs_f64);
        let options = NfsOptions { before, after, seconds, out };
        let derived = derive_from_nfs(&options).map_err(refused)?;
        show(args, &derived.page, &derived.facts);
        return Ok(Exit::Valid);
    }
    let options = DeriveOptions {
        files: args.files.clone(),
        out: args.out.clone(),
        keeps_paths: args.keep,
        log_format: args.log_format.clone(),
        methods: args.methods.iter().map(|method| method.trim().to_ascii_uppercase()).collect(),
        session_timeout: args.session_timeout,
        now: Nanos(clock::unix_ns()),
    };
    let derived = derive_from_logs(&options).map_err(refused)?;
    show(args, &derived.page, &derived.facts);
    Ok(Exit::Valid)
}

/// The page about a load, or its facts as JSON.
fn show(args: &DeriveArgs, page: &str, facts: &impl serde::Serialize) {
    match args.json {
        true => terminal::print(&serde_json::to_string_pretty(facts).unwrap_or_default()),
        false => terminal::print(page),
    }
}
