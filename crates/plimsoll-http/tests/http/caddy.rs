//! `managed:caddy` with the real Caddy.

use plimsoll_http::server::caddy::{self, CaddyRequest};
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_testkit::peers::{curl, listens_on, require_peer};
use plimsoll_testkit::program::{cores_of, is_alive};

#[test]
fn it_serves_a_directory_on_its_core_and_leaves_nothing_behind() {
    if require_peer("caddy").is_none() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "from caddy").unwrap();
    let cores = vec![plimsoll_servers::cores::available().unwrap()[0]];
    let request = |listen_on| CaddyRequest {
        listen_on,
        root: root.path().to_owned(),
        cores: cores.clone(),
        search: None,
        remove_when_killed: None,
        suffix: None,
    };
    for ip in ["127.0.0.2", "::1"].map(|ip| ip.parse().unwrap()) {
        assert_eq!(listens_on(&caddy::start(&request(ip)).unwrap()), [ip]);
    }
    let mut server = caddy::start(&request(LOOPBACK)).unwrap();
    let pids = server.pids().unwrap();
    for pid in &pids {
        assert_eq!(cores_of(*pid), cores[0].to_string());
    }
    assert!(server.software.to_string().starts_with("Caddy 2."), "{}", server.software);
    if let Some(reply) = curl(&[&format!("{}file", server.url())]) {
        assert_eq!((reply.exit, reply.output.as_slice()), (0, b"from caddy".as_slice()));
    }
    server.check().unwrap();
    let directory = |pid: &u32| format!("/proc/{pid}/cmdline");
    let line = pids.iter().filter_map(|pid| std::fs::read(directory(pid)).ok()).flatten();
    let line = String::from_utf8(line.collect()).unwrap();
    let file = line.split(['\0', ' ']).find(|part| part.ends_with("Caddyfile")).unwrap().to_owned();
    assert!(std::path::Path::new(&file).exists(), "{file}");
    assert!(server.stop().unwrap().success());
    assert!(!pids.into_iter().any(is_alive));
    assert!(!std::path::Path::new(&file).exists());
}
