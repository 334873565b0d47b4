//! Settings of TLS connections: whom to trust, whether to resume.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_protocol::files::InputFiles;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// Servers whose sessions a store for resumption keeps.
const RESUMED_SERVERS_MAX: usize = 256;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file with further certificates cannot be used.
    #[error("cannot read certificates from {path}: {reason}; it must be a PEM file")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The client's own certificate cannot be used.
    #[error("cannot read the client's certificate from {path}: {reason}; it must be a PEM file")]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// rustls refuses the set-up.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
    /// The host of a target cannot be a certificate's name.
    #[error("host {0:?} is not a name or address that a certificate can have")]
    Name(String),
}

/// Whom to trust.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// The public authorities, and those of a PEM file.
    Authorities(Option<&'a Path>),
    /// Any certificate: encryption without knowing the server.
    Anyone,
}

/// Files with the client's certificate and its key.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Certificate, and those above it.
    pub certificate: &'a Path,
    /// Private key; may be the same file.
    pub key: &'a Path,
}

/// Settings of all connections of a workload. Every connection makes a full handshake; see
/// [`resuming`].
pub fn client_config(
    trust: Trust<'_>,
    identity: Option<Identity<'_>>,
    files: &dyn InputFiles,
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = match trust {
        Trust::Authorities(file) => builder.with_root_certificates(roots(file, files)?),
        Trust::Anyone => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
        }
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = identity.read(files)?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    config.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// HTTP/1.1 over TLS, as ALPN names it. RFC 7301 §6
pub const ALPN_HTTP1: &[u8] = b"http/1.1";
/// The same of HTTP/2. RFC 9113 §3.2
pub const ALPN_HTTP2: &[u8] = b"h2";

/// The same settings, offering these protocols (ALPN).
pub fn offering(config: &ClientConfig, names: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// The same settings with a store of its own for sessions to resume. The store has a lock: one
/// per worker, so that workers do not wait for each other.
pub fn resuming(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.resumption = Resumption::in_memory_sessions(RESUMED_SERVERS_MAX);
    Arc::new(config)
}

impl Identity<'_> {
    fn read(
        &self,
        files: &dyn InputFiles,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let refused =
            |path: &Path, reason: String| TlsError::Identity { path: path.into(), reason };
        let read = |path| files.read(path).map_err(|e| refused(path, e.to_string()));
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&read(self.certificate)?).collect();
        let chain = chain.map_err(|e| refused(self.certificate, e.to_string()))?;
        if chain.is_empty() {
            return Err(refused(self.certificate, "there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(self.key)?);
        Ok((chain, key.map_err(|e| refused(self.key, e.to_string()))?))
    }
}

fn roots(file: Option<&Path>, files: &dyn InputFiles) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let Some(path) = file else { return Ok(roots) };
    let refused = |reason: String| TlsError::CaFile { path: path.to_owned(), reason };
    let mut count = 0;
    let pem = files.read(path).map_err(|e| refused(e.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| refused(e.to_string()))?;
        roots.add(certificate).map_err(|e| refused(e.to_string()))?;
        count += 1;
    }
    match count {
        0 => Err(refused("no certificate is in it".to_owned())),
        _ => Ok(roots),
    }
}

/// The name a server must have, from the host of its URL.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))
}

/// Accepts any certificate, but only signatures made with its key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
