//! Certificates of the servers that Plimsoll starts.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_servers::ServerError;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::tls::{ALPN_HTTP1, ALPN_HTTP2};

/// Where a server's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// Created now, as [`self_signed`] does; no client trusts it.
    SelfSigned,
    /// PEM files: certificate chain and private key.
    Files {
        /// Certificate chain, the server's own first.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
    },
}

/// A certificate and its key as PEM text.
#[derive(Clone)]
pub struct Pem {
    /// Certificate.
    pub certificate: String,
    /// PKCS #8 private key.
    pub key: String,
}

/// Makes a self-signed certificate for `localhost`, `127.0.0.1`, `::1` and the address `ip` that
/// its server listens on.
pub fn self_signed(ip: IpAddr) -> Result<Pem, ServerError> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    if !names.contains(&ip.to_string()) {
        names.push(ip.to_string());
    }
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| CertificateError::Tls(error.to_string()))?;
    Ok(Pem { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
}

pub(super) fn acceptor(source: &TlsSource, ip: IpAddr) -> Result<TlsAcceptor, ServerError> {
    let (chain, key) = match source {
        TlsSource::SelfSigned => {
            let pem = self_signed(ip)?;
            let here = Path::new("(made now)");
            (chain_from(here, pem.certificate.as_bytes())?, key_from(here, pem.key.as_bytes())?)
        }
        TlsSource::Files { certificate, key } => {
            (chain_from(certificate, &read(certificate)?)?, key_from(key, &read(key)?)?)
        }
    };
    let refused = |error: rustls::Error| CertificateError::Tls(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(refused)?;
    config.alpn_protocols = [ALPN_HTTP2, ALPN_HTTP1].map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, ServerError> {
    std::fs::read(path).map_err(|error| pem_error(path, error.to_string()))
}

fn chain_from(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| pem_error(path, error.to_string()))?;
    if chain.is_empty() {
        return Err(pem_error(path, "it holds no certificate".to_owned()));
    }
    Ok(chain)
}

fn key_from(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, ServerError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| pem_error(path, error.to_string()))
}

fn pem_error(path: &Path, reason: String) -> ServerError {
    CertificateError::Pem { path: path.to_owned(), reason }.into()
}

/// Why TLS of a web server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A certificate or key file cannot be read.
    #[error("cannot use the PEM file {}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        reason: String,
    },
    /// Certificate and key were read, and do not make a TLS server.
    #[error("cannot set up TLS: {0}; check that the key belongs to the certificate")]
    Tls(String),
}

impl From<CertificateError> for ServerError {
    fn from(error: CertificateError) -> Self {
        Self::own(error)
    }
}
