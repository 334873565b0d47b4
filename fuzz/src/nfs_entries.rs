//! Decoders of ONC RPC, portmapper, MOUNT and NFS under arbitrary bytes.

use plimsoll_nfs::wire::record::{Assembler, RecordTooLong};
use plimsoll_nfs::wire::rpc::{Call, ReplyHead, ReplyOutcome};
use plimsoll_nfs::wire::xdr::{Decode, Encode, XdrIn};
use plimsoll_nfs::wire::{Path, mount, portmap, v2, v3};

/// A procedure, with the checks of its arguments and its result.
struct Line {
    program: u32,
    procedure: u32,
    request: fn(&[u8]),
    reply: fn(&[u8]),
}

/// An accepted message is encoded again to the same length, and must round-trip.
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
            // A tolerant decoder reads valid input alike.
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

/// The bytes of a hostile client. The first byte chooses a procedure, the second the length of the
/// pieces; the rest is its arguments, and a stream of calls too.
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

/// The bytes of a hostile server, in answer to the procedure that the first byte chooses.
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

/// Passes on the records of a stream, which must be the same whole and in pieces.
fn records(stream: &[u8], piece: u8, mut each: impl FnMut(&[u8])) {
    let mut whole = Vec::new();
    let ended: Result<(), RecordTooLong> = Assembler::new().push(stream, |record| {
        whole.push(record.to_vec());
        Ok(())
    });
    let mut assembler = Assembler::new();
    let mut record_index = 0;
    let ended_in_pieces = stream.chunks(usize::from(piece) + 1).try_for_each(|bytes| {
        assembler.push(bytes, |record| {
            assert_eq!(whole[record_index], record);
            record_index += 1;
            Ok(())
        })?;
        assert!(assembler.buffered_bytes() <= stream.len());
        Ok(())
    });
    assert_eq!((ended, whole.len()), (ended_in_pieces, record_index));
    whole.iter().for_each(|record| each(record));
}
