//! Settings of TLS connections: which certificates to trust, whether to resume.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_protocol::files::InputFiles;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
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

/// Which certificates to trust.
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
    let trusted = match trust {
        Trust::Authorities(file) => Some(Trusted::new(file, files, provider.clone())?),
        Trust::Anyone => None,
    };
    let verifier = Arc::new(Verifier { provider, trusted });
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
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

/// A client's certificate with its key, read.
#[derive(Clone, Debug)]
pub struct ClientIdentity(Arc<dyn ResolvesClientCert>);

impl ClientIdentity {
    /// Reads the certificate, those above it and its key from one PEM file.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn read(
        path: &Path,
        read: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, TlsError> {
        let identity = Identity { certificate: path, key: path };
        let (chain, key) = identity.read_with(read)?;
        let key = ring::default_provider().key_provider.load_private_key(key)?;
        Ok(Self(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)))))
    }
}

/// The same settings with this certificate of a client.
pub(super) fn identified(config: &ClientConfig, identity: &ClientIdentity) -> ClientConfig {
    let mut config = config.clone();
    config.client_auth_cert_resolver = Arc::clone(&identity.0);
    config
}

impl Identity<'_> {
    fn read(
        &self,
        files: &dyn InputFiles,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        self.read_with(&|path| files.read(path))
    }

    fn read_with(
        &self,
        read: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let refused =
            |path: &Path, reason: String| TlsError::Identity { path: path.into(), reason };
        let read = |path| read(path).map_err(|e| refused(path, e.to_string()));
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

/// Certificates of a PEM file, for which the user vouches.
fn given(path: &Path, files: &dyn InputFiles) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refused = |reason: String| TlsError::CaFile { path: path.to_owned(), reason };
    let pem = files.read(path).map_err(|e| refused(e.to_string()))?;
    let given: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match given.map_err(|e| refused(e.to_string()))? {
        none if none.is_empty() => Err(refused("no certificate is in it".to_owned())),
        given => Ok(given),
    }
}

/// The name a server must have, from the host of its URL.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))
}

/// Verifies certificates, and signatures made with their keys.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Whose certificates are good; `None`: any is.
    trusted: Option<Trusted>,
}

/// The public authorities and the given certificates: what these have signed is good, and these
/// very certificates as a server's own, as with curl. Test servers often have one that claims to be
/// an authority's (oha #372), which webpki rejects as a server's.
#[derive(Debug)]
struct Trusted {
    given: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl Trusted {
    fn new(
        file: Option<&Path>,
        files: &dyn InputFiles,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let given = file.map_or_else(|| Ok(Vec::new()), |path| given(path, files))?;
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        for certificate in &given {
            roots.add(certificate.clone())?;
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = authorities.build().map_err(|e| rustls::Error::General(e.to_string()))?;
        Ok(Self { given, authorities })
    }
}

impl Verifier {
    /// Of a certificate that cannot be read, such as one of X.509 version 1, the key is unknown: if
    /// any certificate is accepted, so is any signature then.
    fn has_no_key(&self, certificate: &CertificateDer<'_>) -> bool {
        self.trusted.is_none() && ParsedCertificate::try_from(certificate).is_err()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{Other, UnknownIssuer};
        let Some(Trusted { given, authorities }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            // Its dates are looked at before its issuer, and so are good.
            Err(rustls::Error::InvalidCertificate(UnknownIssuer | Other(_)))
                if given.contains(end_entity)
                    && let Ok(certificate) = ParsedCertificate::try_from(end_entity) =>
            {
                verify_server_name(&certificate, name).map(|()| ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.has_no_key(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.has_no_key(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
