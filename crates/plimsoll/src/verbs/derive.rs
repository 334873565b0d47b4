//! `plimsoll derive LOG… --out DIR`: a load from access logs.

use std::path::PathBuf;

use clap::Args;
use plimsoll_derive::{DeriveError, DeriveOptions, derive_from_logs};
use plimsoll_model::units::{Nanos, parse_span};
use plimsoll_run::clock;

use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::verbs::make_directory;

#[derive(Debug, Args)]
pub(crate) struct DeriveArgs {
    /// Access logs of nginx, Apache, Caddy, Traefik or Envoy, in any order; compressed ones too
    #[arg(required = true, value_name = "LOG")]
    files: Vec<PathBuf>,
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
    let options = DeriveOptions {
        files: args.files.clone(),
        out: args.out.clone(),
        keeps_paths: args.keep,
        log_format: args.log_format.clone(),
        methods: args.methods.iter().map(|method| method.trim().to_ascii_uppercase()).collect(),
        session_timeout: args.session_timeout,
        now: Nanos(clock::unix_ns()),
    };
    let derived = derive_from_logs(&options).map_err(|error| {
        // Nothing half made is left; a folder that has become another's is not ours.
        _ = std::fs::remove_dir(&args.out);
        match error {
            DeriveError::Unwritable { .. } => Failure::unusable(error.to_string()),
            _ => Failure::wrong(error.to_string()),
        }
    })?;
    match args.json {
        true => terminal::print(&serde_json::to_string_pretty(&derived.facts).unwrap_or_default()),
        false => terminal::print(&derived.page),
    }
    Ok(Exit::Valid)
}
