use proptest::prelude::*;

use super::*;
use crate::wire::negotiate::{
    NegotiateContext, NegotiateContexts, NegotiateResponse, U16List, security_mode,
};
use crate::wire::session::{SessionSetupResponse, TreeConnectResponse, session_flags, share_type};

const SESSION: u64 = 0x77;
const TREE: u32 = 5;

/// A server of 3.1.1 without keys: it can receive guests, and lie.
struct Server {
    dialect: u16,
    security_mode: u16,
    contexts: bool,
    session_flags: u16,
    message_id: u64,
}

impl Server {
    fn new() -> Self {
        Self {
            dialect: 0x0311,
            security_mode: security_mode::SIGNING_ENABLED,
            contexts: true,
            session_flags: session_flags::GUEST,
            message_id: 0,
        }
    }

    fn reply(&mut self, command: Command, status: u32, body: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        Header {
            status,
            flags: 1,
            message_id: self.message_id,
            credits: 10,
            tree_id: TREE,
            session_id: SESSION,
            ..Header::new(command)
        }
        .encode(&mut out);
        body(&mut out);
        self.message_id += 1;
        out
    }

    fn negotiate(&mut self) -> Vec<u8> {
        let (salt, sha512, gmac, gcm) = ([1; 32], [1], [2], [2]);
        let contexts = [
            NegotiateContext::PreauthIntegrity {
                algorithms: U16List::Values(&sha512),
                salt: &salt,
            },
            NegotiateContext::Signing { algorithms: U16List::Values(&gmac) },
            NegotiateContext::Encryption { ciphers: U16List::Values(&gcm) },
        ];
        let contexts = if self.contexts { &contexts[..] } else { &contexts[1..] };
        let (dialect, security_mode) = (self.dialect, self.security_mode);
        self.reply(Command::Negotiate, 0, |out| {
            NegotiateResponse {
                security_mode,
                dialect,
                server_guid: [9; 16],
                capabilities: capabilities::LARGE_MTU,
                max_transact: 1 << 20,
                max_read: 1 << 30,
                max_write: 1 << 20,
                system_time: Default::default(),
                start_time: Default::default(),
                token: b"",
                contexts: NegotiateContexts::Values(contexts),
            }
            .encode(out);
        })
    }

    fn challenge(&mut self) -> Vec<u8> {
        let mut token = b"NTLMSSP\0\x02\0\0\0".to_vec();
        token.resize(20, 0);
        token.extend_from_slice(&0xe288_8215_u32.to_le_bytes());
        token.extend_from_slice(b"8 random");
        // One pair: the time; so no clock is read.
        token.resize(40, 0);
        token.extend_from_slice(&[16, 0, 16, 0, 56, 0, 0, 0]);
        token.resize(56, 0);
        token.extend_from_slice(&[7, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        self.reply(Command::SessionSetup, status::MORE_PROCESSING_REQUIRED, |out| {
            SessionSetupResponse { flags: 0, token: &token }.encode(out);
        })
    }

    fn session(&mut self) -> Vec<u8> {
        let flags = self.session_flags;
        self.reply(Command::SessionSetup, 0, |out| {
            SessionSetupResponse { flags, token: b"" }.encode(out);
        })
    }

    fn tree(&mut self, share_type: u8) -> Vec<u8> {
        self.reply(Command::TreeConnect, 0, |out| {
            TreeConnectResponse { share_type, ..TreeConnectResponse::default() }.encode(out);
        })
    }
}

fn logon(credentials: &Credentials, offer: &Offer) -> Logon {
    let request = LogonRequest { credentials, offer, unc: "\\\\host\\share", nonce: 3 };
    let mut logon = Logon::new(&request);
    let mut out = Vec::new();
    logon.start(&mut out);
    assert!(out.len() > 4 + 64 + 36);
    logon
}

fn feed(logon: &mut Logon, message: &[u8]) -> Result<LogonProgress, LogonError> {
    logon.on_message(message, &mut Vec::new())
}

/// Fed with the replies up to the one that confirms our identity.
fn up_to_session(logon: &mut Logon, server: &mut Server) -> Result<LogonProgress, LogonError> {
    for reply in [server.negotiate(), server.challenge()] {
        assert!(matches!(feed(logon, &reply).unwrap(), LogonProgress::More));
    }
    let reply = server.session();
    feed(logon, &reply)
}

#[test]
fn a_guest_reaches_the_share_with_the_limits_and_credits_the_server_gave() {
    let (mut logon, mut server) = (logon(&Credentials::guest(), &Offer::default()), Server::new());
    up_to_session(&mut logon, &mut server).unwrap();
    // An interim reply gives a credit, and nothing else happens.
    let interim = server.reply(Command::TreeConnect, status::PENDING, |_| {});
    server.message_id -= 1;
    assert!(matches!(feed(&mut logon, &interim).unwrap(), LogonProgress::More));
    let reply = server.tree(share_type::DISK);
    let LogonProgress::Done(session) = feed(&mut logon, &reply).unwrap() else { panic!() };
    assert_eq!(session.dialect, Dialect::V3_1_1);
    assert_eq!((session.session_id, session.tree_id), (SESSION, TREE));
    assert_eq!((session.next_message_id, session.credits), (4, 1 + 5 * 10 - 4));
    assert_eq!((session.max_read, session.max_write), (8 << 20, 1 << 20));
    assert!(session.guest && session.large_mtu && !session.leasing);
    assert_eq!((session.signing, session.cipher), (None, None));
    assert!(feed(&mut logon, &reply).is_err());
}

#[test]
fn a_server_that_is_at_work_for_ever_is_not_waited_for_and_its_credits_break_nothing() {
    let (mut logon, mut server) = (logon(&Credentials::guest(), &Offer::default()), Server::new());
    let mut interim = server.reply(Command::Negotiate, status::PENDING, |_| {});
    interim[14..16].copy_from_slice(&u16::MAX.to_le_bytes());
    for _ in 0..INTERIMS_MAX {
        assert!(matches!(feed(&mut logon, &interim), Ok(LogonProgress::More)));
    }
    let text = feed(&mut logon, &interim).unwrap_err().to_string();
    assert!(text.contains("NEGOTIATE holds nothing but STATUS_PENDING"), "{text}");
}

#[test]
fn a_session_whose_last_reply_is_not_signed_is_not_believed() {
    let named = Credentials::named("ann", "secret");
    let (mut logon, mut server) = (logon(&named, &Offer::default()), Server::new());
    server.session_flags = 0;
    let error = up_to_session(&mut logon, &mut server).unwrap_err();
    assert!(matches!(error, LogonError::Unsealed { step: Step::SessionSetup, .. }), "{error}");
}

#[test]
fn a_user_who_is_taken_for_a_guest_is_known_for_one() {
    let named = Credentials::named("ann", "secret");
    let (mut logon, mut server) = (logon(&named, &Offer::default()), Server::new());
    up_to_session(&mut logon, &mut server).unwrap();
    let reply = server.tree(share_type::DISK);
    let LogonProgress::Done(session) = feed(&mut logon, &reply).unwrap() else { panic!() };
    assert_eq!((session.guest, session.identity), (true, Identity::Named));
}

#[test]
fn a_server_that_does_not_fit_is_refused_with_the_reason() {
    let check = |server: Server, offer: Offer, expected: &str| {
        let (mut logon, mut server) = (logon(&Credentials::guest(), &offer), server);
        let reply = server.negotiate();
        let text = feed(&mut logon, &reply).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    };
    let older = Offer { dialect_max: Dialect::V2_1, ..Offer::default() };
    check(Server::new(), older, "0x0311, which was not offered");
    let unhashed = Server { contexts: false, ..Server::new() };
    check(unhashed, Offer::default(), "no hash algorithm");
    let strict = Server { security_mode: security_mode::SIGNING_REQUIRED, ..Server::new() };
    let off = Offer { signing: Signing::Off, ..Offer::default() };
    check(strict, off, "demands signed messages; set signing");
    let cmac = Offer { signing_algorithms: vec![SigningAlgorithm::AesCmac], ..Offer::default() };
    check(Server::new(), cmac, "a signing algorithm that was not offered");
    let ccm = Offer { encryption: true, ciphers: vec![Cipher::Aes128Ccm], ..Offer::default() };
    check(Server::new(), ccm, "without a cipher");
}

#[test]
fn what_answers_in_smb_1_is_asked_whether_it_is_a_server_of_smb_2() {
    let mut logon = logon(&Credentials::guest(), &Offer::default());
    let text = feed(&mut logon, b"\xffSMB and more").unwrap_err().to_string();
    assert!(text.ends_with("; does an SMB 2 server listen there?"), "{text}");
}

#[test]
fn a_printer_is_no_share_of_files() {
    let (mut logon, mut server) = (logon(&Credentials::guest(), &Offer::default()), Server::new());
    up_to_session(&mut logon, &mut server).unwrap();
    let reply = server.tree(share_type::PRINT);
    let error = feed(&mut logon, &reply).unwrap_err();
    assert_eq!(error, LogonError::NotADisk("\\\\host\\share".to_owned()));
}

#[test]
fn a_password_is_never_shown() {
    let named = Credentials::named("ann", "secret");
    assert!(!format!("{named:?}").contains("secret"));
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic(
        step in 0..4_usize, at: usize, byte: u8, cut in 0..200_usize, named: bool,
    ) {
        let credentials =
            if named { Credentials::named("ann", "secret") } else { Credentials::guest() };
        let (mut logon, mut server) = (logon(&credentials, &Offer::default()), Server::new());
        let replies =
            [server.negotiate(), server.challenge(), server.session(), server.tree(1)];
        for reply in &replies[..step] {
            feed(&mut logon, reply).unwrap();
        }
        let mut reply = replies[step].clone();
        let at = at % reply.len();
        reply[at] = byte;
        reply.truncate(reply.len() - cut.min(reply.len()));
        let _ = feed(&mut logon, &reply);
    }
}
