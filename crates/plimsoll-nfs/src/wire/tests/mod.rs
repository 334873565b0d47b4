//! Every message encoded and decoded, whole and cut off.

mod golden;
mod golden4;
mod oracle;
#[macro_use]
mod sample;
mod sample4;

use proptest::prelude::*;

use super::xdr::{Decode, Encode, XdrError, XdrIn};
use super::{Name, Path, mount, portmap, rpc, v2, v3, v4};

pub(super) use sample::{Draw, Sample};

/// Bytes of a message.
fn encoded(message: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

/// Encodes a message, reads it back, and reads every beginning of it, which is none.
macro_rules! check_message {
    ($type:ty, $drawn:expr) => {{
        let message: $type = Sample::sample(&mut Draw::new($drawn));
        let bytes = encoded(&message);
        prop_assert_eq!(bytes.len() % 4, 0);
        let mut input = XdrIn::new(&bytes);
        let again = <$type>::decode(&mut input);
        prop_assert_eq!(again.as_ref(), Ok(&message), "{}", stringify!($type));
        prop_assert_eq!(input.finish(), Ok(()));
        prop_assert_eq!(&encoded(&again.unwrap()), &bytes);
        for end in (0..bytes.len()).rev().take(200) {
            let cut = <$type>::decode(&mut XdrIn::new(&bytes[..end]));
            prop_assert_eq!(cut, Err(XdrError::Truncated), "{}", stringify!($type));
        }
    }};
}

macro_rules! check_all {
    ($( $program:ident $procedure:ident: $args:ty, $res:ty; )*) => {
        fn check_all(drawn: &[u8]) -> Result<(), TestCaseError> {
            $(
                check_message!($args, drawn);
                check_message!($res, drawn);
            )*
            Ok(())
        }

        /// Decodes `bytes` as everything there is.
        fn decode_all(bytes: &[u8]) {
            $(
                let _ = <$args>::decode(&mut XdrIn::new(bytes));
                let _ = <$res>::decode(&mut XdrIn::new(bytes));
                let _ = <$res>::decode(&mut XdrIn::tolerant(bytes));
            )*
        }

        const TABLE: &[(&str, u32)] =
            &[ $( (stringify!($program), $program::Procedure::$procedure.number()), )* ];
    };
}

plimsoll_fuzz::every_procedure!(check_all);

macro_rules! check_operations {
    ($( $list:ident $operation:ident: $args:ty, $ok:ty; )*) => {
        fn check_operations(drawn: &[u8]) -> Result<(), TestCaseError> {
            $(
                check_message!($args, drawn);
                check_message!($ok, drawn);
            )*
            check_message!(v4::CompoundHead<'_>, drawn);
            Ok(())
        }

        /// Decodes `bytes` as every operation, and walks through them as compounds.
        fn decode_operations(bytes: &[u8]) {
            $(
                let _ = <$args>::decode(&mut XdrIn::new(bytes));
                let _ = <$args>::decode(&mut XdrIn::tolerant(bytes));
                let _ = <$ok>::decode(&mut XdrIn::new(bytes));
                let _ = <$ok>::decode(&mut XdrIn::tolerant(bytes));
            )*
            let _ = v4::RawAttributes::decode(&mut XdrIn::new(bytes));
            let _ = v4::CompoundHead::decode(&mut XdrIn::new(bytes));
            let _ = v4::CallbackHead::decode(&mut XdrIn::new(bytes));
            let Ok(mut reply) = v4::CompoundReply::read(XdrIn::tolerant(bytes)) else { return };
            for operation in v4::Operation::ALL {
                let _ = reply.next(*operation);
            }
        }

        const OPERATIONS: &[(&str, u32)] =
            &[ $( (stringify!($list), v4::$list::$operation.number()), )* ];
    };
}

plimsoll_fuzz::every_operation!(check_operations);

#[test]
fn the_table_of_procedures_is_complete() {
    let numbers = |program: &str| {
        let mut numbers: Vec<u32> =
            TABLE.iter().filter(|line| line.0 == program).map(|line| line.1).collect();
        numbers.dedup();
        numbers
    };
    assert_eq!(numbers("portmap"), Vec::from_iter(0..6));
    assert_eq!(numbers("mount"), Vec::from_iter(0..6));
    assert_eq!(numbers("v2"), Vec::from_iter(0..18));
    assert_eq!(numbers("v3"), Vec::from_iter(0..22));
    assert_eq!(v2::Procedure::ALL.len(), 18);
    assert_eq!(v3::Procedure::ALL.len(), 22);
    let operations = v4::Operation::ALL.iter().map(|one| ("Operation", one.number()));
    let callbacks = [v4::CallbackOperation::Recall, v4::CallbackOperation::Sequence];
    let callbacks = callbacks.map(|one| ("CallbackOperation", one.number()));
    assert!(OPERATIONS.iter().copied().eq(operations.chain(callbacks)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_message_reads_back_as_written(drawn in prop::collection::vec(any::<u8>(), 1..600)) {
        check_all(&drawn)?;
        check_operations(&drawn)?;
    }

    #[test]
    fn every_head_of_a_reply_reads_back_as_written(
        xid: u32,
        case in 0u32..8,
        low: u32,
        high: u32,
    ) {
        use rpc::ReplyOutcome as O;
        let outcome = match case {
            0 => O::Success,
            1 => O::ProgramUnavailable,
            2 => O::ProgramMismatch { low, high },
            3 => O::ProcedureUnavailable,
            4 => O::GarbageArguments,
            5 => O::SystemError,
            6 => O::RpcMismatch { low, high },
            _ => O::AuthError(low),
        };
        let head = rpc::ReplyHead { xid, outcome };
        let bytes = encoded(&head);
        let mut input = XdrIn::new(&bytes);
        prop_assert_eq!(rpc::ReplyHead::decode(&mut input), Ok(head));
        prop_assert_eq!(input.finish(), Ok(()));
        for end in 0..bytes.len() {
            let cut = rpc::ReplyHead::decode(&mut XdrIn::new(&bytes[..end]));
            prop_assert_eq!(cut, Err(XdrError::Truncated));
        }
        if outcome == O::Success {
            let mut fast = Vec::new();
            rpc::encode_reply_success(&mut fast, xid);
            prop_assert_eq!(fast, bytes);
        }
    }

    #[test]
    fn every_call_reads_back_as_written(
        numbers: [u32; 4],
        drawn in prop::collection::vec(any::<u8>(), 1..600),
    ) {
        let [xid, program, version, procedure] = numbers;
        let who: rpc::AuthSys<'_> = Sample::sample(&mut Draw::new(&drawn));
        let system = rpc::Credential::system(&who);
        for credential in [&system, &rpc::Credential::none()] {
            let mut bytes = Vec::new();
            rpc::encode_call(&mut bytes, xid, (program, version), procedure, credential);
            let mut input = XdrIn::new(&bytes);
            let call = rpc::Call::decode(&mut input).unwrap();
            prop_assert_eq!(input.finish(), Ok(()));
            prop_assert_eq!([call.xid, call.program, call.version, call.procedure], numbers);
            prop_assert_eq!(call.verifier, rpc::Auth::NONE);
            match call.credential.system() {
                Some(read) => prop_assert_eq!(read, Ok(who)),
                None => prop_assert_eq!(call.credential, rpc::Auth::NONE),
            }
            prop_assert_eq!(encoded(&call), bytes.clone());
            for end in 0..bytes.len() {
                prop_assert!(rpc::Call::decode(&mut XdrIn::new(&bytes[..end])).is_err());
            }
        }
    }

    #[test]
    fn no_bytes_break_a_decoder(
        numbers in prop::collection::vec(
            prop_oneof![4 => 0u32..4, 1 => 4u32..70, 1 => any::<u32>()],
            0..80,
        ),
        odd in 0usize..4,
    ) {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.truncate(bytes.len().saturating_sub(odd));
        decode_all(&bytes);
        decode_operations(&bytes);
        let _ = rpc::ReplyHead::decode(&mut XdrIn::new(&bytes));
        let _ = rpc::Call::decode(&mut XdrIn::new(&bytes));
        let _ = rpc::AuthSys::decode(&mut XdrIn::new(&bytes));
    }
}

#[test]
fn a_length_beyond_the_limit_is_refused_whatever_follows() {
    fn check<'a, T: Decode<'a> + std::fmt::Debug + PartialEq>(bytes: &'a [u8], max: u32) {
        let error = T::decode(&mut XdrIn::new(bytes)).unwrap_err();
        let length = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        assert_eq!(error, XdrError::TooLong { bytes: length, max });
    }
    let mut bytes = vec![0; 5_000_000];
    for hostile in [u32::MAX, 0x8000_0000, 1_048_577] {
        bytes[..4].copy_from_slice(&hostile.to_be_bytes());
        check::<&[u8]>(&bytes, 1_048_576);
        check::<v2::Data2<'_>>(&bytes, 8192);
        check::<v3::Handle<'_>>(&bytes, 64);
        check::<Name<'_>>(&bytes, 1024);
        check::<Path<'_>>(&bytes, 1024);
        check::<super::xdr::U32List<'_, 16>>(&bytes, 16);
        check::<mount::Flavors<'_>>(&bytes, 64);
        check::<v4::Handle4<'_>>(&bytes, 128);
        check::<v4::Opaque<'_, 1024>>(&bytes, 1024);
        check::<v4::Bitmap>(&bytes, 8);
        check::<v4::CompoundHead<'_>>(&bytes, 1024);
        check::<v4::CallbackSecurity<'_>>(&bytes, 8);
    }
}

#[test]
fn a_value_that_an_enumeration_does_not_have_is_refused() {
    for value in [0, 8, u32::MAX] {
        let error = v3::FileKind::decode(&mut XdrIn::new(&value.to_be_bytes()));
        assert_eq!(error, Err(XdrError::Value { what: "ftype3", value }));
    }
    let two = 2u32.to_be_bytes();
    let error = v3::PostOpAttr::decode(&mut XdrIn::new(&two));
    assert_eq!(error, Err(XdrError::Value { what: "bool", value: 2 }));
}

#[test]
fn a_status_without_a_name_survives() {
    let bytes = 12_345u32.to_be_bytes();
    let reply = v3::GetAttrRes::decode(&mut XdrIn::new(&bytes)).unwrap();
    assert_eq!(reply, v3::Reply3::Err(v3::Status3(12_345), ()));
    assert_eq!(reply.status().to_string(), "NFS3ERR 12345");
    assert_eq!(v3::Status3::JUKEBOX.to_string(), "NFS3ERR_JUKEBOX");
    assert_eq!(v2::Status2::WFLUSH.to_string(), "NFSERR_WFLUSH");
}
