//! Decoders of ONC RPC, portmapper, MOUNT and NFS under arbitrary bytes.

use plimsoll_nfs::wire::record::Assembler;
use plimsoll_nfs::wire::rpc::{Call, ReplyHead, ReplyOutcome};
use plimsoll_nfs::wire::xdr::{Decode, Encode, XdrIn};
use plimsoll_nfs::wire::{mount, portmap, v2, v3};

/// A procedure, with what decodes its arguments and its result.
struct Line {
    program: u32,
    procedure: u32,
    request: fn(&[u8]),
    reply: fn(&[u8]),
}

/// What is accepted is written again in as many bytes, and these read back as the same.
macro_rules! decode {
    ($type:ty) => {
        |bytes| {
            let _ = <$type>::decode(&mut XdrIn::tolerant(bytes));
            let mut input = XdrIn::new(bytes);
            let Ok(message) = <$type>::decode(&mut input) else { return };
            let taken = bytes.len() - input.rest().len();
            let mut again = Vec::new();
            message.encode(&mut again);
            assert_eq!(again.len(), taken, "{message:?}");
            assert_eq!(<$type>::decode(&mut XdrIn::new(&again)), Ok(message));
            // What is right to the letter is read alike by who tolerates more.
            assert_eq!(<$type>::decode(&mut XdrIn::tolerant(bytes)), Ok(message));
        }
    };
}

macro_rules! table {
    ($( $program:ident $procedure:ident: $args:ty, $res:ty; )*) => {
        const TABLE: &[Line] = &[ $( Line {
            program: $program::PROGRAM,
            procedure: $program::Procedure::$procedure.number(),
            request: decode!($args),
            reply: decode!($res),
        }, )* ];
    };
}

crate::every_procedure!(table);

/// What a hostile client sends. The first byte chooses a procedure, the second how long the
/// pieces are; the rest is its arguments, and a stream of calls too.
pub fn nfs_request(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    (TABLE[usize::from(*choice) % TABLE.len()].request)(input);
    records(input, *piece, |record| {
        let mut rest = XdrIn::new(record);
        let Ok(call) = Call::decode(&mut rest) else { return };
        let mut again = Vec::new();
        call.encode(&mut again);
        assert_eq!(Call::decode(&mut XdrIn::new(&again)), Ok(call));
        let _ = call.credential.system();
        let is_called =
            |line: &&Line| (line.program, line.procedure) == (call.program, call.procedure);
        TABLE.iter().filter(is_called).for_each(|line| (line.request)(rest.rest()));
    });
}

/// What a hostile server sends, in answer to the procedure that the first byte chooses.
pub fn nfs_reply(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    let reply = TABLE[usize::from(*choice) % TABLE.len()].reply;
    reply(input);
    records(input, *piece, |record| {
        let mut rest = XdrIn::new(record);
        let Ok(head) = ReplyHead::decode(&mut rest) else { return };
        let mut again = Vec::new();
        head.encode(&mut again);
        assert_eq!(ReplyHead::decode(&mut XdrIn::new(&again)), Ok(head));
        if head.outcome == ReplyOutcome::Success {
            reply(rest.rest());
        }
    });
}

/// Hands on the records of a stream, which are the same whole and in pieces.
fn records(stream: &[u8], piece: u8, mut each: impl FnMut(&[u8])) {
    let mut whole = Vec::new();
    let ended = Assembler::new().push(stream, |record| whole.push(record.to_vec()));
    let mut assembler = Assembler::new();
    let mut found = 0;
    let ended_in_pieces = stream.chunks(usize::from(piece) + 1).try_for_each(|bytes| {
        assembler.push(bytes, |record| {
            assert_eq!(whole[found], record);
            found += 1;
        })?;
        assert!(assembler.held_bytes() <= stream.len());
        Ok(())
    });
    assert_eq!((ended, whole.len()), (ended_in_pieces, found));
    whole.iter().for_each(|record| each(record));
}
