//! `managed:samba` with the real Samba, tested with smbclient.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plimsoll_servers::{Login, ServerProcess, ServerState};
use plimsoll_smb::server::samba::{self, SambaRequest, SmbEncryption, SmbSigning};
use plimsoll_testkit::nfs_peers::PeerOutput;
use plimsoll_testkit::peers::{listens_on, require_peer};
use plimsoll_testkit::program::{is_alive, kill, wait_until};
use plimsoll_testkit::smb_peers::{samba, samba_as, share_of, smbclient};

fn run(server: &ServerProcess, arguments: &[&str], commands: &str) -> Option<PeerOutput> {
    smbclient(&server.url_with_password(), arguments, commands)
}

fn text(result: &PeerOutput) -> String {
    format!("{}{}", String::from_utf8_lossy(&result.output), result.errors)
}

/// What smbclient lists in the share's root; it must succeed.
fn listing(server: &ServerProcess) -> Option<String> {
    let result = run(server, &[], "ls")?;
    assert!(result.success, "{}", text(&result));
    Some(text(&result))
}

#[test]
fn it_shares_a_directory_and_leaves_nothing_behind() {
    let core = plimsoll_servers::cores::available().unwrap()[0];
    let login = Some(Login::with_new_password("ann").unwrap());
    let ip = "127.0.0.2".parse().unwrap();
    let (cores, listen_on) = (vec![core], Some(ip));
    let request = SambaRequest { cores, listen_on, login, ..SambaRequest::default() };
    let Some(mut server) = samba_as(&request) else { return };
    assert_eq!((listens_on(&server), server.address.ip()), (vec![ip], ip));
    let (share, pids) = (share_of(&server), server.pids().unwrap());
    assert!(server.software.to_string().starts_with("Samba "), "{}", server.software);
    // Samba starts children that soon end by themselves; its first process stays.
    let status_of = |pid| std::fs::read_to_string(format!("/proc/{pid}/status"));
    assert!(status_of(server.pid()).is_ok() && pids.contains(&server.pid()), "{pids:?}");
    for status in pids.iter().filter_map(|pid| status_of(*pid).ok()) {
        assert!(status.contains(&format!("Cpus_allowed_list:\t{core}\n")), "{status}");
    }
    std::fs::write(share.join("a-file"), "from Samba").unwrap();
    let commands = "ls; get a-file -; mkdir d; rename a-file d/b; ls d/*; del d/b; rmdir d";
    if let Some(result) = run(&server, &[], commands) {
        assert!(result.success && text(&result).contains("from Samba"), "{}", text(&result));
    }
    assert_eq!(std::fs::read_dir(&share).unwrap().count(), 0);
    let password = server.login.clone().unwrap().password;
    for shown in [server.url(), server.configuration.clone(), format!("{server:?}")] {
        assert!(!shown.contains(&password), "{shown}");
    }
    assert_eq!(server.url(), format!("smb://ann@{}/share", server.address));
    server.check().unwrap();
    server.stop().unwrap();
    wait_until("all of it ends", || !pids.iter().copied().any(is_alive));
    assert!(!share.parent().unwrap().exists());
}

#[test]
fn nobody_gets_in_without_the_password() {
    let Some(server) = samba() else { return };
    let share = format!("{}/share", server.address);
    for who in ["plimsoll:wrong@", "stranger:x@", ""] {
        let Some(result) = smbclient(&format!("smb://{who}{share}"), &[], "ls") else { return };
        assert!(!result.success, "{who}: {}", text(&result));
    }
}

#[test]
fn it_listens_on_version_6_too() {
    let ip = "::1".parse().unwrap();
    let request = SambaRequest { listen_on: Some(ip), ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    assert_eq!(listens_on(&server), [ip]);
}

#[test]
fn guests_get_in_where_there_is_no_user() {
    let Some(server) = samba_as(&SambaRequest::default()) else { return };
    assert_eq!(server.url(), server.url_with_password());
    for who in ["", "stranger:x@"] {
        let url = format!("smb://{who}{}/share", server.address);
        let Some(result) = smbclient(&url, &[], "mkdir d; ls; rmdir d") else { return };
        assert!(result.success && text(&result).contains(" d "), "{}", text(&result));
    }
}

#[test]
fn two_at_the_same_time_serve_each_its_own() {
    let Some(first) = samba() else { return };
    let Some(second) = samba() else { return };
    std::fs::write(share_of(&first).join("of-the-first"), "1").unwrap();
    std::fs::write(share_of(&second).join("of-the-second"), "2").unwrap();
    let Some(of_first) = listing(&first) else { return };
    let Some(of_second) = listing(&second) else { return };
    assert!(of_first.contains("of-the-first") && !of_first.contains("of-the-second"));
    assert!(of_second.contains("of-the-second") && !of_second.contains("of-the-first"));
    drop(first);
    assert!(listing(&second).unwrap().contains("of-the-second"));
}

#[test]
fn signing_encryption_and_reading_only_are_as_asked() {
    let login = Some(Login::with_new_password("ann").unwrap());
    let strict = SambaRequest {
        login: login.clone(),
        signing: SmbSigning::Required,
        encryption: SmbEncryption::Required,
        read_only: true,
        ..SambaRequest::default()
    };
    let Some(server) = samba_as(&strict) else { return };
    let Some(result) = run(&server, &["--max-protocol=SMB2"], "ls") else { return };
    assert!(!result.success, "SMB 2 cannot encrypt: {}", text(&result));
    let result = run(&server, &[], "mkdir d").unwrap();
    assert!(text(&result).contains("NT_STATUS_ACCESS_DENIED"), "{}", text(&result));
    let lax = SambaRequest { login, encryption: SmbEncryption::Off, ..SambaRequest::default() };
    let server = samba_as(&lax).unwrap();
    let result = run(&server, &["--client-protection=encrypt"], "ls").unwrap();
    assert!(!result.success, "it must not encrypt: {}", text(&result));
    assert!(run(&server, &["--client-protection=sign"], "ls").unwrap().success);
}

#[test]
fn a_share_can_have_a_size() {
    const BYTES: u64 = 16 << 20;
    let login = Some(Login::with_new_password("ann").unwrap());
    let request = SambaRequest { share_bytes: Some(BYTES), login, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let big = tempfile::NamedTempFile::new().unwrap();
    big.as_file().set_len(2 * BYTES).unwrap();
    let put = format!("put {} big", big.path().display());
    let Some(result) = run(&server, &[], &put) else { return };
    assert!(text(&result).contains("NT_STATUS_DISK_FULL"), "{}", text(&result));
    assert!(listing(&server).is_some());
}

#[test]
fn a_wrong_option_is_answered_with_sambas_own_words() {
    if require_peer("smbd").is_none() {
        return;
    }
    let options = vec![("passdb backend".to_owned(), "nonsense".to_owned())];
    let request = SambaRequest { options: options.clone(), ..SambaRequest::default() };
    let message = samba::start(&request).unwrap_err().to_string();
    assert!(message.contains("ended by itself (exit status: 1)"), "{message}");
    assert!(message.contains("nonsense"), "{message}");
    let login = Some(Login::with_new_password("ann").unwrap());
    let request = SambaRequest { options, login, ..SambaRequest::default() };
    let message = samba::start(&request).unwrap_err().to_string();
    assert!(
        message.contains("cannot give Samba a user") && message.contains("nonsense"),
        "{message}"
    );
}

#[test]
fn a_killed_samba_is_reported_and_its_children_ended() {
    let Some(mut server) = samba() else { return };
    let pids = server.pids().unwrap();
    kill(server.pid(), "KILL");
    wait_until("Samba ends", || server.state().unwrap() != ServerState::Running);
    let message = server.check().unwrap_err().to_string();
    assert!(message.contains("ended by itself (signal: 9 (SIGKILL))"), "{message}");
    wait_until("its children end", || !pids.iter().copied().any(is_alive));
}

/// What the test below runs in a process of its own, to be killed with `kill -9`.
#[test]
#[ignore = "only run by a_killed_parent_leaves_no_samba_behind"]
fn parent_to_be_killed() {
    let Some(server) = samba() else { return };
    let pids: Vec<String> = server.pids().unwrap().iter().map(u32::to_string).collect();
    println!("\nstarted {} {}", share_of(&server).display(), pids.join(" "));
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_killed_parent_leaves_no_samba_behind() {
    if require_peer("smbd").is_none() {
        return;
    }
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "samba::parent_to_be_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let started = lines.into_iter().find(|line| line.starts_with("started ")).unwrap();
    let mut tokens = started.split(' ').skip(1);
    let share = PathBuf::from(tokens.next().unwrap());
    let pids: Vec<u32> = tokens.map(|pid| pid.parse().unwrap()).collect();
    // Not all: the process that answered the probe ends soon after.
    assert!(is_alive(pids[0]));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("Samba ends", || !pids.iter().copied().any(is_alive));
    wait_until("its directory is gone", || !share.parent().unwrap().exists());
}
