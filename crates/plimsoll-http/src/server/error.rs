//! Why TLS of a web server cannot be set up.

use std::path::PathBuf;

use plimsoll_servers::ServerError;

/// Why TLS of a web server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A certificate or key file cannot be read.
    #[error("cannot use the PEM file {}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What the parser said.
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
