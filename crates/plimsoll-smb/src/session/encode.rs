//! From an op to the bytes of its commands; `docs/smb-operations.md` describes the mapping.

use plimsoll_engine::interface::{Io, Link};

use super::super::logon::Dialect;
use super::super::op::{Disposition, FileChange, FileLevel, FindLevel, FsLevel, SmbOp};
use super::super::wire::create::{
    CreateRequest, Lease, LeaseKey, LeaseVersion, OplockLevel, access, attributes, lease_state,
    options,
};
use super::super::wire::fscc::{BasicInfo, SetFile};
use super::super::wire::header::{self, Command, Header, flags};
use super::super::wire::info::{
    QueryDirectoryRequest, QueryInfoRequest, SetInfoRequest, info_type, query_directory_flags,
};
use super::super::wire::open_file::{
    CloseRequest, FlushRequest, LockRequest, ReadRequest, WriteRequest, lock_flags,
};
use super::super::wire::session::EchoRequest;
use super::super::wire::text::Text;
use super::super::wire::{FileId, frame, lenient};
use super::super::workspace::SLICE_BYTES_MAX;
use super::connection::{CREDIT_BYTES, Connected, Connection, charge};
use super::deltree::{EntryKind, Task};
use super::in_flight::{OpInFlight, Phase};
use super::{Caching, SmbSession, SmbSite, handle_of};
use plimsoll_engine::rng;

/// Room for a listing: a directory of the method's workspace fits.
const LISTING_BYTES: u32 = 65_536;
/// Room for one entry of a listing with the longest name.
const ENTRY_BYTES: u32 = 1_024;
/// Room for an answer with names in it.
const ANSWER_BYTES: u32 = 4_096;
/// Bytes of a READ at most, however many a server offers.
const PART_BYTES_MAX: u32 = 1_024 * 1_024;
/// Bytes of a READ or WRITE that every server takes, even one that reports a smaller limit.
const PART_BYTES_MIN: u32 = 4_096;
/// What a redirector requests when an application opens a file for anything.
const FILE_ACCESS: u32 = access::READ_DATA
    | access::WRITE_DATA
    | access::APPEND_DATA
    | access::READ_EA
    | access::WRITE_EA
    | access::READ_ATTRIBUTES
    | access::WRITE_ATTRIBUTES
    | access::READ_CONTROL
    | access::SYNCHRONIZE;
const DIRECTORY_ACCESS: u32 =
    access::LIST_DIRECTORY | access::READ_ATTRIBUTES | access::READ_CONTROL | access::SYNCHRONIZE;
const ASK_ACCESS: u32 = access::READ_ATTRIBUTES | access::SYNCHRONIZE;
const REMOVE_ACCESS: u32 = access::DELETE | access::READ_ATTRIBUTES | access::SYNCHRONIZE;

/// The result of trying to send an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    Sent,
    /// Too few credits.
    NoCredits,
    /// Its handle is not open (any more).
    NotOpen,
    /// The session is open, and the op needs nothing else.
    LoggedOn,
}

/// One framed message of one or several commands on its way out.
pub(super) struct Message<'o> {
    out: &'o mut Vec<u8>,
    link: Link,
    session_id: u64,
    tree_id: u32,
    charged: bool,
    /// Requested by the first command.
    credits: u16,
    message_id: u64,
    /// Where the command before begins.
    previous: Option<usize>,
}

impl<'o> Message<'o> {
    /// An empty one, whose first command has that id.
    pub(super) fn begin(out: &'o mut Vec<u8>, up: &Connected, message_id: u64) -> Self {
        out.clear();
        frame::begin(out);
        let established = &up.established;
        Self {
            out,
            link: up.link,
            session_id: established.session_id,
            tree_id: established.tree_id,
            charged: established.dialect > Dialect::V2_0_2,
            credits: up.credits.request(1),
            message_id,
            previous: None,
        }
    }

    /// Begins another command; its body is to be appended.
    pub(super) fn command(&mut self, command: Command, charge: u32) -> &mut Vec<u8> {
        let related = if self.previous.is_some() { flags::RELATED } else { 0 };
        let at = match self.previous {
            Some(previous) => header::chain(self.out, previous),
            None => self.out.len(),
        };
        let charge = u16::try_from(charge).unwrap_or(u16::MAX);
        let header = Header {
            flags: related,
            message_id: self.message_id,
            credit_charge: if self.charged { charge } else { 0 },
            credits: self.credits.max(charge),
            tree_id: self.tree_id,
            session_id: self.session_id,
            ..Header::new(command)
        };
        header.encode(self.out);
        self.message_id = self.message_id.wrapping_add(u64::from(charge));
        self.credits = 0;
        self.previous = Some(at);
        self.out
    }

    /// Signs or encrypts it and sends it.
    pub(super) fn send(self, up: &mut Connected, io: &mut impl Io) {
        frame::finish(self.out, 0);
        up.established.seal.protect(self.out, 0);
        io.send(self.link, self.out);
    }
}

impl SmbSession {
    /// The longest write that is one command.
    pub(crate) fn write_bytes_max(&self) -> u32 {
        match &self.connection {
            Connection::Up(up) => write_bytes_max(up),
            _ => PART_BYTES_MIN,
        }
    }

    /// Sends what comes next of the op in slot `at`.
    pub(super) fn send(&mut self, at: usize, io: &mut impl Io) -> Sending {
        let site = self.site.clone();
        let Connection::Up(up) = &mut self.connection else { return Sending::NoCredits };
        let Some(in_flight) = self.ops.get(at) else { return Sending::Sent };
        if let SmbOp::OpenSession = in_flight.call.op {
            return Sending::LoggedOn;
        }
        let file = match handle_of(&in_flight.call.op) {
            Some(handle) => match self.handles.get(handle) {
                Some(open) => open.file,
                None => return Sending::NotOpen,
            },
            None => FileId::RELATED,
        };
        in_flight.part = part_bytes(in_flight, up);
        let commands = in_flight.commands().len() as u32;
        let charge = charge(in_flight.part);
        let ids = charge.max(commands);
        let Some(first) = up.credits.take(ids) else { return Sending::NoCredits };
        in_flight.phase = Phase::Sent;
        let buffers = &mut *site.buffers.borrow_mut();
        let message = Message::begin(&mut buffers.out, up, first);
        let lease = lease_version(&site, up);
        let mut encoder =
            Encoder { site: &site, message, path: &mut buffers.path, file, charge, lease };
        encoder.encode(in_flight);
        encoder.message.send(up, io);
        if let SmbOp::Close { handle } = in_flight.call.op {
            self.handles.remove(handle);
        }
        self.ops.sent(at, first, commands as u8);
        self.chores.has_credits();
        Sending::Sent
    }
}

/// Most bytes of a READ or WRITE that the server, a credit and our own table of content allow.
fn part_bytes(in_flight: &OpInFlight, up: &Connected) -> u32 {
    let (length, most) = match &in_flight.call.op {
        SmbOp::Read { length, .. } => (*length, at_once(up.established.max_read, up)),
        SmbOp::Write { length, .. } => (*length, write_bytes_max(up)),
        SmbOp::WriteText { text, .. } => return text.len() as u32,
        _ => return 0,
    };
    length.saturating_sub(in_flight.moved).min(most)
}

/// Of them, those of a WRITE.
fn write_bytes_max(up: &Connected) -> u32 {
    at_once(up.established.max_write.min(SLICE_BYTES_MAX as u32), up)
}

fn at_once(most: u32, up: &Connected) -> u32 {
    let credited = if up.established.large_mtu { PART_BYTES_MAX } else { CREDIT_BYTES };
    most.min(credited).max(PART_BYTES_MIN)
}

/// Which lease a file is opened with: those of the dialect, or none.
fn lease_version(site: &SmbSite, up: &Connected) -> Option<LeaseVersion> {
    let established = &up.established;
    match (site.caching, established.leasing) {
        (Caching::Lease, true) if established.dialect < Dialect::V3_0 => Some(LeaseVersion::One),
        (Caching::Lease, true) => Some(LeaseVersion::Two),
        _ => None,
    }
}

/// Writes the commands of one op.
struct Encoder<'s, 'o> {
    site: &'s SmbSite,
    message: Message<'o>,
    path: &'o mut String,
    /// The file of the op's handle; in compounds the file that the CREATE opens.
    file: FileId,
    charge: u32,
    lease: Option<LeaseVersion>,
}

impl Encoder<'_, '_> {
    fn encode(&mut self, in_flight: &OpInFlight) {
        let (file_id, part) = (self.file, in_flight.part);
        match &in_flight.call.op {
            SmbOp::Create { path, disposition, options, .. } => {
                self.open_file(path.as_str(), *disposition, *options);
            }
            SmbOp::Close { .. } => self.close(),
            SmbOp::Flush { .. } => FlushRequest { file_id }.encode(self.command(Command::Flush)),
            SmbOp::Read { offset, .. } => {
                let (length, offset) = (part, offset + u64::from(in_flight.moved));
                let request = ReadRequest { length, offset, file_id, ..Default::default() };
                request.encode(self.command(Command::Read));
            }
            SmbOp::Write { offset, content, .. } => {
                let offset = offset + u64::from(in_flight.moved);
                let data = self.site.content.bytes(content.key, offset, part as usize);
                let request = WriteRequest { offset, file_id, data, ..Default::default() };
                request.encode(self.command(Command::Write));
            }
            SmbOp::WriteText { text, .. } => {
                let request = WriteRequest { file_id, data: text, ..Default::default() };
                request.encode(self.command(Command::Write));
            }
            SmbOp::FindNext { .. } => self.list_on("*", FindLevel::Directory, 0, 0),
            SmbOp::Lock { offset, length, .. } => {
                let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
                self.lock(*offset, *length, flags);
            }
            SmbOp::Unlock { offset, length, .. } => {
                let flags = lock_flags::UNLOCK;
                self.lock(*offset, *length, flags);
            }
            SmbOp::QueryFile { level, .. } => self.ask_file(*level),
            SmbOp::SetFile { set, .. } => {
                let change = change(*set);
                SetInfoRequest::encode_file(file_id, &change, self.command(Command::SetInfo));
            }
            SmbOp::Echo => EchoRequest {}.encode(self.command(Command::Echo)),
            _ => self.encode_compound(in_flight),
        }
    }

    fn encode_compound(&mut self, in_flight: &OpInFlight) {
        match &in_flight.call.op {
            SmbOp::Rename { path, to, replace } => {
                self.open(path.as_str(), Disposition::Open, REMOVE_ACCESS, 0);
                let name = share_path(self.path, &self.site.prefix, to.as_str());
                let change = SetFile::Rename { replace: *replace, name: Text::Utf8(name) };
                let out = self.message.command(Command::SetInfo, 1);
                SetInfoRequest::encode_file(self.file, &change, out);
            }
            SmbOp::Unlink { path } => self.remove(path.as_str(), EntryKind::File),
            SmbOp::Rmdir { path } => self.remove(path.as_str(), EntryKind::Directory),
            SmbOp::Mkdir { path } => {
                let options = options::DIRECTORY_FILE;
                self.open(path.as_str(), Disposition::Create, DIRECTORY_ACCESS, options);
            }
            SmbOp::QueryPath { path, level } => {
                self.open(path.as_str(), Disposition::Open, ASK_ACCESS, 0);
                self.ask_file(*level);
            }
            SmbOp::QueryFs { level } => {
                self.open("", Disposition::Open, ASK_ACCESS, 0);
                self.ask_volume(*level);
            }
            SmbOp::Find { directory, pattern, level, entries_max } => {
                let directory = directory.as_str();
                self.list(directory, pattern.as_str(), *level, *entries_max);
            }
            _ => {
                if let Some(tree) = &in_flight.tree {
                    match tree.task() {
                        Task::List => self.list(tree.path(), "*", FindLevel::Directory, 0),
                        Task::Remove(kind) => self.remove(tree.path(), kind),
                    }
                }
            }
        }
        self.close();
    }

    fn command(&mut self, command: Command) -> &mut Vec<u8> {
        self.message.command(command, self.charge)
    }

    /// CREATE for an application.
    fn open_file(&mut self, path: &str, disposition: Disposition, options: u32) {
        let is_directory = options & options::DIRECTORY_FILE != 0;
        let removes = options & options::DELETE_ON_CLOSE != 0;
        let desired_access = if is_directory { DIRECTORY_ACCESS } else { FILE_ACCESS }
            | if removes { access::DELETE } else { 0 };
        let name = share_path(self.path, &self.site.prefix, path);
        let key = lease_key(name);
        let state = lease_state::READ | lease_state::WRITE | lease_state::HANDLE;
        let lease = self.lease.filter(|_| !is_directory);
        let lease = lease.map(|version| Lease { key, state, version });
        let oplock = match (lease, self.site.caching) {
            (Some(_), _) => OplockLevel::Lease,
            (None, Caching::Oplock | Caching::Lease) if !is_directory => OplockLevel::Batch,
            (None, _) => OplockLevel::None,
        };
        let request = CreateRequest {
            oplock,
            options,
            attributes: if is_directory { 0 } else { attributes::NORMAL },
            lease,
            ..CreateRequest::new(Text::Utf8(name), disposition, desired_access)
        };
        request.encode(self.message.command(Command::Create, 1));
    }

    /// CREATE at the head of a compound.
    fn open(&mut self, path: &str, disposition: Disposition, desired_access: u32, options: u32) {
        let name = share_path(self.path, &self.site.prefix, path);
        let request = CreateRequest {
            options,
            ..CreateRequest::new(Text::Utf8(name), disposition, desired_access)
        };
        request.encode(self.message.command(Command::Create, 1));
    }

    fn close(&mut self) {
        let request = CloseRequest { flags: 0, file_id: self.file };
        request.encode(self.message.command(Command::Close, 1));
    }

    /// Removes an entry on CLOSE. For a file, an option of its CREATE does it. A directory that is
    /// not empty would then stay without an error, so it takes a SET_INFO.
    fn remove(&mut self, path: &str, kind: EntryKind) {
        match kind {
            EntryKind::File => {
                // A link is removed, not what it points to.
                let options = options::NON_DIRECTORY_FILE
                    | options::OPEN_REPARSE_POINT
                    | options::DELETE_ON_CLOSE;
                self.open(path, Disposition::Open, REMOVE_ACCESS, options);
            }
            EntryKind::Directory => {
                self.open(path, Disposition::Open, REMOVE_ACCESS, options::DIRECTORY_FILE);
                let change = SetFile::Disposition(true);
                let out = self.message.command(Command::SetInfo, 1);
                SetInfoRequest::encode_file(self.file, &change, out);
            }
        }
    }

    fn lock(&mut self, offset: u64, length: u64, flags: u32) {
        let request = LockRequest { file_id: self.file, offset, length, flags };
        request.encode(self.command(Command::Lock));
    }

    fn ask_file(&mut self, level: FileLevel) {
        self.ask(info_type::FILE, level as u8, lenient::file_info_bytes(level));
    }

    fn ask_volume(&mut self, level: FsLevel) {
        self.ask(info_type::FILE_SYSTEM, level as u8, lenient::volume_info_bytes(level));
    }

    fn ask(&mut self, info_type: u8, class: u8, bytes: Option<usize>) {
        let output_bytes_max = bytes.map_or(ANSWER_BYTES, |bytes| bytes as u32);
        let file_id = self.file;
        let request =
            QueryInfoRequest { info_type, class, output_bytes_max, file_id, ..Default::default() };
        request.encode(self.message.command(Command::QueryInfo, 1));
    }

    fn list(&mut self, directory: &str, pattern: &str, level: FindLevel, entries_max: u32) {
        self.open(directory, Disposition::Open, DIRECTORY_ACCESS, options::DIRECTORY_FILE);
        self.list_on(pattern, level, entries_max, query_directory_flags::RESTART_SCANS);
    }

    /// A part of the listing of what is open.
    fn list_on(&mut self, pattern: &str, level: FindLevel, entries_max: u32, flags: u8) {
        let single = match entries_max {
            1 => query_directory_flags::RETURN_SINGLE_ENTRY,
            _ => 0,
        };
        let request = QueryDirectoryRequest {
            class: level as u8,
            flags: flags | single,
            file_index: 0,
            file_id: self.file,
            pattern: Text::Utf8(pattern),
            output_bytes_max: if single != 0 { ENTRY_BYTES } else { LISTING_BYTES },
        };
        request.encode(self.message.command(Command::QueryDirectory, 1));
    }
}

fn change(set: FileChange) -> SetFile<'static> {
    match set {
        // Zeros leave everything as it is.
        FileChange::Basic => SetFile::Basic(BasicInfo::default()),
        FileChange::EndOfFile(bytes) => SetFile::EndOfFile(bytes),
        FileChange::Allocation(bytes) => SetFile::Allocation(bytes),
        FileChange::Disposition(removed) => SetFile::Disposition(removed),
    }
}

/// A path of the script's as the share has it.
fn share_path<'p>(out: &'p mut String, prefix: &str, path: &'p str) -> &'p str {
    if prefix.is_empty() {
        return path;
    }
    out.clear();
    out.push_str(prefix);
    if !path.is_empty() {
        out.push('\\');
        out.push_str(path);
    }
    out
}

/// Opens of the same file have the same key, so that they do not break each other's lease.
pub(super) fn lease_key(name: &str) -> LeaseKey {
    let mut hash = [0x6c65_6173, 0x6b65_7973];
    for chunk in name.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        // Servers tell names apart without regard to case.
        bytes.make_ascii_lowercase();
        hash = hash.map(|word| rng::key(&[word, u64::from_le_bytes(bytes)]));
    }
    let mut key = [0; 16];
    key[..8].copy_from_slice(&hash[0].to_le_bytes());
    key[8..].copy_from_slice(&hash[1].to_le_bytes());
    key
}
