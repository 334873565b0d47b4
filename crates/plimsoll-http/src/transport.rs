//! How servers are reached: from the keys of a suite to what sites and TLS sessions are made of.
//! For suites of this crate, and of those whose messages travel in HTTP.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::files::InputFiles;
use plimsoll_protocol::{PlanError, ResolvedTarget};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::error::HttpPlanError;
use super::parameters::{HttpWorkload, TlsResumption};
use super::site::{SiteFrame, Version};
use super::tls::{self, Identity, TlsSite, Trust};

/// Settings of TLS.
#[derive(Debug)]
pub struct TlsLoad {
    pub(crate) config: Arc<ClientConfig>,
    /// One per target.
    names: Vec<ServerName<'static>>,
    resumption: TlsResumption,
}

impl TlsLoad {
    /// For the clients of one worker, one per target.
    pub fn sites(&self) -> impl Iterator<Item = Rc<TlsSite>> {
        let config = match self.resumption {
            TlsResumption::Off => self.config.clone(),
            TlsResumption::On => tls::resuming(&self.config),
        };
        self.names.iter().map(move |name| TlsSite::new(config.clone(), name.clone()))
    }

    /// Connections resume the sessions of earlier ones.
    pub(crate) fn resumes(&self) -> bool {
        self.resumption == TlsResumption::On
    }
}

/// Reads what TLS with these targets needs.
pub fn tls_load(
    workload: &HttpWorkload,
    targets: &[ResolvedTarget],
    files: &dyn InputFiles,
) -> Result<TlsLoad, PlanError> {
    let names = targets.iter().map(|target| tls::server_name(&target.url.host));
    let names = names.collect::<Result<_, _>>()?;
    let config = client_config(workload, files)?;
    Ok(TlsLoad { config, names, resumption: workload.tls_resumption })
}

/// Reads the trusted authorities and the client's own certificate. The authorities take
/// milliseconds to read.
pub(crate) fn client_config(
    workload: &HttpWorkload,
    files: &dyn InputFiles,
) -> Result<Arc<ClientConfig>, PlanError> {
    let identity = workload.tls_certificate_file.as_deref().map(|certificate| Identity {
        certificate: Path::new(certificate),
        key: Path::new(workload.tls_key_file.as_deref().unwrap_or(certificate)),
    });
    Ok(tls::client_config(trust(workload), identity, files)?)
}

/// Which certificates of servers are good.
pub(crate) fn trust(workload: &HttpWorkload) -> Trust<'_> {
    match workload.tls_verify {
        true => Trust::Authorities(workload.tls_ca_file.as_deref().map(Path::new)),
        false => Trust::Anyone,
    }
}

/// True for `https`. Targets have one scheme.
pub fn check_targets(targets: &[ResolvedTarget]) -> Result<bool, PlanError> {
    let secure = targets.iter().filter(|target| target.url.scheme == "https").count();
    match secure == 0 || secure == targets.len() {
        true => Ok(secure > 0),
        false => Err(HttpPlanError::MixedSchemes.into()),
    }
}

/// What the requests to a server have in common.
pub fn frame<'a>(
    workload: &'a HttpWorkload,
    url: &TargetUrl,
    version: Version,
) -> Result<SiteFrame<'a>, PlanError> {
    let host = url.host_field();
    if !host.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(HttpPlanError::Host(url.to_string()).into());
    }
    Ok(SiteFrame {
        base: format!("{}://{host}", url.scheme),
        host,
        headers: &workload.headers,
        connections: workload.connections,
        expected: workload.expect.clone(),
        version,
    })
}
