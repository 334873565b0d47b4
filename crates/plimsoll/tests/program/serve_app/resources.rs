//! Addresses, directories, cores and ends.

use plimsoll_app::wire::{RequestType, Status};
use rustix::process::Signal;

use super::client::{Client, request};
use plimsoll_testkit::program::{
    Served, command, cores_of, plimsoll, result, serve, short, signal, wait_for,
};

fn is_empty(directory: &std::path::Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn ctrl_c_ends_it_well_and_removes_its_temporary_directory() {
    for which in [Signal::INT, Signal::TERM] {
        let tmp = tempfile::tempdir().unwrap();
        let mut command = serve("app", &[]);
        command.env("TMPDIR", tmp.path());
        let server = Served::start(command);
        let (mut client, _) = Client::greeted(&server, 1, 65_536);
        assert_eq!(client.ask(request(RequestType::Append), b"data").status, Status::Ok);
        assert!(!is_empty(tmp.path()));
        signal(server.child(), which);
        let ended = server.ended();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        assert!(is_empty(tmp.path()));
    }
}

#[test]
fn an_address_or_directory_it_cannot_have_is_named_with_the_next_move() {
    let server = Served::with("app", &[]);
    let address = server.address().to_string();
    let taken = ["serve", "app", "--listen", &address];
    plimsoll(&taken).check(3, &["cannot listen on", "Address already in use", "--listen"]);
    let free = ["serve", "app", "--listen", "127.0.0.1:0"];
    let at = |more: &[&str]| plimsoll(&[&free[..], more].concat());
    at(&["--metrics", &address]).check(3, &["cannot serve metrics on", "--metrics"]);
    at(&["--root", "/proc/plimsoll"]).check(3, &["cannot keep data segments in /proc", "--root"]);
    let occupied = tempfile::tempdir().unwrap();
    std::fs::write(occupied.path().join("letter.txt"), "dear").unwrap();
    let root = occupied.path().to_str().unwrap();
    at(&["--root", root]).check(3, &["is not empty", ".plimsoll-segments"]);
    at(&["--temporary-root", root]).check(3, &["is not empty"]);
    assert!(occupied.path().join("letter.txt").exists());
    std::fs::write(occupied.path().join(".plimsoll-segments"), "").unwrap();
    at(&["--temporary-root", root]).check(3, &["holds data segments", "--root"]);
    assert!(occupied.path().join("letter.txt").exists());
    at(&["--cores", "900"]).check(3, &["cannot pin to cores 900"]);
    at(&["--threads", "0"]).check(2, &["--threads", "from 1 to 4096"]);
    at(&["--calibrated", "service=const:1ms,servers=1", "--root", root]).check(2, &["--root"]);
}

#[test]
fn pinned_to_one_core_it_still_has_the_threads_of_the_method() {
    let core = plimsoll_servers::cores::available().unwrap()[0].to_string();
    let mut server = Served::with("app", &["--cores", &core, "--metrics", "127.0.0.1:0"]);
    assert!(server.line().starts_with("metrics at http://127.0.0.1:"));
    let (_client, welcome) = Client::greeted(&server, 1, 0);
    assert_eq!(welcome.service_threads, 48);
    assert_eq!(cores_of(server.child().id()), core);
    let server = Served::with("app", &["--threads", "3"]);
    assert_eq!(Client::greeted(&server, 1, 0).1.service_threads, 3);
}

#[test]
fn a_run_on_the_builtin_server_leaves_nothing_behind() {
    let (temp_dir, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "2", "--set", "profiles.quick.drain=20s"];
    let mut run = command(&short("transactions-processor", "builtin:", &bundle, &more));
    run.env("TMPDIR", tmp.path());
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ended = wait_for(run.spawn().unwrap());
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_eq!(result(&bundle)["points"][0]["errors"], serde_json::json!({}), "{ended:?}");
    assert!(is_empty(tmp.path()));
    let other = temp_dir.path().join("other");
    let managed = short("transactions", "managed:nginx", &other, &[]);
    plimsoll(&managed).check(2, &["managed:nginx", "builtin:", "app://"]);
}
