//! Our logon, seal and set-up's operations on a share, against the real Samba.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_protocol::content::ContentTable;
use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::logon::{
    Credentials, Dialect, Established, Identity, LogonError, Offer, Signing,
};
use plimsoll_smb::op::Content;
use plimsoll_smb::prepare::{Kind, Remote, Share};
use plimsoll_smb::seal::{Cipher, SigningAlgorithm};
use plimsoll_smb::server::samba::{SambaRequest, SmbEncryption, SmbSigning};
use plimsoll_smb::target::SmbTarget;
use plimsoll_smb::wire::status;
use plimsoll_testkit::smb_peers::{samba, samba_as, share_of};
use plimsoll_testkit::sockets::Sockets;

const SIZES: [u64; 5] = [0, 1, 65_537, 1_048_576, 2_200_003];

fn user() -> Option<Login> {
    Some(Login::with_new_password("plimsoll").unwrap())
}

fn credentials(server: &ServerProcess) -> Credentials {
    let login = server.login.clone().unwrap();
    Credentials::named(&login.user, &login.password)
}

/// An error is a message.
fn log_on_as(
    server: &ServerProcess,
    credentials: &Credentials,
    offer: &Offer,
) -> Result<Remote, String> {
    log_on_to(server, credentials, offer, "share")
}

fn log_on_to(
    server: &ServerProcess,
    credentials: &Credentials,
    offer: &Offer,
    share: &str,
) -> Result<Remote, String> {
    let target = SmbTarget {
        name: "smb://here/share".to_owned(),
        address: server.address,
        unc: format!("\\\\{}\\{share}", server.address.ip()),
        base: String::new(),
        credentials: credentials.clone(),
    };
    Remote::open(&target, offer, &content(), &Sockets, Arc::default()).map_err(|e| e.to_string())
}

fn content() -> ContentTable {
    ContentTable::new(3)
}

fn log_on(server: &ServerProcess, offer: &Offer) -> Remote {
    log_on_as(server, &credentials(server), offer).unwrap()
}

fn agreed(client: &Remote) -> &Established {
    client.established().unwrap()
}

#[track_caller]
fn refused(outcome: Result<Remote, String>, part: &str) {
    let Err(message) = outcome else { panic!("let in") };
    assert!(message.starts_with("smb://here/share: cannot log on: "), "{message}");
    assert!(message.contains(part), "{message}");
}

fn has(client: &mut Remote, path: &str, bytes: u64) {
    let stat = client.find(path).unwrap().unwrap();
    assert_eq!((stat.kind, stat.bytes), (Kind::File, bytes));
}

/// All operations of set-up, once; leaves nothing.
fn whole_life(client: &mut Remote) {
    client.make_dir("plimsoll-files").unwrap();
    client.make_dir("plimsoll-files").unwrap();
    client.make_dir("plimsoll-files\\sub").unwrap();
    let key = 1_000_001;
    for (number, bytes) in SIZES.into_iter().enumerate() {
        let path = format!("plimsoll-files\\sub\\file{number}");
        let written = AtomicU64::new(0);
        client.write(&path, bytes, Content { key }, &written).unwrap();
        assert_eq!(written.into_inner(), bytes);
        has(client, &path, bytes);
        let data = client.read(&path, 0, 3_000_000).unwrap();
        assert_eq!(data.len() as u64, bytes);
        for (at, slice) in data.chunks(65_536).enumerate() {
            assert!(slice == content().bytes(key, at as u64 * 65_536, slice.len()));
        }
        let tail = client.read(&path, bytes / 2, 10).unwrap();
        assert!(data[(bytes / 2) as usize..].starts_with(&tail));
    }
    let mut listed = client.list("plimsoll-files\\sub").unwrap().unwrap();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(listed.iter().map(|one| one.stat.bytes).collect::<Vec<_>>(), SIZES);
    client.cut("plimsoll-files\\sub\\file3", 1000).unwrap();
    client.rename("plimsoll-files\\sub\\file3", "plimsoll-files\\sub\\file0").unwrap();
    has(client, "plimsoll-files\\sub\\file0", 1000);
    client.remove("plimsoll-files\\sub\\file3", Kind::File).unwrap();
    client.write_text("plimsoll-files\\sub\\file0", "a text").unwrap();
    assert_eq!(client.read("plimsoll-files\\sub\\file0", 0, 99).unwrap(), b"a text");
    assert_eq!(client.find("plimsoll-files\\nothing\\here").unwrap(), None);
    assert_eq!(client.find("plimsoll-files").unwrap().unwrap().kind, Kind::Directory);
    assert!(client.free_bytes().unwrap().unwrap() > 0);
    let full = client.remove("plimsoll-files\\sub", Kind::Directory).unwrap_err();
    assert_eq!(full.status(), Some(status::DIRECTORY_NOT_EMPTY));
    for entry in client.list("plimsoll-files\\sub").unwrap().unwrap() {
        client.remove(&format!("plimsoll-files\\sub\\{}", entry.name), entry.stat.kind).unwrap();
    }
    for path in ["plimsoll-files\\sub", "plimsoll-files", "plimsoll-files"] {
        client.remove(path, Kind::Directory).unwrap();
    }
    assert_eq!(client.list("plimsoll-files").unwrap(), None);
    let missing = client.read("no such file", 0, 1).unwrap_err();
    assert_eq!(missing.status(), Some(status::OBJECT_NAME_NOT_FOUND));
    assert!(missing.to_string().contains("NT_STATUS_OBJECT_NAME_NOT_FOUND"), "{missing}");
}

#[test]
fn every_dialect_serves_a_whole_life_bare_and_signed() {
    let Some(server) = samba() else { return };
    for dialect in Dialect::ALL {
        for signing in [Signing::Off, Signing::WhenAsked, Signing::Required] {
            let offer = Offer { dialect_max: dialect, signing, ..Offer::default() };
            let mut client = log_on(&server, &offer);
            let session = agreed(&client);
            assert_eq!(session.dialect, dialect);
            assert_eq!(session.signing.is_some(), signing == Signing::Required);
            assert_eq!((session.guest, session.cipher), (false, None));
            assert_eq!(session.large_mtu, dialect > Dialect::V2_0_2);
            whole_life(&mut client);
        }
    }
    assert_eq!(std::fs::read_dir(share_of(&server)).unwrap().count(), 0);
}

#[test]
fn every_signing_algorithm_and_cipher_of_3_1_1_serves_a_whole_life() {
    let Some(server) = samba() else { return };
    for algorithm in
        [SigningAlgorithm::AesGmac, SigningAlgorithm::AesCmac, SigningAlgorithm::HmacSha256]
    {
        let offer = Offer {
            signing: Signing::Required,
            signing_algorithms: vec![algorithm],
            ..Offer::default()
        };
        let mut client = log_on(&server, &offer);
        assert_eq!(agreed(&client).signing, Some(algorithm));
        whole_life(&mut client);
    }
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes128Ccm, Cipher::Aes256Gcm, Cipher::Aes256Ccm] {
        let offer = Offer { encryption: true, ciphers: vec![cipher], ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert_eq!((agreed(&client).cipher, agreed(&client).signing), (Some(cipher), None));
        whole_life(&mut client);
    }
    for dialect in [Dialect::V3_0, Dialect::V3_0_2] {
        let offer = Offer { encryption: true, dialect_max: dialect, ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert_eq!(agreed(&client).cipher, Some(Cipher::Aes128Ccm));
        whole_life(&mut client);
    }
    let older = Offer { encryption: true, dialect_max: Dialect::V2_1, ..Offer::default() };
    let error = LogonError::NoCipher { dialect: "2.1", by: "the suite" };
    refused(log_on_as(&server, &credentials(&server), &older), &error.to_string());
}

#[test]
fn a_server_that_demands_signing_gets_it_or_is_refused() {
    let request =
        SambaRequest { login: user(), signing: SmbSigning::Required, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    for dialect in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert!(agreed(&client).signing.is_some());
        whole_life(&mut client);
    }
    let off = Offer { signing: Signing::Off, ..Offer::default() };
    let error = LogonError::SigningDemanded.to_string();
    refused(log_on_as(&server, &credentials(&server), &off), &error);
}

#[test]
fn a_server_that_demands_encryption_gets_it_or_is_refused() {
    let request = SambaRequest {
        login: user(),
        encryption: SmbEncryption::Required,
        ..SambaRequest::default()
    };
    let Some(server) = samba_as(&request) else { return };
    for (dialect, cipher) in [
        (Dialect::V3_0, Cipher::Aes128Ccm),
        (Dialect::V3_0_2, Cipher::Aes128Ccm),
        (Dialect::V3_1_1, Cipher::Aes128Gcm),
    ] {
        let mut client = log_on(&server, &Offer { dialect_max: dialect, ..Offer::default() });
        assert_eq!(agreed(&client).cipher, Some(cipher));
        whole_life(&mut client);
    }
    let older = Offer { dialect_max: Dialect::V2_1, ..Offer::default() };
    let refusal = log_on_as(&server, &credentials(&server), &older);
    let Err(message) = &refusal else { panic!("let in") };
    assert!(message.contains("NT_STATUS_ACCESS_DENIED"), "{message}");
    refused(refusal, "raise dialect_max");
}

#[test]
fn a_wrong_password_and_an_unknown_share_are_told_apart_with_a_next_move() {
    let Some(server) = samba() else { return };
    let offer = Offer::default();
    for dialect in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..offer.clone() };
        let wrong = Credentials::named("plimsoll", "wrong");
        refused(
            log_on_as(&server, &wrong, &offer),
            "NT_STATUS_LOGON_FAILURE to SESSION_SETUP of user \"plimsoll\"; check the user in the \
             URL and the password in PLIMSOLL_PASSWORD",
        );
        let unknown = log_on_to(&server, &credentials(&server), &offer, "nothing");
        refused(unknown, "NT_STATUS_BAD_NETWORK_NAME to TREE_CONNECT");
        let pipe = log_on_to(&server, &credentials(&server), &offer, "IPC$");
        refused(pipe, "is a printer or a pipe");
    }
}

#[test]
fn a_guest_gets_in_and_a_stranger_is_known_for_one() {
    let Some(server) = samba_as(&SambaRequest::default()) else { return };
    for dialect in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on_as(&server, &Credentials::guest(), &offer).unwrap();
        let session = agreed(&client);
        assert!(session.guest && session.identity == Identity::Guest, "{dialect:?}");
        whole_life(&mut client);
        let stranger = Credentials::named("stranger", "x");
        let mut client = log_on_as(&server, &stranger, &offer).unwrap();
        let session = agreed(&client);
        assert!(session.guest && session.identity == Identity::Named, "{dialect:?}");
        whole_life(&mut client);
        let signed = Offer { signing: Signing::Required, ..offer };
        let error = log_on_as(&server, &Credentials::guest(), &signed);
        refused(error, "a guest's session, which cannot be signed");
    }
}

#[test]
fn nobody_is_tried_where_guests_are_not_known() {
    let options = [("map to guest", "Never"), ("guest account", "root")];
    let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let request = SambaRequest { options, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    for dialect in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on_as(&server, &Credentials::guest(), &offer).unwrap();
        let session = agreed(&client);
        assert!(session.guest && session.identity == Identity::Anonymous, "{dialect:?}");
        whole_life(&mut client);
    }
}

#[test]
fn where_nothing_listens_the_error_says_so() {
    let target = SmbTarget {
        name: "smb://x/y".to_owned(),
        // Not the port of a listener that has gone: another test may have it by now.
        address: ([127, 0, 0, 1], 1).into(),
        unc: "\\\\x\\y".to_owned(),
        base: String::new(),
        credentials: Credentials::guest(),
    };
    let opened = Remote::open(&target, &Offer::default(), &content(), &Sockets, Arc::default());
    let Err(error) = opened else { panic!("somebody listens") };
    assert!(error.to_string().contains("see whether the server runs there"), "{error}");
}
