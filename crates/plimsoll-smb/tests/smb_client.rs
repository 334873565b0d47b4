//! Our logon, seal and set-up client against the real Samba.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "smb_client/sockets.rs"]
mod sockets;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_protocol::net::SetupError;
use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::client::{SmbClient, SmbError};
use plimsoll_smb::logon::{
    Credentials, Dialect, Identity, LogonError, LogonRequest, Offer, Signing, Step,
};
use plimsoll_smb::seal::{Cipher, SigningAlgorithm};
use plimsoll_smb::server::samba::{SambaRequest, SmbEncryption, SmbSigning};
use plimsoll_smb::wire::status;
use plimsoll_testkit::smb_peers::{samba, samba_as, share_of};
use sockets::Sockets;

const SIZES: [u64; 5] = [0, 1, 65_537, 1_048_576, 2_200_003];

fn user() -> Option<Login> {
    Some(Login::with_new_password("plimsoll").unwrap())
}

fn credentials(server: &ServerProcess) -> Credentials {
    let login = server.login.clone().unwrap();
    Credentials::named(&login.user, &login.password)
}

fn log_on_as(
    server: &ServerProcess,
    credentials: &Credentials,
    offer: &Offer,
) -> Result<SmbClient, SmbError> {
    log_on_to(server, credentials, offer, "share")
}

fn log_on_to(
    server: &ServerProcess,
    credentials: &Credentials,
    offer: &Offer,
    share: &str,
) -> Result<SmbClient, SmbError> {
    let unc = format!("\\\\{}\\{share}", server.address.ip());
    let request = LogonRequest { credentials, offer, unc: &unc, nonce: 7 };
    SmbClient::logon(&Sockets, server.address, &request, Arc::new(AtomicBool::new(false)))
}

fn log_on(server: &ServerProcess, offer: &Offer) -> SmbClient {
    log_on_as(server, &credentials(server), offer).unwrap()
}

fn refused(outcome: Result<SmbClient, SmbError>) -> LogonError {
    match outcome {
        Err(SmbError::Logon(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(client) => panic!("let in: {:?}", client.session()),
    }
}

fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Everything the client can do, once; leaves nothing.
fn whole_life(client: &mut SmbClient) {
    client.make_dir("plimsoll-files").unwrap();
    client.make_dir("plimsoll-files").unwrap();
    client.make_dir("plimsoll-files\\sub").unwrap();
    for (number, bytes) in SIZES.into_iter().enumerate() {
        let path = format!("plimsoll-files\\sub\\file{number}");
        let data = pattern(bytes);
        let file = client.make_file(&path).unwrap();
        client.write(file.file_id, 0, &data).unwrap();
        client.flush(file.file_id).unwrap();
        client.close(file.file_id).unwrap();
        assert_eq!(client.file_bytes(&path).unwrap(), bytes);
        let file = client.open_to_read(&path).unwrap();
        assert_eq!(file.bytes, bytes);
        assert!(client.read(file.file_id, 0, 3_000_000).unwrap() == data);
        let tail = client.read(file.file_id, bytes / 2, 10).unwrap();
        assert!(data[(bytes / 2) as usize..].starts_with(&tail));
        client.close(file.file_id).unwrap();
    }
    let mut listed = client.list("plimsoll-files\\sub").unwrap().unwrap();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(listed.iter().map(|one| one.bytes).collect::<Vec<_>>(), SIZES);
    client.cut("plimsoll-files\\sub\\file3", 1000).unwrap();
    client.rename("plimsoll-files\\sub\\file3", "plimsoll-files\\sub\\file0").unwrap();
    assert_eq!(client.file_bytes("plimsoll-files\\sub\\file0").unwrap(), 1000);
    assert!(!client.delete_file("plimsoll-files\\sub\\file3").unwrap());
    assert_eq!(client.find("plimsoll-files\\nothing\\here").unwrap(), None);
    assert!(client.find("plimsoll-files").unwrap().unwrap().is_directory);
    let space = client.space().unwrap();
    assert!(0 < space.available_bytes && space.available_bytes <= space.total_bytes);
    let full = client.delete_dir("plimsoll-files\\sub").unwrap_err();
    assert_eq!(full.status(), Some(status::DIRECTORY_NOT_EMPTY));
    assert_eq!(client.delete_tree("plimsoll-files").unwrap(), SIZES.len() as u64 - 1);
    assert_eq!(client.list("plimsoll-files").unwrap(), None);
    let missing = client.open_to_read("no such file").unwrap_err();
    assert_eq!(missing.status(), Some(status::OBJECT_NAME_NOT_FOUND));
    assert!(missing.to_string().contains("NT_STATUS_OBJECT_NAME_NOT_FOUND"), "{missing}");
}

#[test]
fn every_dialect_serves_a_whole_life_bare_and_signed() {
    let Some(server) = samba() else { return };
    for (_, dialect) in Dialect::ALL {
        for signing in [Signing::Off, Signing::WhenAsked, Signing::Required] {
            let offer = Offer { dialect_max: dialect, signing, ..Offer::default() };
            let mut client = log_on(&server, &offer);
            let session = client.session();
            assert_eq!(session.dialect, dialect);
            assert_eq!(session.signing.is_some(), signing == Signing::Required);
            assert_eq!((session.guest, session.cipher), (false, None));
            assert_eq!(session.large_mtu, dialect > Dialect::V2_0_2);
            whole_life(&mut client);
            client.disconnect();
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
        assert_eq!(client.session().signing, Some(algorithm));
        whole_life(&mut client);
    }
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes128Ccm, Cipher::Aes256Gcm, Cipher::Aes256Ccm] {
        let offer = Offer { encryption: true, ciphers: vec![cipher], ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert_eq!((client.session().cipher, client.session().signing), (Some(cipher), None));
        whole_life(&mut client);
    }
    for dialect in [Dialect::V3_0, Dialect::V3_0_2] {
        let offer = Offer { encryption: true, dialect_max: dialect, ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert_eq!(client.session().cipher, Some(Cipher::Aes128Ccm));
        whole_life(&mut client);
    }
    let older = Offer { encryption: true, dialect_max: Dialect::V2_1, ..Offer::default() };
    let error = refused(log_on_as(&server, &credentials(&server), &older));
    assert!(matches!(error, LogonError::NoCipher { .. }), "{error}");
}

#[test]
fn a_server_that_demands_signing_gets_it_or_is_refused() {
    let request =
        SambaRequest { login: user(), signing: SmbSigning::Required, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    for (_, dialect) in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on(&server, &offer);
        assert!(client.session().signing.is_some());
        whole_life(&mut client);
    }
    let off = Offer { signing: Signing::Off, ..Offer::default() };
    let error = refused(log_on_as(&server, &credentials(&server), &off));
    assert_eq!(error, LogonError::SigningDemanded);
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
        assert_eq!(client.session().cipher, Some(cipher));
        whole_life(&mut client);
    }
    let older = Offer { dialect_max: Dialect::V2_1, ..Offer::default() };
    let error = refused(log_on_as(&server, &credentials(&server), &older));
    assert_eq!(error.status(), Some(status::ACCESS_DENIED));
    assert!(error.to_string().contains("raise dialect_max"), "{error}");
}

#[test]
fn a_wrong_password_and_an_unknown_share_are_told_apart_with_a_next_move() {
    let Some(server) = samba() else { return };
    let offer = Offer::default();
    for (_, dialect) in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..offer.clone() };
        let wrong = Credentials::named("plimsoll", "wrong");
        let error = refused(log_on_as(&server, &wrong, &offer));
        assert!(
            matches!(error, LogonError::Refused { step: Step::SessionSetup, .. }),
            "{dialect:?}: {error}"
        );
        assert_eq!(error.status(), Some(status::LOGON_FAILURE));
        let unknown = refused(log_on_to(&server, &credentials(&server), &offer, "nothing"));
        assert!(matches!(unknown, LogonError::Refused { step: Step::TreeConnect, .. }));
        assert_eq!(unknown.status(), Some(status::BAD_NETWORK_NAME));
        let pipe = refused(log_on_to(&server, &credentials(&server), &offer, "IPC$"));
        assert!(matches!(pipe, LogonError::NotADisk(_)), "{pipe}");
    }
    let error = log_on_as(&server, &Credentials::named("plimsoll", "wrong"), &offer).err().unwrap();
    let SetupError::Unusable(text) = error.unable_to("log on", "smb://here/share") else {
        panic!("another class");
    };
    assert_eq!(
        text,
        "smb://here/share: cannot log on: NT_STATUS_LOGON_FAILURE to SESSION_SETUP of user \
         \"plimsoll\"; check the user in the URL and the password in PLIMSOLL_PASSWORD"
    );
}

#[test]
fn a_guest_gets_in_and_a_stranger_is_known_for_one() {
    let Some(server) = samba_as(&SambaRequest::default()) else { return };
    for (_, dialect) in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on_as(&server, &Credentials::guest(), &offer).unwrap();
        let session = client.session();
        assert!(session.guest && session.identity == Identity::Guest, "{dialect:?}");
        whole_life(&mut client);
        let stranger = Credentials::named("stranger", "x");
        let mut client = log_on_as(&server, &stranger, &offer).unwrap();
        let session = client.session();
        assert!(session.guest && session.identity == Identity::Named, "{dialect:?}");
        whole_life(&mut client);
        let signed = Offer { signing: Signing::Required, ..offer };
        let error = refused(log_on_as(&server, &Credentials::guest(), &signed));
        assert!(matches!(error, LogonError::Keyless { wish: "signed", .. }), "{error}");
    }
}

#[test]
fn nobody_is_tried_where_guests_are_not_known() {
    let options = [("map to guest", "Never"), ("guest account", "root")];
    let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let request = SambaRequest { options, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    for (_, dialect) in Dialect::ALL {
        let offer = Offer { dialect_max: dialect, ..Offer::default() };
        let mut client = log_on_as(&server, &Credentials::guest(), &offer).unwrap();
        let session = client.session();
        assert!(session.guest && session.identity == Identity::Anonymous, "{dialect:?}");
        whole_life(&mut client);
    }
}

#[test]
fn where_nothing_listens_the_error_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (credentials, offer) = (Credentials::guest(), Offer::default());
    let request =
        LogonRequest { credentials: &credentials, offer: &offer, unc: "\\\\x\\y", nonce: 1 };
    let error = SmbClient::logon(&Sockets, address, &request, Arc::default()).err().unwrap();
    let text = error.unable_to("log on", "smb://x/y").to_string();
    assert!(text.contains("see whether the server runs there"), "{text}");
}
