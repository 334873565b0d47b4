use proptest::prelude::*;
use smb2::crypto::{encryption, signing};

use super::*;

const SIGNING: [(SigningAlgorithm, signing::SigningAlgorithm); 3] = [
    (SigningAlgorithm::HmacSha256, signing::SigningAlgorithm::HmacSha256),
    (SigningAlgorithm::AesCmac, signing::SigningAlgorithm::AesCmac),
    (SigningAlgorithm::AesGmac, signing::SigningAlgorithm::AesGmac),
];
const CIPHERS: [(Cipher, encryption::Cipher); 4] = [
    (Cipher::Aes128Ccm, encryption::Cipher::Aes128Ccm),
    (Cipher::Aes128Gcm, encryption::Cipher::Aes128Gcm),
    (Cipher::Aes256Ccm, encryption::Cipher::Aes256Ccm),
    (Cipher::Aes256Gcm, encryption::Cipher::Aes256Gcm),
];
const KEY: [u8; 32] = *b"sixteen bytes, or thirty-two....";
const OTHER_KEY: [u8; 32] = *b"the key for the other direction.";
const SESSION: u64 = 0x1122_3344_5566_7788;
const READ: u16 = 8;
const CANCEL: u16 = 12;
const OPLOCK_BREAK: u16 = 18;

fn signing_seal(algorithm: SigningAlgorithm, role: Role) -> Seal {
    let keys = Keys {
        role,
        session_id: SESSION,
        signing: Some((algorithm, &KEY[..16])),
        encryption: None,
    };
    let mut seal = Seal::new(&keys).unwrap();
    assert!(seal.set_protection(Protection::Sign));
    seal
}

fn encrypting_seal(cipher: Cipher, role: Role) -> Seal {
    let (client, server) = (&KEY[..cipher.key_bytes()], &OTHER_KEY[..cipher.key_bytes()]);
    let (sending, receiving) = match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    };
    let keys = Keys {
        role,
        session_id: SESSION,
        signing: None,
        encryption: Some(EncryptionKeys { cipher, sending, receiving }),
    };
    let mut seal = Seal::new(&keys).unwrap();
    assert!(seal.set_protection(Protection::Encrypt));
    seal
}

fn command(code: u16, message_id: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&PROTOCOL_ID);
    bytes[4] = 64;
    bytes[12..14].copy_from_slice(&code.to_le_bytes());
    bytes[24..32].copy_from_slice(&message_id.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn with_status(mut command: Vec<u8>, status: u32) -> Vec<u8> {
    command[8..12].copy_from_slice(&status.to_le_bytes());
    command
}

fn compound(commands: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let at = out.len();
        out.extend_from_slice(command);
        if index + 1 < commands.len() {
            out.resize(out.len().next_multiple_of(8), 0);
            let next = u32::try_from(out.len() - at).unwrap();
            out[at + 20..at + 24].copy_from_slice(&next.to_le_bytes());
        }
    }
    out
}

/// What `seal` makes of a message, without its four-byte length.
fn sealed(seal: &mut Seal, message: &[u8]) -> Vec<u8> {
    let before = b"something before".to_vec();
    let mut out = before.clone();
    let length = u32::try_from(message.len()).unwrap();
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
    seal.protect(&mut out, before.len());
    assert!(out.starts_with(&before));
    let framed = &out[before.len()..];
    assert_eq!(framed[..4], u32::try_from(framed.len() - 4).unwrap().to_be_bytes());
    framed[4..].to_vec()
}

fn opened(seal: &mut Seal, message: &[u8]) -> Result<Vec<u8>, SealError> {
    seal.open(message, &mut Vec::new()).map(<[u8]>::to_vec)
}

#[test]
fn every_signature_is_the_one_another_implementation_makes() {
    for (ours, theirs) in SIGNING {
        for (code, length) in [(READ, 0), (READ, 1), (READ, 1000), (READ, 70_000), (CANCEL, 4)] {
            let message = command(code, 77, &vec![0xA5; length]);
            let mut expected = message.clone();
            expected[FLAGS_AT] |= FLAG_SIGNED;
            signing::sign_message(&mut expected, &KEY[..16], theirs, 77, code == CANCEL).unwrap();
            let seal = &mut signing_seal(ours, Role::Client);
            assert_eq!(sealed(seal, &message), expected, "{ours:?} {length}");
        }
    }
}

#[test]
fn another_implementation_accepts_what_we_sign_as_a_server() {
    for (ours, theirs) in SIGNING {
        let reply = sealed(&mut signing_seal(ours, Role::Server), &command(READ, 9, b"data"));
        signing::verify_signature(&reply, &KEY[..16], theirs, 9, false).unwrap();
        assert_eq!(opened(&mut signing_seal(ours, Role::Client), &reply), Ok(reply));
    }
}

#[test]
fn every_command_of_a_compound_is_signed_on_its_own() {
    let commands = [command(READ, 4, b"odd"), command(READ, 5, &[7; 40]), command(READ, 6, b"end")];
    for (ours, theirs) in SIGNING {
        let signed = sealed(&mut signing_seal(ours, Role::Client), &compound(&commands));
        let mut at = 0;
        for message_id in 4..=6 {
            let one = Command::parse_at(&signed, at).unwrap();
            let mut again = one.bytes().to_vec();
            signing::sign_message(&mut again, &KEY[..16], theirs, message_id, false).unwrap();
            assert_eq!(one.bytes(), again);
            at = one.end();
        }
        assert_eq!(at, signed.len());
        let reply = sealed(&mut signing_seal(ours, Role::Server), &compound(&commands));
        assert_eq!(opened(&mut signing_seal(ours, Role::Client), &reply), Ok(reply));
    }
}

#[test]
fn another_implementation_decrypts_what_we_encrypt() {
    let message = compound(&[command(READ, 1, &[1; 33]), command(READ, 2, &[2; 5000])]);
    for (ours, theirs) in CIPHERS {
        let seal = &mut encrypting_seal(ours, Role::Client);
        for _ in 0..3 {
            let encrypted = sealed(seal, &message);
            let (header, rest) = encrypted.split_at(wire::TransformHeader::BYTES);
            let key = &KEY[..ours.key_bytes()];
            let plain = encryption::decrypt_message(header, rest, key, theirs).unwrap();
            assert_eq!(plain, message, "{ours:?}");
        }
    }
}

#[test]
fn we_encrypt_to_the_same_bytes_and_decrypt_what_another_implementation_encrypts() {
    let message = command(READ, 1, &[3; 777]);
    for (ours, theirs) in CIPHERS {
        let encrypt = |nonce: u8, key: &[u8; 32]| {
            let (key, mut field) = (&key[..ours.key_bytes()], [0; 16]);
            field[0] = nonce;
            let (mut header, rest) =
                encryption::encrypt_message(&message, key, theirs, &field, SESSION).unwrap();
            header.extend_from_slice(&rest);
            header
        };
        let seal = &mut encrypting_seal(ours, Role::Client);
        assert_eq!(sealed(seal, &message), encrypt(1, &KEY));
        assert_eq!(sealed(seal, &message), encrypt(2, &KEY));
        assert_eq!(opened(seal, &encrypt(200, &OTHER_KEY)), Ok(message.clone()));
    }
}

#[test]
fn no_nonce_is_used_twice() {
    let seal = &mut encrypting_seal(Cipher::Aes128Gcm, Role::Client);
    let nonces: Vec<u64> = (0..1000)
        .map(|_| {
            let bytes = sealed(seal, &command(READ, 0, b""));
            u64::from_le_bytes(bytes[20..28].try_into().unwrap())
        })
        .collect();
    assert!(nonces.is_sorted_by(|a, b| a < b));
}

#[test]
fn an_unsigned_reply_is_refused_but_an_interim_one_or_a_break_is_not() {
    let seal = &mut signing_seal(SigningAlgorithm::AesCmac, Role::Client);
    let bare = with_status(command(READ, 3, b"x"), 0xC000_0203);
    let refused = SealError::Unsigned { command: READ, status: 0xC000_0203 };
    assert_eq!(opened(seal, &bare), Err(refused));
    let interim = with_status(command(READ, 3, b"x"), 0x103);
    assert_eq!(opened(seal, &interim), Ok(interim));
    let unasked = command(OPLOCK_BREAK, u64::MAX, b"x");
    assert_eq!(opened(seal, &unasked), Ok(unasked));
    let acknowledgement = command(OPLOCK_BREAK, 4, b"x");
    assert!(opened(seal, &acknowledgement).is_err());
    let half = compound(&[
        sealed(&mut signing_seal(SigningAlgorithm::AesCmac, Role::Server), &command(READ, 3, b"")),
        command(READ, 4, b"x"),
    ]);
    assert!(opened(seal, &half).is_err());
}

#[test]
fn a_reply_in_clear_is_refused_where_encryption_is_demanded() {
    let seal = &mut encrypting_seal(Cipher::Aes128Ccm, Role::Client);
    let bare = command(READ, 3, b"x");
    assert_eq!(opened(seal, &bare), Err(SealError::Unencrypted { command: READ, status: 0 }));
    let unasked = command(OPLOCK_BREAK, u64::MAX, b"x");
    assert_eq!(opened(seal, &unasked), Ok(unasked.clone()));
    // Not even behind a break, which may come in clear.
    let smuggled = compound(&[unasked, bare]);
    let refused = SealError::Unencrypted { command: OPLOCK_BREAK, status: 0 };
    assert_eq!(opened(seal, &smuggled), Err(refused));
}

#[test]
fn a_session_without_keys_cannot_be_told_to_protect() {
    let mut seal = Seal::none();
    assert!(!seal.set_protection(Protection::Sign));
    assert!(!seal.set_protection(Protection::Encrypt));
    assert_eq!(seal.protection(), Protection::None);
    let bare = command(READ, 3, b"x");
    assert_eq!(opened(&mut seal, &bare), Ok(bare));
}

#[test]
fn a_key_of_another_length_is_refused() {
    for (algorithm, _) in SIGNING {
        let signing = Some((algorithm, &KEY[..15]));
        let keys = Keys { role: Role::Client, session_id: 1, signing, encryption: None };
        assert!(Seal::new(&keys).is_err());
    }
    for (cipher, _) in CIPHERS {
        let wrong = &KEY[..cipher.key_bytes() - 1];
        let encryption = Some(EncryptionKeys { cipher, sending: &KEY, receiving: wrong });
        let keys = Keys { role: Role::Client, session_id: 1, signing: None, encryption };
        assert!(Seal::new(&keys).is_err());
    }
}

proptest! {
    #[test]
    fn any_flipped_bit_of_a_signed_reply_is_refused(
        which in 0..3_usize, payload in prop::collection::vec(any::<u8>(), 0..200), bit: usize,
    ) {
        let (algorithm, _) = SIGNING[which];
        let mut reply =
            sealed(&mut signing_seal(algorithm, Role::Server), &command(READ, 5, &payload));
        let bit = bit % (reply.len() * 8);
        reply[bit / 8] ^= 1 << (bit % 8);
        let seal = &mut signing_seal(algorithm, Role::Client);
        prop_assert!(opened(seal, &reply).is_err(), "bit {bit}");
    }

    #[test]
    fn any_flipped_bit_of_an_encrypted_reply_is_refused(
        which in 0..4_usize, payload in prop::collection::vec(any::<u8>(), 0..200), bit: usize,
    ) {
        let (cipher, _) = CIPHERS[which];
        let mut reply =
            sealed(&mut encrypting_seal(cipher, Role::Server), &command(READ, 5, &payload));
        let bit = bit % (reply.len() * 8);
        // A nonce is shorter than its field, but the field is authenticated whole.
        reply[bit / 8] ^= 1 << (bit % 8);
        let seal = &mut encrypting_seal(cipher, Role::Client);
        prop_assert!(opened(seal, &reply).is_err(), "bit {bit}");
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), head in 0..3) {
        let mut bytes = bytes;
        let first = [PROTOCOL_ID, TRANSFORM_ID, [0xFC, 0, 0, 0]][head as usize];
        if bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&first);
        }
        let _ = opened(&mut Seal::none(), &bytes);
        let _ = opened(&mut signing_seal(SigningAlgorithm::AesGmac, Role::Client), &bytes);
        let _ = opened(&mut encrypting_seal(Cipher::Aes256Gcm, Role::Client), &bytes);
    }
}
