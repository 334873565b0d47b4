//! Certificates for tests.

use std::path::Path;

/// A self-signed certificate for `localhost`, `127.0.0.1` and `::1`, with its key.
#[derive(Clone, Debug)]
pub struct TestCertificate {
    /// Certificate as PEM; also what a client has to trust.
    pub certificate_pem: String,
    /// Certificate as DER.
    pub certificate_der: Vec<u8>,
    /// PKCS #8 key as PEM.
    pub key_pem: String,
}

impl TestCertificate {
    /// Makes one.
    pub fn new() -> Self {
        let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self {
            certificate_pem: made.cert.pem(),
            certificate_der: made.cert.der().to_vec(),
            key_pem: made.signing_key.serialize_pem(),
        }
    }

    /// One for a client, which a server knows it by.
    pub fn of_client(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            certificate_pem: certificate.pem(),
            certificate_der: certificate.der().to_vec(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Writes `certificate.pem` and `key.pem` into `directory`.
    pub fn write_into(&self, directory: &Path) {
        std::fs::write(directory.join("certificate.pem"), &self.certificate_pem).unwrap();
        std::fs::write(directory.join("key.pem"), &self.key_pem).unwrap();
    }
}

impl Default for TestCertificate {
    fn default() -> Self {
        Self::new()
    }
}
