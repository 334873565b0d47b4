//! The reference web server, checked with curl.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_http::fileset::{FileSet, FileSetMarker, files_of_directory};
use plimsoll_http::host::fetch::Page;
use plimsoll_http::parameters::HttpWorkload;
use plimsoll_http::server::{BYTES_MAX, TlsSource, WebConfig, WebContent, WebServer};
use plimsoll_http::tls::{Trust, client_config};
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::marker::Marker as _;
use plimsoll_servers::delay::DelayLaw;
use plimsoll_testkit::peers::{CurlReply, curl};
use plimsoll_testkit::program::ServerThread;
use plimsoll_testkit::tls::TestCertificate;

pub(crate) struct Running {
    pub(crate) url: String,
    _serving: ServerThread,
}

impl Running {
    pub(crate) fn start(content: WebContent, tls: Option<TlsSource>, cores: Vec<u32>) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        Self::serve(WebServer::bind(&WebConfig { listen, content, cores, tls }).unwrap())
    }

    pub(crate) fn serve(server: WebServer) -> Self {
        let url = server.url();
        Self { url, _serving: ServerThread::new(move |stop| server.serve_until(stop)) }
    }

    pub(crate) fn curl(&self, arguments: &[&str], path: &str) -> Option<CurlReply> {
        let url = format!("{}{path}", self.url);
        curl(&[arguments, &[&url]].concat())
    }
}

pub(crate) fn memory() -> WebContent {
    WebContent::Memory(Arc::new(|path| match path {
        "/dir/file" => Some(Bytes::from_static(b"the content")),
        "/large" => Some(vec![7; 3 << 20].into()),
        _ => None,
    }))
}

#[test]
fn files_in_memory_and_bodies_of_any_size_arrive_whole() {
    let server = Running::start(memory(), None, vec![]);
    let Some(file) = server.curl(&[], "dir/file") else { return };
    assert_eq!((file.exit, file.output.as_slice()), (0, b"the content".as_slice()));
    assert_eq!(server.curl(&[], "large").unwrap().output, vec![7; 3 << 20]);
    for bytes in [0, 1, 1024, 100_000, BYTES_MAX] {
        let reply = server.curl(&[], &format!("bytes/{bytes}")).unwrap();
        assert_eq!((reply.exit, reply.output.len()), (0, bytes));
    }
}

#[test]
fn the_file_set_of_the_method_is_served_with_its_description() {
    let set = FileSet::new(7, 3);
    let server = Running::start(WebContent::file_set(set.clone()), None, vec![]);
    for id in files_of_directory(2) {
        let Some(reply) = server.curl(&[], &id.to_string()) else { return };
        assert!(reply.output == set.content(id), "{id}");
    }
    let marker = server.curl(&[], "plimsoll-fileset.json").unwrap();
    let marker = FileSetMarker::parse(&marker.output).unwrap();
    assert_eq!(marker.id(), set.id());
    let beyond = server.curl(&["--fail"], "dir00003/class0_1").unwrap();
    assert_eq!(beyond.exit, 22, "curl(1): a status of 400 or more");
}

#[test]
fn what_is_not_there_is_a_404_and_a_path_answers_every_method() {
    let server = Running::start(memory(), None, vec![]);
    let too_large = format!("bytes/{}", BYTES_MAX + 1);
    for (arguments, path, status) in [
        (vec![], "nothing", "404"),
        (vec![], too_large.as_str(), "404"),
        (vec![], "bytes/-1", "404"),
        (vec!["--request", "POST", "--data", "x"], "dir/file", "200"),
        (vec!["--request", "DELETE"], "bytes/3", "200"),
        (vec![], "", "200"),
    ] {
        let mut all = vec!["--output", "/dev/null", "--write-out", "%{http_code}"];
        all.extend(arguments);
        let Some(reply) = server.curl(&all, path) else { return };
        assert_eq!(String::from_utf8_lossy(&reply.output), status, "{path}");
    }
}

#[test]
fn head_gives_the_length_and_no_body() {
    let server = Running::start(memory(), None, vec![]);
    let Some(reply) = server.curl(&["--head"], "dir/file") else { return };
    let head = String::from_utf8(reply.output).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-length: 11\r\n"), "{head}");
    assert!(head.contains("\r\nserver: plimsoll/"), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn connections_are_kept_unless_the_client_wants_them_closed() {
    let server = Running::start(memory(), None, vec![]);
    let count = ["--write-out", "%{num_connects},", "--output", "/dev/null"];
    let url = format!("{}bytes/10", server.url);
    let twice = [&count[..], &[&url, "--output", "/dev/null"]].concat();
    let Some(kept) = server.curl(&twice, "bytes/10") else { return };
    assert_eq!(String::from_utf8_lossy(&kept.output), "1,0,");
    let closing = [&["--header", "Connection: close"][..], &twice].concat();
    let closed = server.curl(&closing, "bytes/10").unwrap();
    assert_eq!(String::from_utf8_lossy(&closed.output), "1,1,");
}

#[test]
fn tls_with_a_given_certificate_is_trusted_by_who_trusts_it() {
    let directory = tempfile::tempdir().unwrap();
    TestCertificate::new().write_into(directory.path());
    let certificate = directory.path().join("certificate.pem");
    let key = directory.path().join("key.pem");
    let trusted = certificate.to_str().unwrap().to_owned();
    let source = TlsSource::Files { certificate, key };
    let server = Running::start(memory(), Some(source), vec![]);
    assert!(server.url.starts_with("https://127.0.0.1:"));
    let Some(reply) = server.curl(&["--cacert", &trusted], "dir/file") else { return };
    assert_eq!((reply.exit, reply.output.as_slice()), (0, b"the content".as_slice()));
    let distrusted = server.curl(&[], "dir/file").unwrap();
    assert_eq!(distrusted.exit, 60, "curl(1): the certificate cannot be authenticated");
}

#[test]
fn tls_with_a_certificate_made_now_works_for_who_does_not_check() {
    let server = Running::start(memory(), Some(TlsSource::SelfSigned), vec![]);
    let Some(reply) = server.curl(&["--insecure"], "bytes/100000") else { return };
    assert_eq!((reply.exit, reply.output.len()), (0, 100_000));
}

#[test]
fn a_page_is_asked_over_tls_as_the_run_trusts_the_server() {
    let server = Running::start(memory(), Some(TlsSource::SelfSigned), vec![]);
    let url = TargetUrl::parse(&server.url).unwrap();
    let address = format!("{}:{}", url.host, url.port.unwrap()).parse().unwrap();
    let target = ResolvedTarget::new(url, address);
    let get = |tls_verify| {
        let workload = HttpWorkload { tls_verify, ..HttpWorkload::default() };
        Page::new(&workload, &target, "/dir/file").unwrap().get(Duration::from_secs(10))
    };
    assert_eq!(get(false).as_deref(), Some("the content"));
    assert_eq!(get(true), None, "nobody vouches for the certificate");
}

#[test]
fn what_tls_says_when_it_closes_is_no_part_of_the_last_reply() {
    let temp_dir = tempfile::tempdir().unwrap();
    let log = temp_dir.path().join("log.csv");
    let spec = "service=const:1ms,servers=1".parse().unwrap();
    let law = DelayLaw::new(spec, Some(log.clone())).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let tls = Some(TlsSource::SelfSigned);
    let config = WebConfig { listen, content: memory(), cores: vec![], tls };
    let server = Running::serve(WebServer::bind(&config).unwrap().delayed_by(Arc::clone(&law)));
    let address = server.url.trim_start_matches("https://").trim_end_matches('/');
    let name = "localhost".try_into().unwrap();
    let client = client_config(Trust::Anyone, None, &HostFiles::default()).unwrap();
    let mut tls = rustls::ClientConnection::new(client, name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut stream);
    stream.write_all(b"GET /dir/file HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"the content") {
        let mut some = [0; 512];
        let read = stream.read(&mut some).unwrap();
        reply.extend_from_slice(&some[..read]);
    }
    // The connection stays open for a while after its last reply.
    std::thread::sleep(Duration::from_millis(1_000));
    stream.sock.shutdown(Shutdown::Write).unwrap();
    let _ = stream.sock.read_to_end(&mut Vec::new());
    drop(server);
    law.write_log().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let row = text.lines().find(|line| line.starts_with(|c: char| c.is_ascii_digit())).unwrap();
    let times: Vec<u64> = row.split(',').flat_map(str::parse).collect();
    assert!(times[2] - times[1] < 800_000_000, "{text}");
}

#[test]
fn a_directory_is_served_and_nothing_above_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(directory.path().join("secret"), "above").unwrap();
    std::fs::write(root.join("file"), "below").unwrap();
    let server = Running::start(WebContent::Directory(root), None, vec![]);
    let Some(reply) = server.curl(&[], "file") else { return };
    assert_eq!(reply.output, b"below");
    let above = server.curl(&["--path-as-is"], "../secret").unwrap();
    assert!(!above.output.windows(5).any(|five| five == b"above"));
    let head = server.curl(&["--head"], "file").unwrap();
    assert!(String::from_utf8_lossy(&head.output).to_lowercase().contains("content-length: 5\r\n"));
}

#[test]
fn links_are_followed_inside_of_the_root_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir_all(root.join("inner")).unwrap();
    std::fs::create_dir(directory.path().join("outer")).unwrap();
    std::fs::write(directory.path().join("outer/secret"), "above").unwrap();
    std::fs::write(root.join("inner/file"), "below").unwrap();
    let secret = directory.path().join("outer/secret");
    for (name, text) in [
        ("absolute", secret.to_str().unwrap()),
        ("relative", "../outer/secret"),
        ("directory", "../outer"),
        ("inner/up", "../../outer/secret"),
        ("chain", "relative"),
        ("circle", "circle"),
        ("inside", "inner/file"),
        ("inner/inside", "../inner/file"),
        ("way", "inner"),
    ] {
        symlink(text, root.join(name)).unwrap();
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let server = Running::start(WebContent::Directory(root), None, vec![]);
    let status = ["--max-time", "5", "--output", "/dev/null", "--write-out", "%{http_code}"];
    for path in ["absolute", "relative", "directory/secret", "inner/up", "chain", "circle", "pipe"]
    {
        let Some(reply) = server.curl(&status, path) else { return };
        assert_eq!(String::from_utf8_lossy(&reply.output), "404", "{path}");
        let head = server.curl(&[&["--head"], &status[..]].concat(), path).unwrap();
        assert_eq!(String::from_utf8_lossy(&head.output), "404", "HEAD {path}");
    }
    for path in ["inner/file", "inside", "inner/inside", "way/file"] {
        assert_eq!(server.curl(&[], path).unwrap().output, b"below", "{path}");
    }
    let part = server.curl(&["--range", "1-2"], "inside").unwrap();
    assert_eq!(part.output, b"el");
}

#[test]
fn every_core_gets_connections_in_turn() {
    let cores = plimsoll_servers::cores::available().unwrap();
    let server = Running::start(memory(), None, cores);
    for _ in 0..4 {
        let Some(reply) = server.curl(&[], "dir/file") else { return };
        assert_eq!(reply.output, b"the content");
    }
}

#[test]
fn a_taken_address_and_a_missing_directory_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let mut config =
        WebConfig { listen, content: WebContent::only_bytes(), cores: vec![], tls: None };
    let message = WebServer::bind(&config).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot listen on {listen}: ")), "{message}");
    config.content = WebContent::Directory("/nowhere/at/all".into());
    let message = WebServer::bind(&config).unwrap_err().to_string();
    assert!(message.starts_with("cannot serve the directory /nowhere/at/all: "), "{message}");
}
