//! The real Samba, with tshark and smbtorture as cross-checks.

use plimsoll_testkit::capture::Capture;
use plimsoll_testkit::smb_peers::{dbench_load_file, samba, share_of, smbclient, smbtorture};

const SESSION_SETUP: u16 = 1;
const WRITE: u16 = 9;
const ECHO: u16 = 13;

#[test]
fn tshark_counts_the_commands_of_a_client() {
    let Some(server) = samba() else { return };
    std::fs::write(share_of(&server).join("there"), "before").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one write").unwrap();
    let Some(capture) = Capture::start(server.address.port()) else { return };
    let commands = format!("put {} here; ls", file.path().display());
    let Some(result) = smbclient(&server.url_with_password(), &[], &commands) else { return };
    assert!(result.success, "{}", result.errors);
    let counted = capture.finish_smb();
    assert_eq!(counted.dropped, 0);
    assert_eq!((counted.count(SESSION_SETUP), counted.count(WRITE)), (2, 1), "{counted:?}");
}

#[test]
fn smbtorture_echoes_through_samba() {
    let Some(server) = samba() else { return };
    let arguments = ["--option=torture:timelimit=1", "--option=torture:looptimelimit=1"];
    let url = server.url_with_password();
    let Some(capture) = Capture::start(server.address.port()) else { return };
    let Some(result) = smbtorture(&url, "smb2.bench.echo", &arguments) else { return };
    assert!(result.success, "{}{}", String::from_utf8_lossy(&result.output), result.errors);
    assert!(capture.finish_smb().count(ECHO) > 0);
}

#[test]
fn the_load_file_of_dbench_is_there() {
    let Some(file) = dbench_load_file() else { return };
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.lines().any(|line| line.contains("NTCreateX")));
}
