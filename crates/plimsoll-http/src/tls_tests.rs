//! TLS against a rustls server in memory.

use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{Link, Session};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_protocol::files::HostFiles;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::parameters::Connections::{KeepAlive, PerRequest};
use super::reader::Plain;
use super::session::HttpSession;
use super::site::{HttpOp, WorkerSite};
use super::spare_links::LINGERING_LINKS_MAX;
use super::test_io::*;
use super::tls::{Identity, Tls, TlsError, TlsSite, Trust, client_config, resuming, server_name};

/// A certificate for `localhost`, and a server that has it.
struct Server {
    pem: String,
    config: Arc<ServerConfig>,
}

impl Server {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self { pem: made.cert.pem(), config: Arc::new(config) }
    }

    /// The same with a certificate that claims to be an authority's (oha #372), or with these
    /// names.
    fn made(names: &[&str], is_ca: rcgen::IsCa) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        parameters.is_ca = is_ca;
        let key = rcgen::KeyPair::generate().unwrap();
        let made = parameters.self_signed(&key).unwrap();
        Self::with(made.pem(), made.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()))
    }

    /// The same with one of X.509 version 1, as `openssl x509 -req` makes them (mqttui #142).
    fn version1() -> Self {
        let pem = include_str!("tls/version1.pem");
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        Self::with(pem.to_owned(), certificate, key)
    }

    fn with(
        pem: String,
        certificate: CertificateDer<'static>,
        key: PrivatePkcs8KeyDer<'static>,
    ) -> Self {
        let provider = Arc::new(ring::default_provider());
        let key = provider.key_provider.load_private_key(PrivateKeyDer::Pkcs8(key)).unwrap();
        let resolver = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        Self { pem, config: Arc::new(config) }
    }

    /// Whether a client with this trust sends its request, and why not.
    fn gets_request(&self, trust: Trust<'_>) -> (bool, String) {
        let mut server = self.accept();
        let mut bench = client(file_site(KeepAlive), trust);
        let link = bench.issue_and_connect(file_op(SMALL));
        let request = exchange(&mut bench, link, &mut server, 1000);
        (request.starts_with(b"GET "), bench.io.detail)
    }

    /// The same of a client to which the certificate of `trusted` was given.
    fn gets_request_trusting(&self, trusted: &Self) -> (bool, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &trusted.pem).unwrap();
        self.gets_request(Trust::Authorities(Some(file.path())))
    }

    fn accept(&self) -> ServerConnection {
        ServerConnection::new(self.config.clone()).unwrap()
    }
}

fn client(site: Rc<WorkerSite>, trust: Trust<'_>) -> Bench<Tls<HttpSession>> {
    let config = client_config(trust, None, &HostFiles::default()).unwrap();
    let tls = TlsSite::new(config, server_name("localhost").unwrap());
    Bench::from_session(Tls::new(HttpSession::new(site, Plain::Unread, OP_TIMEOUT), tls))
}

/// Carries bytes both ways, `piece` at a time to the client, until nothing moves; answers with
/// what the server has read.
fn exchange(
    bench: &mut Bench<Tls<HttpSession>>,
    link: Link,
    server: &mut ServerConnection,
    piece: usize,
) -> Vec<u8> {
    let mut plain = Vec::new();
    loop {
        let sent = std::mem::take(&mut bench.io.sent);
        for (_, bytes) in &sent {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                // A client's alert shows here; the client's own outcome is what is tested.
                let _ = server.process_new_packets();
            }
        }
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = server.reader().read(&mut chunk) {
            plain.extend_from_slice(&chunk[..n]);
        }
        let mut back = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut back).unwrap();
        }
        for bytes in back.chunks(piece) {
            bench.bytes(link, bytes);
        }
        if sent.is_empty() && back.is_empty() {
            return plain;
        }
    }
}

/// One op over TLS with pieces of that size.
fn run_one(op: HttpOp, body: &[u8], piece: usize) -> Bench<Tls<HttpSession>> {
    let made = Server::new();
    let mut server = made.accept();
    server.set_buffer_limit(None);
    let mut bench = client(file_site(KeepAlive), Trust::Anyone);
    let link = bench.issue_and_connect(op);
    let request = exchange(&mut bench, link, &mut server, piece);
    assert!(request.starts_with(b"GET /dir"), "{}", String::from_utf8_lossy(&request));
    server.writer().write_all(&reply(body)).unwrap();
    exchange(&mut bench, link, &mut server, piece);
    bench
}

#[test]
fn an_op_over_tls_is_verified_at_any_fragmentation() {
    for piece in [1, 7, 1000, 100_000] {
        let mut bench = run_one(file_op(SMALL), file_set().content(SMALL), piece);
        assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
        assert_eq!(bench.session.take_counters().verified, 1);
    }
    let bench = run_one(file_op(LARGE), file_set().content(LARGE), 5_000);
    assert_eq!((bench.last().status, bench.last().bytes_read), (OpStatus::Ok, 102_400));
}

#[test]
fn a_discarded_body_is_decrypted_but_not_looked_at() {
    let op = HttpOp { verify: false, ..file_op(LARGE) };
    let bench = run_one(op, file_set().content(LARGE), 20_000);
    assert_eq!((bench.last().status, bench.last().bytes_read), (OpStatus::Ok, 102_400));
    assert!(bench.io.discards.is_empty(), "ciphertext cannot be dropped unread");
}

/// A client whose request the server has read.
fn client_with_request(
    server: &mut ServerConnection,
    site: Rc<WorkerSite>,
) -> (Bench<Tls<HttpSession>>, Link) {
    let mut bench = client(site, Trust::Anyone);
    let link = bench.issue_and_connect(file_op(SMALL));
    let request = exchange(&mut bench, link, server, 1000);
    assert!(request.starts_with(b"GET "), "{}", bench.io.detail);
    (bench, link)
}

/// A reply whose body lasts until the connection ends.
fn unmeasured_reply() -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), file_set().content(SMALL)].concat()
}

#[test]
fn a_close_notify_ends_the_connection_before_any_fin() {
    let mut server = Server::new().accept();
    let (mut bench, link) = client_with_request(&mut server, file_site(KeepAlive));
    server.writer().write_all(&unmeasured_reply()).unwrap();
    server.send_close_notify();
    exchange(&mut bench, link, &mut server, 100_000);
    assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
    let next = bench.issue_and_connect(file_op(SMALL));
    assert_ne!(next, link);
    assert!(bench.io.closed.is_empty(), "the server is to close first");
    bench.eof(link);
    assert_eq!((bench.io.done.len(), bench.io.closed), (1, vec![link]));
}

#[test]
fn links_whose_fin_never_comes_are_bounded() {
    let made = Server::new();
    let mut bench = client(file_site(PerRequest), Trust::Anyone);
    for _ in 0..LINGERING_LINKS_MAX + 2 {
        let mut server = made.accept();
        let link = bench.issue_and_connect(file_op(SMALL));
        exchange(&mut bench, link, &mut server, 1000);
        server.writer().write_all(&reply(file_set().content(SMALL))).unwrap();
        server.send_close_notify();
        exchange(&mut bench, link, &mut server, 1000);
        assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
    }
    assert_eq!(bench.io.closed, [Link(1), Link(2)]);
    bench.reset(Link(3));
    bench.eof(Link(4));
    bench.eof(Link(4));
    assert_eq!(bench.io.closed, [Link(1), Link(2), Link(4)]);
}

#[test]
fn a_kept_connection_that_is_idle_ends_with_a_close_notify() {
    let mut server = Server::new().accept();
    let (mut bench, link) = client_with_request(&mut server, file_site(KeepAlive));
    server.writer().write_all(&reply(file_set().content(SMALL))).unwrap();
    exchange(&mut bench, link, &mut server, 1000);
    assert_eq!((bench.last().status, bench.io.closed.len()), (OpStatus::Ok, 0));
    server.send_close_notify();
    exchange(&mut bench, link, &mut server, 1000);
    assert!(bench.io.closed.is_empty(), "the server is to close first");
    assert_ne!(bench.issue_and_connect(file_op(SMALL)), link);
    bench.eof(link);
    assert_eq!((bench.io.closed.as_slice(), bench.io.done.len()), ([link].as_slice(), 1));
}

#[test]
fn a_body_that_only_a_fin_ends_is_truncated() {
    let mut server = Server::new().accept();
    let (mut bench, link) = client_with_request(&mut server, file_site(KeepAlive));
    server.writer().write_all(&unmeasured_reply()).unwrap();
    exchange(&mut bench, link, &mut server, 1000);
    bench.eof(link);
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Truncated));
    assert!(bench.io.detail.contains("without a TLS close_notify"), "{}", bench.io.detail);
    assert_eq!(bench.io.closed, [link]);
}

#[test]
fn a_reply_that_says_its_length_needs_no_close_notify() {
    let mut server = Server::new().accept();
    let (mut bench, link) = client_with_request(&mut server, file_site(PerRequest));
    server.writer().write_all(&reply(file_set().content(SMALL))).unwrap();
    exchange(&mut bench, link, &mut server, 1000);
    bench.eof(link);
    assert_eq!((bench.io.done.len(), bench.last().status), (1, OpStatus::Ok));
    assert_eq!(bench.io.closed, [link]);
}

#[test]
fn a_kept_connection_that_a_fin_ends_before_the_reply_is_tried_again() {
    let mut server = Server::new().accept();
    let (mut bench, link) = client_with_request(&mut server, file_site(KeepAlive));
    server.writer().write_all(&reply(file_set().content(SMALL))).unwrap();
    exchange(&mut bench, link, &mut server, 1000);
    bench.issue(file_op(SMALL));
    bench.eof(link);
    assert_eq!((bench.io.done.len(), bench.io.links, bench.io.closed.len()), (1, 2, 1));
}

#[test]
fn sessions_are_resumed_only_where_the_workload_says_so() {
    let (full, resumed) = (HandshakeKind::Full, HandshakeKind::Resumed);
    for (resumes, forgets, expected) in
        [(false, false, full), (true, false, resumed), (true, true, full)]
    {
        let made = Server::new();
        let config = client_config(Trust::Anyone, None, &HostFiles::default()).unwrap();
        let config = if resumes { resuming(&config) } else { config };
        let tls = TlsSite::new(config, server_name("localhost").unwrap());
        let session = HttpSession::new(file_site(PerRequest), Plain::Unread, OP_TIMEOUT);
        let mut bench = Bench::from_session(Tls::new(session, Rc::clone(&tls)));
        let mut kinds = Vec::new();
        for _ in 0..2 {
            if forgets {
                tls.begin_user(None, true);
            }
            let mut server = made.accept();
            let link = bench.issue_and_connect(file_op(SMALL));
            exchange(&mut bench, link, &mut server, 1000);
            server.writer().write_all(&reply(file_set().content(SMALL))).unwrap();
            exchange(&mut bench, link, &mut server, 1000);
            assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
            kinds.push(server.handshake_kind());
        }
        assert_eq!(kinds, [Some(full), Some(expected)]);
    }
}

#[test]
fn an_unknown_certificate_fails_the_op_and_says_why() {
    let mut server = Server::new().accept();
    let mut bench = client(file_site(KeepAlive), Trust::Authorities(None));
    let link = bench.issue_and_connect(file_op(SMALL));
    exchange(&mut bench, link, &mut server, 1000);
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Tls));
    assert!(bench.io.detail.contains("invalid peer certificate"), "{}", bench.io.detail);
    assert_eq!(bench.io.closed, [link]);
    assert!(bench.session.has_room());
}

#[test]
fn a_certificate_of_the_ca_file_is_trusted_and_a_bad_file_refused() {
    let made = Server::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &made.pem).unwrap();
    let mut server = made.accept();
    let mut bench = client(file_site(PerRequest), Trust::Authorities(Some(file.path())));
    let link = bench.issue_and_connect(file_op(SMALL));
    let request = exchange(&mut bench, link, &mut server, 1000);
    assert!(request.starts_with(b"GET "), "{}", bench.io.detail);
    std::fs::write(file.path(), "nothing").unwrap();
    let refused = client_config(Trust::Authorities(Some(file.path())), None, &HostFiles::default());
    assert!(matches!(refused, Err(TlsError::CaFile { .. })));
}

/// oha #372: a certificate of `openssl req -x509` has CA:TRUE.
#[test]
fn an_authoritys_certificate_of_the_ca_file_is_trusted_as_exactly_this_servers() {
    let ca = || rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let server = Server::made(&["localhost"], ca());
    assert_eq!(server.gets_request_trusting(&server), (true, String::new()));
    let (gets_request, why) = server.gets_request_trusting(&Server::made(&["localhost"], ca()));
    assert!(!gets_request && why.contains("CaUsedAsEndEntity"), "{why}");
    let other_name = Server::made(&["example.com"], ca());
    let (gets_request, why) = other_name.gets_request_trusting(&other_name);
    assert!(!gets_request && why.contains("not valid for name"), "{why}");
    let plain = Server::made(&["localhost"], rcgen::IsCa::ExplicitNoCa);
    assert_eq!(plain.gets_request_trusting(&plain), (true, String::new()));
}

#[test]
fn a_certificate_of_version_1_is_taken_where_any_is() {
    let server = Server::version1();
    assert_eq!(server.gets_request(Trust::Anyone), (true, String::new()));
    let (gets_request, why) = server.gets_request_trusting(&server);
    assert!(!gets_request && why.contains("UnsupportedCertVersion"), "{why}");
    let (gets_request, _) = server.gets_request(Trust::Authorities(None));
    assert!(!gets_request);
}

#[test]
fn a_server_that_does_not_speak_tls_fails_the_op() {
    let mut bench = client(file_site(KeepAlive), Trust::Anyone);
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(link, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Tls));
    assert_eq!(bench.io.closed, [link]);
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.eof(link);
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Tls));
    assert!(bench.io.detail.contains("during the handshake"), "{}", bench.io.detail);
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.reset(link);
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Tls));
}

#[test]
fn a_broken_record_fails_the_op() {
    let mut server = Server::new().accept();
    let mut bench = client(file_site(KeepAlive), Trust::Anyone);
    let link = bench.issue_and_connect(file_op(SMALL));
    exchange(&mut bench, link, &mut server, 1000);
    bench.bytes(
        link,
        &[0x17, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
    );
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Tls));
    assert!(bench.io.detail.contains("TLS failed"), "{}", bench.io.detail);
}

#[test]
fn a_server_that_asks_for_a_certificate_of_the_client_gets_it() {
    let own = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    let (certificate, key) = (temp_dir.path().join("client.pem"), temp_dir.path().join("key.pem"));
    std::fs::write(&certificate, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let server_key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(server_key))
        .unwrap();
    let config = Arc::new(config);
    let ends = |identity: Option<Identity<'_>>| {
        let config_here = client_config(Trust::Anyone, identity, &HostFiles::default()).unwrap();
        let tls = TlsSite::new(config_here, server_name("localhost").unwrap());
        let mut bench = Bench::from_session(Tls::new(
            HttpSession::new(file_site(KeepAlive), Plain::Unread, OP_TIMEOUT),
            tls,
        ));
        let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
        let link = bench.issue_and_connect(file_op(SMALL));
        let request = exchange(&mut bench, link, &mut server, 1_000);
        (!request.is_empty(), server.peer_certificates().map(<[_]>::len))
    };
    assert_eq!(ends(Some(Identity { certificate: &certificate, key: &key })), (true, Some(1)));
    assert_eq!(ends(None), (false, None));
    let missing = Identity { certificate: &key, key: &key };
    let refused = client_config(Trust::Anyone, Some(missing), &HostFiles::default()).unwrap_err();
    assert!(refused.to_string().contains("no certificate in it"), "{refused}");
}
