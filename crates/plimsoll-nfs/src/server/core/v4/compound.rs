//! Compounds: lists of operations on a current filehandle, executed until one fails.
//! RFC 8881 §16.2

use super::context::Compound;
use super::slots::Admission;
use super::{attributes, clients, decode, files, names};
use crate::server::core::{CallContext, NfsCore};
use crate::wire::rpc::ReplyOutcome;
use crate::wire::v4::{
    Bitmap, CompoundHead, HANDLE_BYTES_MAX, Handle4, MINOR_VERSION, Opaque, Operation, Procedure,
    SequenceArgs, Status4,
};
use crate::wire::xdr::{Decode as _, Encode as _, XdrIn, encode_opaque};

/// Operations that the specification has. RFC 8881 §17
const OPERATIONS: std::ops::RangeInclusive<u32> = 3..=58;
/// Bytes of a reply before the results of the procedure.
const RPC_BYTES: usize = 24;
/// Longest result of an operation that changes something.
const CHANGE_BYTES_MAX: usize = 512;

pub(in super::super) fn answer(
    core: &NfsCore,
    context: &CallContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(context.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => context.arguments::<()>()?,
        Procedure::Compound => {
            let mut input = context.arguments;
            let head = CompoundHead::decode(&mut input);
            let head = head.map_err(|_| ReplyOutcome::GarbageArguments)?;
            let mut results = Results::new(&head, out);
            if head.minor_version != MINOR_VERSION {
                results.status = Status4::MINOR_VERS_MISMATCH;
            } else if head.operations > 0 {
                answer_compound(core, context, (head, input), &mut results);
            }
            results.finish();
        }
    }
    Ok(())
}

/// The results of a compound as they are written.
struct Results<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    count_at: usize,
    count: u32,
    status: Status4,
    is_complete: bool,
}

impl<'o> Results<'o> {
    fn new(head: &CompoundHead<'_>, out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        Status4::OK.encode(out);
        encode_opaque(head.tag, out);
        let count_at = out.len();
        0_u32.encode(out);
        Self { out, start, count_at, count: 0, status: Status4::OK, is_complete: false }
    }

    /// Bytes of the reply so far.
    fn bytes(&self) -> usize {
        self.out.len() - self.start + RPC_BYTES
    }

    /// Adds the result of an operation; `bytes_max` is the longest reply, or the status of one
    /// that is longer.
    fn add(
        &mut self,
        number: u32,
        bytes_max: (usize, Status4),
        execute: impl FnOnce(&mut Vec<u8>) -> Result<(), Status4>,
    ) {
        self.count += 1;
        number.encode(self.out);
        let at = self.out.len();
        Status4::OK.encode(self.out);
        let mut result = execute(self.out);
        if self.bytes() > bytes_max.0 {
            result = Err(bytes_max.1);
        }
        if let Err(status) = result {
            self.out.truncate(at);
            status.encode(self.out);
            if number == Operation::SetAttr.number() {
                Bitmap::default().encode(self.out);
            }
            self.status = status;
        }
    }

    /// The answer is these bytes instead, which are complete.
    fn replace(&mut self, bytes: &[u8]) {
        self.out.truncate(self.start);
        self.out.extend_from_slice(bytes);
        self.is_complete = true;
    }

    /// Writes what is only now certain: the status of the whole, and how many results.
    fn finish(&mut self) {
        if std::mem::replace(&mut self.is_complete, true) {
            return;
        }
        let fields = [(self.start, self.status.0), (self.count_at, self.count)];
        for (at, word) in fields {
            self.out[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// No limit but that of the record.
const UNLIMITED: (usize, Status4) = (usize::MAX, Status4::REP_TOO_BIG);

/// A compound begins with SEQUENCE, or is one of few operations, alone. RFC 8881 §2.10.2
fn answer_compound(
    core: &NfsCore,
    context: &CallContext<'_>,
    (head, mut input): (CompoundHead<'_>, XdrIn<'_>),
    results: &mut Results<'_>,
) {
    let Ok(number) = input.u32() else {
        results.status = Status4::BADXDR;
        return;
    };
    let operation = Operation::from_number(number);
    if operation == Some(Operation::Sequence) {
        return answer_in_session(core, context, (head, input), results);
    }
    let Some(operation) = operation else {
        return results.add(number_of_result(number), UNLIMITED, |_| Err(unsupported(number)));
    };
    core.v4().sessions.count(0, head.operations.into());
    results.add(number, UNLIMITED, |out| {
        if !clients::is_outside_of_sessions(operation) {
            return Err(Status4::OP_NOT_IN_SESSION);
        }
        if head.operations > 1 {
            return Err(Status4::NOT_ONLY_OP);
        }
        clients::execute(core.v4(), context, operation, &mut input, out)
    });
}

/// Operations that the specification has and this server does not, and others.
fn unsupported(number: u32) -> Status4 {
    if OPERATIONS.contains(&number) { Status4::NOTSUPP } else { Status4::OP_ILLEGAL }
}

fn number_of_result(number: u32) -> u32 {
    if OPERATIONS.contains(&number) { number } else { Operation::Illegal.number() }
}

fn answer_in_session(
    core: &NfsCore,
    context: &CallContext<'_>,
    (head, mut input): (CompoundHead<'_>, XdrIn<'_>),
    results: &mut Results<'_>,
) {
    let sequence = Operation::Sequence.number();
    let mut admit = || {
        let args: SequenceArgs = decode(&mut input)?;
        let session = core.v4().admit(&args)?;
        session.check_request(context.message_bytes, head.operations, &args)?;
        Ok((args, session))
    };
    let (args, session) = match admit() {
        Ok(admitted) => admitted,
        Err(status) => return results.add(sequence, UNLIMITED, |_| Err(status)),
    };
    let mut slot = session.slot(args.slot);
    match slot.begin(args.sequence) {
        Admission::Execute { again } => core.v4().sessions.count_again(again),
        Admission::Misordered => {
            return results.add(sequence, UNLIMITED, |_| Err(Status4::SEQ_MISORDERED));
        }
        Admission::Repeated(Some(reply)) => {
            return results.replace(reply);
        }
        Admission::Repeated(None) => {
            results.add(sequence, UNLIMITED, |out| {
                core.v4().sequence_ok(&session, &args).encode(out);
                Ok(())
            });
            let next = input.u32().unwrap_or(Operation::Illegal.number());
            return results.add(next, UNLIMITED, |_| Err(Status4::RETRY_UNCACHED_REP));
        }
    }
    let bytes_max = session.reply_bytes_max(args.cache);
    results.add(sequence, bytes_max, |out| {
        core.v4().sequence_ok(&session, &args).encode(out);
        Ok(())
    });
    let mut compound = Compound {
        core,
        context,
        session: &session,
        current: None,
        saved: None,
        operations_left: head.operations,
    };
    compound.run(&mut input, bytes_max, results);
    results.finish();
    let executed = u64::from(results.count);
    slot.end(args.cache, &results.out[results.start..]);
    core.v4().sessions.count(session.number(), executed);
    session.count();
}

impl<'a> Compound<'a> {
    /// Executes the operations after SEQUENCE, until one fails.
    fn run(
        &mut self,
        input: &mut XdrIn<'a>,
        bytes_max: (usize, Status4),
        results: &mut Results<'_>,
    ) {
        self.operations_left -= 1;
        while self.operations_left > 0 && results.status == Status4::OK {
            self.operations_left -= 1;
            let Ok(number) = input.u32() else {
                results.status = Status4::BADXDR;
                return;
            };
            let Some(operation) = Operation::from_number(number) else {
                results.add(number_of_result(number), bytes_max, |_| Err(unsupported(number)));
                return;
            };
            let has_room = results.bytes() + CHANGE_BYTES_MAX <= bytes_max.0;
            results.add(number, bytes_max, |out| {
                if !has_room && changes_something(operation) {
                    return Err(bytes_max.1);
                }
                self.execute(operation, input, out)
            });
        }
    }

    fn execute(
        &mut self,
        operation: Operation,
        input: &mut XdrIn<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), Status4> {
        match operation {
            Operation::PutFh => {
                let handle: Handle4<'_> = decode(input)?;
                self.set_object(self.core.object_of(handle.0)?);
            }
            Operation::PutRootFh => self.set_object(super::PSEUDO_ROOT),
            Operation::GetFh => {
                Opaque::<HANDLE_BYTES_MAX>(&self.core.handle_of(self.object()?)).encode(out)
            }
            Operation::SaveFh => {
                self.object()?;
                self.saved = self.current;
            }
            Operation::RestoreFh => {
                self.current = Some(self.saved.ok_or(Status4::RESTOREFH)?);
            }
            Operation::Lookup => names::lookup(self, decode(input)?)?,
            Operation::GetAttr => attributes::get(self, decode(input)?, out)?,
            Operation::SetAttr => attributes::set(self, &decode(input)?, out)?,
            Operation::Access => attributes::access(self, decode(input)?, out)?,
            Operation::ReadLink => names::read_link(self, out)?,
            Operation::Read => files::read(self, &decode(input)?, out)?,
            Operation::Write => files::write(self, &decode(input)?, out)?,
            Operation::Commit => files::commit(self, decode(input)?, out)?,
            Operation::Open => files::open(self, &decode(input)?, out)?,
            Operation::Close => files::close(self, &decode(input)?, out)?,
            Operation::DelegReturn => files::return_delegation(self, decode(input)?)?,
            Operation::Create => names::create(self, &decode(input)?, out)?,
            Operation::Remove => names::remove(self, decode(input)?, out)?,
            Operation::Rename => names::rename(self, &decode(input)?, out)?,
            Operation::ReadDir => names::list(self, &decode(input)?, out)?,
            Operation::ReclaimComplete => self.session.client.complete_reclaim(decode(input)?)?,
            Operation::Sequence => return Err(Status4::SEQUENCE_POS),
            Operation::BindConnToSession => return Err(Status4::NOT_ONLY_OP),
            Operation::ExchangeId
            | Operation::CreateSession
            | Operation::DestroyClientId
            | Operation::DestroySession => self.execute_of_client(operation, input, out)?,
            Operation::Illegal => return Err(Status4::OP_ILLEGAL),
        }
        Ok(())
    }

    /// A session ends itself only at the end of a compound. RFC 8881 §18.37
    fn execute_of_client(
        &self,
        operation: Operation,
        input: &mut XdrIn<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), Status4> {
        let ends_itself =
            operation == Operation::DestroySession && input.rest().starts_with(&self.session.id);
        if ends_itself && self.operations_left > 0 {
            return Err(Status4::NOT_ONLY_OP);
        }
        clients::execute(self.core.v4(), self.context, operation, input, out)
    }
}

fn changes_something(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Open
            | Operation::Close
            | Operation::Write
            | Operation::SetAttr
            | Operation::Create
            | Operation::Remove
            | Operation::Rename
    )
}
