//! A collector, over TLS too, that records what it is sent.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::tls::TestCertificate;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// Head and body.
pub(super) type Request = (String, Vec<u8>);
type Came = Arc<Mutex<Vec<Request>>>;

pub(super) const TRUSTED: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
pub(super) const KEY: &str = "OTEL_EXPORTER_OTLP_CLIENT_KEY";
pub(super) const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// In the messages of seconds alone.
const OF_SECOND: &[u8] = b"plimsoll.second.";

/// Answers every request alike, or never, and records it.
pub(super) struct Collector {
    pub(super) flag: String,
    /// Of the only client that it talks to over TLS.
    client: TestCertificate,
    came: Came,
}

impl Collector {
    /// `None` sends no answer at all.
    pub(super) fn start(answer: Option<&'static [u8]>) -> Self {
        Self::new(None, move |_, stream: &mut dyn Write| {
            match answer {
                Some(answer) => stream.write_all(answer).unwrap_or_default(),
                None => std::thread::park(),
            }
            true
        })
    }

    /// Over TLS with a certificate; it listens until `answer` returns `false`.
    pub(super) fn new(
        certificate: Option<&TestCertificate>,
        answer: impl Fn(&Request, &mut dyn Write) -> bool + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let flag = format!("otlp={scheme}://{}", listener.local_addr().unwrap());
        let client = TestCertificate::of_client("plimsoll");
        let tls = certificate.map(|certificate| server_config(certificate, &client));
        let came = Came::default();
        let all = Arc::clone(&came);
        let answered = move |stream: &mut dyn ReadWrite| {
            let request = whole(stream);
            all.lock().unwrap().push(request.clone());
            answer(&request, stream)
        };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let goes_on = match &tls {
                    None => answered(&mut stream),
                    Some(config) => {
                        let connection = ServerConnection::new(config.clone()).unwrap();
                        answered(&mut StreamOwned::new(connection, stream))
                    }
                };
                if !goes_on {
                    break;
                }
            }
        });
        Self { flag, client, came }
    }

    /// Writes the certificates into this folder; the variables that name them.
    pub(super) fn environment(
        &self,
        server: &TestCertificate,
        folder: &Path,
    ) -> [(&'static str, PathBuf); 3] {
        let trusted = folder.join("trusted.pem");
        std::fs::write(&trusted, &server.certificate_pem).unwrap();
        self.client.write_into(folder);
        [
            (TRUSTED, trusted),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", folder.join("certificate.pem")),
            (KEY, folder.join("key.pem")),
        ]
    }

    /// Requests of seconds, and of load points.
    pub(super) fn came(&self) -> (Vec<Request>, Vec<Request>) {
        self.came.lock().unwrap().clone().into_iter().partition(is_of_second)
    }
}

trait ReadWrite: Read + Write {}
impl<S: Read + Write> ReadWrite for S {}

fn server_config(certificate: &TestCertificate, client: &TestCertificate) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(client.certificate_der.clone())).unwrap();
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    let chain = vec![CertificateDer::from(certificate.certificate_der.clone())];
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

pub(super) fn is_of_second((_, body): &Request) -> bool {
    body.windows(OF_SECOND.len()).any(|bytes| bytes == OF_SECOND)
}

fn whole(stream: &mut dyn ReadWrite) -> Request {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8(received[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if received.len() >= end + 4 + length.unwrap().parse::<usize>().unwrap() {
                return (head, received[end + 4..].to_vec());
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            _ => return Default::default(),
        }
    }
}
