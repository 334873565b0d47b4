//! What a case speaks: a server of ours behind a queue of known law, and the suite that asks it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plimsoll_servers::{Builtin, ServerProcess};

use crate::cli::CalibrateProtocol;
use crate::exit::Failure;

/// A protocol, with or without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Transactions, of the calibrated server proper.
    App,
    Http,
    Https,
    /// GETATTR over TCP.
    Nfs,
    /// READs of one file.
    Smb,
}

/// What a server is started with.
pub(super) struct Start<'a> {
    pub(super) program: PathBuf,
    pub(super) spec: &'a str,
    pub(super) log: Option<&'a Path>,
    pub(super) cores: Vec<u32>,
    /// For a certificate.
    pub(super) dir: &'a Path,
}

impl Wire {
    /// Those besides the calibrated server proper that were asked for.
    pub(super) fn beside(protocol: CalibrateProtocol) -> &'static [Self] {
        match protocol {
            CalibrateProtocol::App => &[],
            CalibrateProtocol::Http => &[Self::Http, Self::Https],
            CalibrateProtocol::Nfs => &[Self::Nfs],
            CalibrateProtocol::Smb => &[Self::Smb],
            CalibrateProtocol::All => &[Self::Http, Self::Https, Self::Nfs, Self::Smb],
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Http => "http",
            Self::Https => "https",
            Self::Nfs => "nfs",
            Self::Smb => "smb",
        }
    }

    /// The protocol of its suite.
    pub(super) const fn protocol(self) -> &'static str {
        match self {
            Self::Https => "http",
            other => other.name(),
        }
    }

    /// The suite of its loads that do not wait for replies; SMB has only one that does.
    pub(super) const fn suite(self) -> &'static str {
        match self {
            Self::App => include_str!("open.toml"),
            Self::Http | Self::Https => include_str!("http.toml"),
            Self::Nfs => include_str!("nfs.toml"),
            Self::Smb => include_str!("smb.toml"),
        }
    }

    /// Starts a server.
    pub(super) fn start(self, start: Start<'_>) -> Result<ServerProcess, Failure> {
        let mut arguments: Vec<OsString> = vec!["--calibrated".into(), start.spec.into()];
        if let Some(log) = start.log {
            arguments.extend(["--log".into(), log.as_os_str().to_owned()]);
        }
        let server = match self {
            Self::App => plimsoll_app::host::builtin(start.program, &start.cores),
            Self::Http => Builtin::new("web", start.program, &start.cores),
            Self::Https => {
                arguments.extend(certificate(start.dir)?);
                Builtin::new("web", start.program, &start.cores)
            }
            Self::Nfs => Builtin::new("nfs", start.program, &start.cores),
            Self::Smb => Builtin::new("smb", start.program, &start.cores),
        };
        Ok(Builtin { arguments, ..server }.start()?)
    }

    /// Where its requests go.
    pub(super) fn url(self, server: &ServerProcess) -> String {
        let url = server.url();
        match self {
            Self::Http | Self::Https => format!("{url}bytes/64"),
            Self::App | Self::Nfs | Self::Smb => url,
        }
    }
}

/// Files of a certificate made for these runs, as flags.
fn certificate(dir: &Path) -> Result<[OsString; 4], Failure> {
    let pem = plimsoll_http::server::self_signed()?;
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    for (path, text) in [(&cert, &pem.certificate), (&key, &pem.key)] {
        std::fs::write(path, text).map_err(|e| {
            Failure::unusable(format!("{}: cannot write it: {e}; make room", path.display()))
        })?;
    }
    Ok(["--cert".into(), cert.into(), "--key".into(), key.into()])
}
