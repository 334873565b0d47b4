//! `plimsoll serve`: the reference servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_protocols::http::fileset::{self, FileSet, MARKER};
use plimsoll_servers::app::calibrated::{CalibratedConfig, CalibratedServer};
use plimsoll_servers::app::{AppConfig, AppServer, Durability, SegmentsRoot, Troubles};
use plimsoll_servers::delay::{DelayConfig, DelayLaw};
use plimsoll_servers::nfs::{self, Flush, NfsConfig, NfsFiles, NfsServer};
use plimsoll_servers::smb::{Encryption, FilesAccess, SmbConfig, SmbFiles, SmbServer};
use plimsoll_servers::web::{TlsSource, WebConfig, WebContent, WebServer};
use plimsoll_servers::{ANNOUNCEMENT, Login, Stop, cores};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::{
    DurabilityArg, ServeAppArgs, ServeArgs, ServeKind, ServeNfsArgs, ServeSmbArgs, ServeWebArgs,
};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Serves until Ctrl-C.
pub fn perform(args: &ServeArgs) -> Result<Exit, Failure> {
    // First of all, so that no thread of ours is elsewhere; serving says where that fails.
    let _ = cores::pin_current_thread(match &args.server {
        ServeKind::Web(args) => &args.cores,
        ServeKind::Nfs(args) => &args.cores,
        ServeKind::Smb(args) => &args.cores,
        ServeKind::App(args) => &args.cores,
    });
    match &args.server {
        ServeKind::Web(args) => serve_web(args),
        ServeKind::Nfs(args) => serve_nfs(args),
        ServeKind::Smb(args) => serve_smb(args),
        ServeKind::App(args) => match &args.calibrated {
            Some(spec) => serve_calibrated(args, spec),
            None => serve_app(args),
        },
    }
}

fn serve_web(args: &ServeWebArgs) -> Result<Exit, Failure> {
    let tls = args
        .cert
        .as_ref()
        .zip(args.key.as_ref())
        .map(|(cert, key)| TlsSource::Files { certificate: cert.clone(), key: key.clone() });
    let config =
        WebConfig { listen: args.listen, content: content(args), cores: args.cores.clone(), tls };
    let law = delay_law(args.calibrated.as_ref(), args.log.as_ref())?;
    let mut server = WebServer::bind(&config)?;
    if let Some(law) = &law {
        server = server.delayed_by(Arc::clone(law));
    }
    let stop = stop_asked_for(args.stop_with_stdin)?;
    terminal::print(&format!("{ANNOUNCEMENT}{}", server.url()));
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(Exit::Valid)
}

fn serve_nfs(args: &ServeNfsArgs) -> Result<Exit, Failure> {
    let flush = if args.no_sync { Flush::Never } else { Flush::AsPromised };
    let files = match &args.root {
        Some(root) => NfsFiles::Directory { root: root.clone(), flush },
        None => NfsFiles::Memory { bytes_max: args.memory_max.0 },
    };
    let (portmapper, cores) = (args.portmapper, args.cores.clone());
    nfs::raise_descriptor_limit();
    let law = delay_law(args.calibrated.as_ref(), args.log.as_ref())?;
    let mut server = NfsServer::bind(&NfsConfig { listen: args.listen, files, portmapper, cores })?;
    if let Some(law) = &law {
        server = server.delayed_by(Arc::clone(law));
    }
    let stop = stop_asked_for(args.stop_with_stdin)?;
    terminal::print(&format!("{ANNOUNCEMENT}{}", server.url()));
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(Exit::Valid)
}

fn serve_smb(args: &ServeSmbArgs) -> Result<Exit, Failure> {
    let access = if args.read_only { FilesAccess::Read } else { FilesAccess::ReadWrite };
    let files = match &args.root {
        Some(root) => SmbFiles::Directory { root: root.clone(), access },
        None => SmbFiles::Memory { bytes_max: args.memory_max.0 },
    };
    let encryption = if args.encrypt { Encryption::Required } else { Encryption::AsClient };
    let (login, cores) = (login(args)?, args.cores.clone());
    nfs::raise_descriptor_limit();
    let config = SmbConfig { listen: args.listen, files, login, encryption, cores };
    let law = delay_law(args.calibrated.as_ref(), args.log.as_ref())?;
    let server = SmbServer::bind_delayed(&config, law.clone())?;
    let stop = stop_asked_for(args.stop_with_stdin)?;
    terminal::print(&format!("{ANNOUNCEMENT}{}", server.url()));
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(Exit::Valid)
}

/// What holds the replies of a reference server, where that is wanted.
fn delay_law(
    spec: Option<&CalibratedSpec>,
    log: Option<&PathBuf>,
) -> Result<Option<Arc<DelayLaw>>, Failure> {
    let config = spec.map(|spec| DelayConfig { spec: spec.clone(), log: log.cloned() });
    Ok(config.map(|config| DelayLaw::new(&config)).transpose()?)
}

fn login(args: &ServeSmbArgs) -> Result<Option<Login>, Failure> {
    let Some(user) = args.user.clone() else { return Ok(None) };
    let variable = &args.password_env;
    match std::env::var(variable).ok().filter(|password| !password.is_empty()) {
        Some(password) => Ok(Some(Login { user, password })),
        None => Err(Failure::wrong(format!(
            "--user {user} needs a password, and the environment variable {variable} holds none; \
             set it, or name another with --password-env"
        ))),
    }
}

fn serve_app(args: &ServeAppArgs) -> Result<Exit, Failure> {
    nfs::raise_descriptor_limit();
    let config = AppConfig {
        root: match (&args.root, &args.temporary_root) {
            (Some(root), _) => SegmentsRoot::Kept(root.clone()),
            (None, Some(root)) => SegmentsRoot::TemporaryAt(root.clone()),
            (None, None) => SegmentsRoot::Temporary,
        },
        threads: args.threads,
        durability: match args.durability {
            DurabilityArg::None => Durability::None,
            DurabilityArg::Fdatasync => Durability::Fdatasync,
        },
        segment_bytes_max: args.segment_max.0,
        connections_max: args.connections_max.get(),
        request_timeout: Duration::from_nanos(args.request_timeout.0),
        memory_bytes: args.memory.map(|limit| limit.0),
        metrics: args.metrics,
        cores: args.cores.clone(),
        troubles: Troubles::new(terminal::note),
        ..AppConfig::new(args.listen)
    };
    let server = AppServer::bind(&config)?;
    let stop = stop_asked_for(args.stop_with_stdin)?;
    terminal::print(&format!("{ANNOUNCEMENT}{}", server.url()));
    if let Some(url) = server.metrics_url() {
        terminal::print(&format!("metrics at {url}"));
    }
    server.serve_until(&stop)?;
    Ok(Exit::Valid)
}

fn serve_calibrated(args: &ServeAppArgs, spec: &CalibratedSpec) -> Result<Exit, Failure> {
    nfs::raise_descriptor_limit();
    let (listen, log, cores) = (args.listen, args.log.clone(), args.cores.clone());
    let server =
        CalibratedServer::bind(&CalibratedConfig { listen, spec: spec.clone(), log, cores })?;
    let stop = stop_asked_for(args.stop_with_stdin)?;
    terminal::print(&format!("{ANNOUNCEMENT}{}", server.url()));
    server.serve_until(&stop)?;
    Ok(Exit::Valid)
}

fn content(args: &ServeWebArgs) -> WebContent {
    if let Some(root) = &args.root {
        return WebContent::Directory(root.clone());
    }
    let directories = args.directories.unwrap_or_else(|| fileset::directories_for(args.peak, 1.0));
    let set = FileSet::new(args.seed, directories);
    let marker = set.marker().to_json();
    let marker_path = format!("/{MARKER}");
    WebContent::Memory(Arc::new(move |path| {
        if path == marker_path {
            return Some(marker.clone().into());
        }
        let id = set.resolve(path)?;
        Some(set.content(id).to_vec().into())
    }))
}

/// Asked for by a signal, or by the end of standard input.
fn stop_asked_for(with_stdin: bool) -> Result<Stop, Failure> {
    let stop = Stop::new();
    if with_stdin {
        stop.request_when_stdin_ends();
    }
    stop_on_signals(stop.clone())?;
    Ok(stop)
}

fn stop_on_signals(stop: Stop) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|e| Failure::unusable(format!("cannot listen for Ctrl-C: {e}")))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            stop.request();
        }
    });
    Ok(())
}
