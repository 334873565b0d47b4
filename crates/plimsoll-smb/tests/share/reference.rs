//! The reference SMB server in a process of its own, tested with smbclient and smbtorture.

use plimsoll_servers::{Builtin, Login, ServerError, ServerProcess, ServerState};
use plimsoll_testkit::nfs_peers::PeerOutput;
use plimsoll_testkit::peers::listens_on;
use plimsoll_testkit::program::{example, is_alive, kill, wait_until};
use plimsoll_testkit::smb_peers::{smbclient, smbtorture};

fn try_start(arguments: &[&str], login: Option<Login>) -> Result<ServerProcess, ServerError> {
    let arguments = arguments.iter().map(Into::into).collect();
    Builtin { arguments, login, ..Builtin::new("smb", example("serve_smb"), &[]) }.start()
}

/// A server with one user.
fn start(arguments: &[&str]) -> ServerProcess {
    try_start(arguments, Some(Login::with_new_password("ann").unwrap())).unwrap()
}

fn run(server: &ServerProcess, arguments: &[&str], commands: &str) -> Option<PeerOutput> {
    smbclient(&server.url_with_password(), arguments, commands)
}

fn text(result: &PeerOutput) -> String {
    format!("{}{}", String::from_utf8_lossy(&result.output), result.errors)
}

/// Puts, lists, gets, renames and deletes, and compares what comes back.
fn round_trip(server: &ServerProcess, arguments: &[&str]) -> Option<()> {
    let here = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_001_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let (there, back) = (here.path().join("there"), here.path().join("back"));
    std::fs::write(&there, &content).unwrap();
    let commands = format!(
        "mkdir Some; put {} Some\\a-file; ls some\\*; rename SOME\\A-FILE b; get b {}; del b; \
         rmdir some; ls",
        there.display(),
        back.display()
    );
    let result = run(server, arguments, &commands)?;
    let text = text(&result);
    assert!(result.success && text.contains("a-file") && text.contains("3000001"), "{text}");
    assert!(!text.contains("NT_STATUS"), "{text}");
    assert!(std::fs::read(back).unwrap() == content, "what came back differs");
    Some(())
}

#[test]
fn files_go_there_and_come_back_in_every_dialect() {
    let server = start(&[]);
    assert_eq!(server.url(), format!("smb://ann@{}/plimsoll", server.address));
    for dialect in ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"] {
        let (most, least) = (
            format!("--max-protocol={dialect}"),
            format!("--option=client min protocol={dialect}"),
        );
        if round_trip(&server, &[&most, &least]).is_none() {
            return;
        }
    }
    let password = &server.login.as_ref().unwrap().password;
    assert!(!server.configuration.contains(password), "{}", server.configuration);
    let pid = server.pid();
    server.stop().unwrap();
    assert!(!is_alive(pid));
    let ip = "127.0.0.2".parse().unwrap();
    let server = Builtin::new("smb", example("serve_smb"), &[]).listening_on(ip).start().unwrap();
    assert_eq!((listens_on(&server), server.address.ip()), (vec![ip], ip));
}

#[test]
fn it_signs_and_encrypts_where_the_client_wants_it() {
    let server = start(&[]);
    for protection in ["sign", "encrypt"] {
        let protection = format!("--client-protection={protection}");
        if round_trip(&server, &[&protection]).is_none() {
            return;
        }
    }
}

#[test]
fn it_insists_on_encryption_when_told_to() {
    let server = start(&["--encrypt"]);
    let Some(result) = run(&server, &["--max-protocol=SMB2"], "ls") else { return };
    assert!(!result.success, "{}", text(&result));
    round_trip(&server, &[]);
}

#[test]
fn a_directory_is_served_too() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("here-before"), "of the directory").unwrap();
    let server = start(&["--root", root.path().to_str().unwrap()]);
    let Some(result) = run(&server, &[], "ls; get here-before -") else { return };
    assert!(text(&result).contains("of the directory"), "{}", text(&result));
    // The directory's file system tells upper from lower case.
    let Some(result) = run(&server, &[], "mkdir d; rename here-before d/b; del d/b; rmdir d")
    else {
        return;
    };
    assert!(result.success && !text(&result).contains("NT_STATUS"), "{}", text(&result));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn nobody_gets_in_with_a_wrong_password_and_the_right_one_works_afterwards() {
    let server = start(&[]);
    let wrong = format!("smb://ann:wrong@{}/plimsoll", server.address);
    for _ in 0..12 {
        let Some(result) = smbclient(&wrong, &[], "ls") else { return };
        assert!(text(&result).contains("NT_STATUS_LOGON_FAILURE"), "{}", text(&result));
    }
    assert!(run(&server, &[], "ls").unwrap().success);
}

#[test]
fn without_a_user_everybody_is_a_guest() {
    let server = try_start(&[], None).unwrap();
    assert_eq!(server.url(), format!("smb://{}/plimsoll", server.address));
    round_trip(&server, &[]);
}

/// Some of Samba's own tests that a server without Windows' access control lists, extended
/// attributes and streams can pass.
#[test]
fn smbtorture_finds_files_and_directories_as_they_should_be() {
    let server = start(&[]);
    let url = server.url_with_password();
    for test in [
        "smb2.create.multi",
        "smb2.create.mkdir-dup",
        "smb2.rw.rw1",
        "smb2.rw.rw2",
        "smb2.read.eof",
        "smb2.dir.find",
        "smb2.dir.large-files",
        "smb2.rename.simple",
        "smb2.rename.msword",
        "smb2.compound.related1",
        "smb2.compound_find.compound_find_related",
        "smb2.delete-on-close-perms.READONLY",
    ] {
        let Some(result) = smbtorture(&url, test, &[]) else { return };
        assert!(result.success, "{test}\n{}", text(&result));
    }
}

#[test]
fn a_server_that_cannot_start_is_reported_with_its_last_words() {
    let message = try_start(&["--root", "/no/such/directory"], None).unwrap_err().to_string();
    assert!(message.contains("ended by itself (exit status: 1)"), "{message}");
    assert!(message.contains("/no/such/directory"), "{message}");
}

#[test]
fn a_server_that_was_killed_is_reported_with_the_signal() {
    let mut server = start(&[]);
    kill(server.pid(), "KILL");
    wait_until("the server ends", || server.state().unwrap() != ServerState::Running);
    assert!(server.check().unwrap_err().to_string().contains("signal: 9 (SIGKILL)"));
}
