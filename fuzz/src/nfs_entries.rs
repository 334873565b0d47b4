//! Decoders of ONC RPC, portmapper, MOUNT and NFS under arbitrary bytes.

use plimsoll_nfs::wire::record::{Assembler, RecordTooLong};
use plimsoll_nfs::wire::rpc::{Call, ReplyHead, ReplyOutcome};
use plimsoll_nfs::wire::xdr::{Decode, Encode, XdrIn};
use plimsoll_nfs::wire::{Name, Path, mount, portmap, v2, v3, v4};

/// A procedure, with the checks of its arguments and its result.
struct Line {
    program: u32,
    procedure: u32,
    request: fn(&[u8]),
    reply: fn(&[u8]),
}

/// An operation of NFSv4.1 or of its callbacks, with the checks of its arguments and of what it
/// answers. They return the bytes that are left.
struct Operation {
    program: u32,
    number: u32,
    arguments: fn(&[u8]) -> Option<&[u8]>,
    ok: fn(&[u8]) -> Option<&[u8]>,
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

/// What is written of an accepted part of a compound reads back and is written alike. It may be
/// less than came: a bitmap may have numbers that are 0, and some lists are not kept.
macro_rules! decode_part {
    ($type:ty) => {
        |bytes| {
            let _ = <$type>::decode(&mut XdrIn::tolerant(bytes));
            let mut input = XdrIn::new(bytes);
            let message = <$type>::decode(&mut input).ok()?;
            let [mut written, mut again] = [Vec::new(), Vec::new()];
            message.encode(&mut written);
            let mut read = XdrIn::new(&written);
            <$type>::decode(&mut read).expect("what was written").encode(&mut again);
            assert_eq!((read.finish(), &again), (Ok(()), &written), "{message:?}");
            assert_eq!(<$type>::decode(&mut XdrIn::tolerant(bytes)), Ok(message));
            Some(input.rest())
        }
    };
}

macro_rules! operations {
    ($( $list:ident $operation:ident: $args:ty, $ok:ty; )*) => {
        const OPERATIONS: &[Operation] = &[ $( Operation {
            program: operations!(@program $list),
            number: v4::$list::$operation.number(),
            arguments: decode_part!($args),
            ok: decode_part!($ok),
        }, )* ];
    };
    (@program Operation) => { v4::PROGRAM };
    (@program CallbackOperation) => { v4::CALLBACK_PROGRAM };
}

crate::every_operation!(operations);

fn operation(program: u32, number: u32) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|line| (line.program, line.number) == (program, number))
}

/// Reads the operations of a compound up to the first that is none.
fn compound(program: u32, bytes: &[u8]) -> Option<()> {
    let mut input = XdrIn::new(bytes);
    let operations = match program {
        v4::PROGRAM => v4::CompoundHead::decode(&mut input).ok()?.operations,
        _ => v4::CallbackHead::decode(&mut input).ok()?.operations,
    };
    for _ in 0..operations {
        let line = operation(program, input.u32().ok()?)?;
        input = XdrIn::new((line.arguments)(input.rest())?);
    }
    Some(())
}

/// Reads the results of a compound up to the first that failed or is none.
fn compound_reply(bytes: &[u8]) -> Option<()> {
    let mut reply = v4::CompoundReply::read(XdrIn::tolerant(bytes)).ok()?;
    for _ in 0..reply.results {
        let number = XdrIn::new(reply.input.rest()).u32().ok()?;
        let line = operation(v4::PROGRAM, number)?;
        let status = reply.next(v4::Operation::from_number(number)?).ok()?;
        if status != v4::Status4::OK {
            return None;
        }
        reply.input = XdrIn::tolerant((line.ok)(reply.input.rest())?);
    }
    Some(())
}

/// The bytes of a hostile client. The first byte chooses a procedure, the second the length of the
/// pieces; the rest is its arguments, and a stream of calls too.
pub fn nfs_request(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    (TABLE[usize::from(*choice) % TABLE.len()].request)(input);
    let _ = (OPERATIONS[usize::from(*choice) % OPERATIONS.len()].arguments)(input);
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
        if call.version == v4::VERSION || call.program == v4::CALLBACK_PROGRAM {
            let _ = compound(call.program, rest.rest());
        }
    });
}

/// The bytes of a hostile server, in answer to the procedure that the first byte chooses.
pub fn nfs_reply(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    let reply = TABLE[usize::from(*choice) % TABLE.len()].reply;
    reply(input);
    let _ = (OPERATIONS[usize::from(*choice) % OPERATIONS.len()].ok)(input);
    records(input, *piece, |record| {
        let mut rest = XdrIn::new(record);
        let Ok(head) = ReplyHead::decode(&mut rest) else { return };
        let mut again = Vec::new();
        head.encode(&mut again);
        assert_eq!(ReplyHead::decode(&mut XdrIn::new(&again)), Ok(head));
        if head.outcome == ReplyOutcome::Success {
            reply(rest.rest());
            let _ = compound_reply(rest.rest());
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
