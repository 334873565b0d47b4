//! Decoders of SMB2 under arbitrary bytes.

use plimsoll_smb::op::{FileLevel, FindLevel, FsLevel};
use plimsoll_smb::wire::frame::{Assembler, FrameError};
use plimsoll_smb::wire::fscc::{
    AllInfo, BasicInfo, EaInfo, Entries, EntryList, FsAttributeInfo, FsDeviceInfo, FsFullSizeInfo,
    FsSizeInfo, FsVolumeInfo, InternalInfo, NetworkOpenInfo, SetFile, StandardInfo, Streams,
    encode_streams,
};
use plimsoll_smb::wire::info::{ValidateNegotiateRequest, ValidateNegotiateResponse};
use plimsoll_smb::wire::{
    Break, CloseRequest, CloseResponse, Command, CreateRequest, CreateResponse, EchoRequest,
    EchoResponse, ErrorResponse, FlushRequest, FlushResponse, Header, IoctlRequest, IoctlResponse,
    LockRequest, LockResponse, LogoffRequest, LogoffResponse, NegotiateRequest, NegotiateResponse,
    Parts, QueryDirectoryRequest, QueryDirectoryResponse, QueryInfoRequest, QueryInfoResponse,
    ReadRequest, ReadResponse, SessionSetupRequest, SessionSetupResponse, SetInfoRequest,
    SetInfoResponse, TransformHeader, TreeConnectRequest, TreeConnectResponse, WriteRequest,
    WriteResponse, lenient,
};

/// The bytes of a hostile client. The first byte chooses a command, the second the length of the
/// pieces; the rest is its body, and a stream of messages too.
pub fn smb_request(data: &[u8]) {
    run(data, REQUESTS);
}

/// The bytes of a hostile server in the same format, and the contents of its answers.
pub fn smb_reply(data: &[u8]) {
    run(data, REPLIES);
}

/// Runs every decoder of SMB2 on these bytes.
pub fn every_decoder(bytes: &[u8]) {
    [REQUESTS, REPLIES, OTHERS].into_iter().flatten().for_each(|check| check(bytes));
}

fn run(data: &[u8], bodies: &[Check]) {
    let [choice, piece, input @ ..] = data else { return };
    bodies[usize::from(*choice) % bodies.len()](input);
    OTHERS.iter().for_each(|check| check(input));
    let mut assembler = Assembler::new();
    for bytes in input.chunks(usize::from(*piece) + 1) {
        let each = |message: &[u8]| {
            Parts::new(message).flatten().for_each(|part| {
                bodies.iter().for_each(|check| check(part.body));
            });
            Ok::<_, FrameError>(())
        };
        if assembler.push(bytes, each).is_err() {
            return;
        }
        assert!(assembler.buffered_bytes() <= input.len(), "more is held than has arrived");
    }
}

/// Decodes; an accepted message must round-trip.
type Check = fn(&[u8]);

macro_rules! checks {
    ($($type:ty),* $(,)?) => {
        &[$(|bytes| {
            let Ok(message) = <$type>::decode(bytes) else { return };
            let mut again = Vec::new();
            message.encode(&mut again);
            assert_eq!(<$type>::decode(&again), Ok(message));
        },)*]
    };
}

/// Bodies that clients send, and their contents.
const REQUESTS: &[Check] = checks![
    Header,
    TransformHeader,
    NegotiateRequest<'_>,
    SessionSetupRequest<'_>,
    LogoffRequest,
    TreeConnectRequest<'_>,
    CreateRequest<'_>,
    CloseRequest,
    FlushRequest,
    ReadRequest,
    WriteRequest<'_>,
    LockRequest,
    IoctlRequest<'_>,
    ValidateNegotiateRequest<'_>,
    EchoRequest,
    QueryDirectoryRequest<'_>,
    QueryInfoRequest<'_>,
    SetInfoRequest<'_>,
    Break,
];

/// Bodies that servers send, and their contents.
const REPLIES: &[Check] = checks![
    Header,
    TransformHeader,
    ErrorResponse<'_>,
    NegotiateResponse<'_>,
    SessionSetupResponse<'_>,
    LogoffResponse,
    TreeConnectResponse,
    CreateResponse,
    CloseResponse,
    FlushResponse,
    ReadResponse<'_>,
    WriteResponse,
    LockResponse,
    IoctlResponse<'_>,
    ValidateNegotiateResponse,
    EchoResponse,
    QueryDirectoryResponse<'_>,
    QueryInfoResponse<'_>,
    SetInfoResponse,
    Break,
    BasicInfo,
    StandardInfo,
    InternalInfo,
    EaInfo,
    NetworkOpenInfo,
    AllInfo<'_>,
    FsVolumeInfo<'_>,
    FsSizeInfo,
    FsDeviceInfo,
    FsAttributeInfo<'_>,
    FsFullSizeInfo,
];

/// Checks of bytes other than the body of one command.
const OTHERS: &[Check] = &[entries, streams, set_file, parts, tolerated];

/// The tolerant decoder corrects input at most once: corrected input stays unchanged.
fn tolerated(bytes: &[u8]) {
    for command in Command::ALL {
        let right = lenient::body(command, bytes, &mut Default::default());
        let again = lenient::body(command, &right, &mut Default::default());
        assert_eq!(again, right);
        lenient::without_token(command, bytes, &mut Default::default());
        lenient::failed(command, bytes, &mut Default::default());
    }
    for level in FileLevel::ALL {
        let _ = lenient::check_file_info(level, bytes, &mut Default::default());
    }
    for level in FsLevel::ALL {
        let _ = lenient::check_volume_info(level, bytes, &mut Default::default());
    }
}

/// Listings end, and must round-trip.
fn entries(bytes: &[u8]) {
    for level in FindLevel::ALL {
        let decoded: Vec<_> = Entries::new(level, bytes).map_while(Result::ok).collect();
        assert!(decoded.len() <= bytes.len() / 12 + 1, "entries overlap");
        let mut again = Vec::new();
        let mut list = EntryList::new(level, &again);
        decoded.iter().for_each(|entry| list.push(entry, &mut again));
        let read: Result<Vec<_>, _> = Entries::new(level, &again).collect();
        assert_eq!(read.as_ref(), Ok(&decoded), "{level:?}");
    }
}

fn streams(bytes: &[u8]) {
    let decoded: Vec<_> = Streams::new(bytes).map_while(Result::ok).collect();
    let mut again = Vec::new();
    encode_streams(&decoded, &mut again);
    let read: Result<Vec<_>, _> = Streams::new(&again).collect();
    assert_eq!(read, Ok(decoded));
}

fn set_file(bytes: &[u8]) {
    for class in 0..64 {
        let Ok(Some(change)) = SetFile::decode(class, bytes) else { continue };
        let mut again = Vec::new();
        change.encode(&mut again);
        assert_eq!(SetFile::decode(change.class(), &again), Ok(Some(change)));
    }
}

/// The commands of a compound follow each other without gaps and cover it.
fn parts(bytes: &[u8]) {
    let mut at = 0;
    for part in Parts::new(bytes) {
        let Ok(part) = part else { return };
        assert_eq!(&bytes[at..at + part.bytes.len()], part.bytes);
        at += part.bytes.len();
    }
    assert_eq!(at, bytes.len());
}
