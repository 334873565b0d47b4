//! A file server in memory that answers as scripted: it keeps account of message ids and credits,
//! and hands out its replies one by one, so that a test may send them in any order, any piece.

use std::collections::BTreeMap;

use crate::op::{Disposition, FileLevel, FindLevel, FsLevel};
use crate::wire::create::{
    CreateAction, CreateRequest, CreateResponse, OplockLevel, attributes, options,
};
use crate::wire::fscc::{
    AllInfo, BasicInfo, EaInfo, Entry, EntryList, FsAttributeInfo, FsDeviceInfo, FsFullSizeInfo,
    FsSizeInfo, FsVolumeInfo, InternalInfo, NetworkOpenInfo, SetFile, StandardInfo,
};
use crate::wire::header::{Header, Part, Parts, flags};
use crate::wire::open_file::{CloseRequest, CloseResponse, FlushRequest, FlushResponse};
use crate::wire::{
    Break, Command, EchoResponse, ErrorResponse, FileId, FileTime, LockRequest, LockResponse,
    QueryDirectoryRequest, QueryDirectoryResponse, QueryInfoRequest, QueryInfoResponse,
    ReadRequest, ReadResponse, SetInfoRequest, SetInfoResponse, Text, WriteRequest, WriteResponse,
    status,
};

/// Ids of session and share.
pub(super) const SESSION: u64 = 0x5e55;
pub(super) const TREE: u32 = 7;

/// A reply on its way.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub header: Header,
    pub body: Vec<u8>,
}

impl Reply {
    /// Header and body.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.header.encode(&mut out);
        out.extend_from_slice(&self.body);
        out
    }

    /// Another status than the server gave.
    pub(super) fn with_status(mut self, status: u32) -> Self {
        self.header.status = status;
        if status::is_failure(status) {
            self.body = error_body();
        }
        self
    }

    /// What comes before it when the server takes its time.
    pub(super) fn interim(&self) -> Self {
        let mut interim = self.clone().with_status(status::PENDING);
        interim.body = error_body();
        interim.header.async_id = Some(self.header.message_id + 1_000);
        interim
    }
}

pub(super) fn error_body() -> Vec<u8> {
    let mut body = Vec::new();
    ErrorResponse::default().encode(&mut body);
    body
}

struct Open {
    path: String,
    removes: bool,
}

/// The server.
pub(super) struct Server {
    /// Contents by path; `None` is a directory.
    pub files: BTreeMap<String, Option<Vec<u8>>>,
    opens: BTreeMap<u64, Open>,
    opens_so_far: u64,
    /// Ids up to this may be used.
    pub window_end: u64,
    pub next_id: u64,
    /// Credits given with a reply at most.
    pub grants_max: u16,
    /// What is granted to those who ask.
    pub grants_oplocks: bool,
    /// Commands that came, by name.
    pub commands: Vec<Command>,
    /// Broken oplocks that were acknowledged.
    pub acknowledged: Vec<Break>,
}

type Answer = Result<Vec<u8>, u32>;

impl Server {
    pub(super) fn new(next_id: u64, credits: u32) -> Self {
        let files = BTreeMap::from([(String::new(), None)]);
        Self {
            files,
            opens: BTreeMap::new(),
            opens_so_far: 0,
            window_end: next_id + u64::from(credits),
            next_id,
            grants_max: 64,
            grants_oplocks: true,
            commands: Vec::new(),
            acknowledged: Vec::new(),
        }
    }

    pub(super) fn open_files(&self) -> usize {
        self.opens.len()
    }

    /// The replies to a message, in the order of its commands.
    pub(super) fn take(&mut self, message: &[u8]) -> Vec<Reply> {
        let mut related = Err(status::INVALID_PARAMETER);
        let replies = Parts::new(message).map(|part| {
            let part = part.expect("what the client sends can be read");
            if part.header.flags & flags::RELATED == 0 {
                related = Err(status::INVALID_PARAMETER);
            }
            self.account(&part.header);
            let answer = self.answer(&part, &mut related);
            self.reply(&part.header, answer)
        });
        replies.collect()
    }

    fn account(&mut self, header: &Header) {
        assert_eq!((header.session_id, header.tree_id), (SESSION, TREE));
        assert_eq!(header.message_id, self.next_id, "message ids are used in order, each once");
        self.next_id += u64::from(header.credit_charge.max(1));
        assert!(self.next_id <= self.window_end, "no message is sent without a credit");
        assert!(header.credits >= 1, "every request asks for what it takes");
        self.commands.push(header.command);
    }

    fn reply(&mut self, request: &Header, answer: Answer) -> Reply {
        let credits = request.credits.min(self.grants_max);
        self.window_end += u64::from(credits);
        let (status, body) = match answer {
            Ok(body) => (status::SUCCESS, body),
            Err(status) => (status, error_body()),
        };
        let flags = flags::RESPONSE | request.flags & flags::RELATED;
        Reply { header: Header { status, flags, credits, next_command: 0, ..*request }, body }
    }

    fn answer(&mut self, part: &Part<'_>, related: &mut Result<FileId, u32>) -> Answer {
        let body = part.body;
        let which = |file_id: FileId| match file_id {
            FileId::RELATED => *related,
            file_id => Ok(file_id),
        };
        match part.header.command {
            Command::Create => {
                let created = self.create(&CreateRequest::decode(body).unwrap());
                *related = created.as_ref().map(|(file, _)| *file).map_err(|status| *status);
                created.map(|(_, body)| body)
            }
            Command::Close => {
                let file = which(CloseRequest::decode(body).unwrap().file_id)?;
                let open = self.opens.remove(&file.volatile).ok_or(status::FILE_CLOSED)?;
                if open.removes {
                    self.files.remove(&open.path);
                }
                Ok(encoded(|out| CloseResponse::default().encode(out)))
            }
            Command::Flush => {
                self.path(which(FlushRequest::decode(body).unwrap().file_id)?)?;
                Ok(encoded(|out| FlushResponse {}.encode(out)))
            }
            Command::Read => self.read(&ReadRequest::decode(body).unwrap()),
            Command::Write => self.write(&WriteRequest::decode(body).unwrap()),
            Command::Lock => {
                self.path(LockRequest::decode(body).unwrap().file_id)?;
                Ok(encoded(|out| LockResponse {}.encode(out)))
            }
            Command::QueryInfo => {
                let request = QueryInfoRequest::decode(body).unwrap();
                self.path(which(request.file_id)?)?;
                let output = match request.info_type {
                    1 => about_file(request.class),
                    _ => about_volume(request.class),
                };
                assert!(output.len() <= request.output_bytes_max as usize);
                Ok(encoded(|out| QueryInfoResponse { output: &output }.encode(out)))
            }
            Command::SetInfo => {
                let request = SetInfoRequest::decode(body).unwrap();
                self.set(which(request.file_id)?, request.class, request.data)
            }
            Command::QueryDirectory => {
                let request = QueryDirectoryRequest::decode(body).unwrap();
                self.list(which(request.file_id)?, &request)
            }
            Command::Echo => Ok(encoded(|out| EchoResponse {}.encode(out))),
            Command::OplockBreak => {
                let broken = Break::decode(body).unwrap();
                self.acknowledged.push(broken);
                Ok(encoded(|out| broken.encode(out)))
            }
            command => panic!("the session has no use for {command:?}"),
        }
    }

    fn path(&self, file: FileId) -> Result<&str, u32> {
        let open = self.opens.get(&file.volatile).ok_or(status::FILE_CLOSED)?;
        let is_there = self.files.contains_key(&open.path);
        if is_there { Ok(&open.path) } else { Err(status::FILE_DELETED) }
    }

    fn create(&mut self, request: &CreateRequest<'_>) -> Result<(FileId, Vec<u8>), u32> {
        let path = request.name.to_string();
        let parent = path.rsplit_once('\\').map_or("", |(parent, _)| parent);
        if !matches!(self.files.get(parent), Some(None)) {
            return Err(status::OBJECT_PATH_NOT_FOUND);
        }
        let has = |option| request.options & option != 0;
        let is_new = match (self.files.get_mut(&path), request.disposition) {
            (None, Disposition::Open | Disposition::Overwrite) => {
                return Err(status::OBJECT_NAME_NOT_FOUND);
            }
            (Some(_), Disposition::Create) => return Err(status::OBJECT_NAME_COLLISION),
            (Some(None), _) if has(options::NON_DIRECTORY_FILE) => {
                return Err(status::FILE_IS_A_DIRECTORY);
            }
            (Some(Some(_)), _) if has(options::DIRECTORY_FILE) => {
                return Err(status::NOT_A_DIRECTORY);
            }
            (Some(_), Disposition::Open | Disposition::OpenIf) => false,
            (Some(content), _) => {
                *content = Some(Vec::new());
                false
            }
            (None, _) => true,
        };
        if is_new {
            let content = (!has(options::DIRECTORY_FILE)).then(Vec::new);
            self.files.insert(path.clone(), content);
        }
        self.opens_so_far += 1;
        let file_id = FileId { persistent: 1, volatile: self.opens_so_far };
        let removes = has(options::DELETE_ON_CLOSE);
        self.opens.insert(file_id.volatile, Open { path, removes });
        let response = CreateResponse {
            oplock: if self.grants_oplocks { request.oplock } else { OplockLevel::None },
            action: if is_new { CreateAction::Created } else { CreateAction::Opened },
            creation_time: FileTime(1),
            last_access_time: FileTime(2),
            last_write_time: FileTime(3),
            change_time: FileTime(4),
            allocation_size: 0,
            end_of_file: 0,
            attributes: attributes::NORMAL,
            file_id,
            lease: request.lease.filter(|_| self.grants_oplocks),
        };
        Ok((file_id, encoded(|out| response.encode(out))))
    }

    fn read(&self, request: &ReadRequest) -> Answer {
        let content = self.files[self.path(request.file_id)?].as_deref().unwrap_or_default();
        let from = content.get(request.offset as usize..).unwrap_or_default();
        if from.is_empty() {
            return Err(status::END_OF_FILE);
        }
        let data = &from[..from.len().min(request.length as usize)];
        Ok(encoded(|out| ReadResponse { data, remaining: 0 }.encode(out)))
    }

    fn write(&mut self, request: &WriteRequest<'_>) -> Answer {
        let path = self.path(request.file_id)?.to_owned();
        let content = self.files.get_mut(&path).unwrap().as_mut().unwrap();
        let end = request.offset as usize + request.data.len();
        content.resize(content.len().max(end), 0);
        content[request.offset as usize..end].copy_from_slice(request.data);
        let count = request.data.len() as u32;
        Ok(encoded(|out| WriteResponse { count, remaining: 0 }.encode(out)))
    }

    fn set(&mut self, file: FileId, class: u8, data: &[u8]) -> Answer {
        let path = self.path(file)?.to_owned();
        match SetFile::decode(class, data).unwrap().expect("a change that the session makes") {
            SetFile::Basic(_) | SetFile::Allocation(_) => {}
            SetFile::EndOfFile(bytes) => {
                let content = self.files.get_mut(&path).unwrap().as_mut().unwrap();
                content.resize(bytes as usize, 0);
            }
            SetFile::Disposition(removes) => {
                let inside = format!("{path}\\");
                if removes && self.files.keys().any(|path| path.starts_with(&inside)) {
                    return Err(status::DIRECTORY_NOT_EMPTY);
                }
                self.opens.get_mut(&file.volatile).unwrap().removes = removes;
            }
            SetFile::Rename { name, replace } => {
                let name = name.to_string();
                if self.files.contains_key(&name) && !replace {
                    return Err(status::OBJECT_NAME_COLLISION);
                }
                let content = self.files.remove(&path).unwrap();
                self.files.insert(name.clone(), content);
                self.opens.get_mut(&file.volatile).unwrap().path = name;
            }
        }
        Ok(encoded(|out| SetInfoResponse {}.encode(out)))
    }

    fn list(&self, file: FileId, request: &QueryDirectoryRequest<'_>) -> Answer {
        let level = FindLevel::try_from(request.class).ok();
        let inside = match self.path(file)? {
            "" => String::new(),
            path => format!("{path}\\"),
        };
        let pattern = request.pattern.to_string();
        let start = pattern.trim_end_matches('*');
        let names = self.files.iter().filter_map(|(path, content)| {
            let name = path.strip_prefix(&*inside).filter(|name| !name.is_empty())?;
            let matches = if start == pattern { name == start } else { name.starts_with(start) };
            (matches && !name.contains('\\')).then_some((name, content.is_none()))
        });
        let dots = [(".", true), ("..", true)].into_iter().filter(|_| pattern == "*");
        let mut output = Vec::new();
        let mut entries = EntryList::new(level.unwrap(), &output);
        let single = request.flags & 2 != 0;
        for (name, is_directory) in dots.chain(names).take(if single { 1 } else { 5 }) {
            let attributes = match is_directory {
                true => attributes::DIRECTORY,
                false => attributes::NORMAL,
            };
            let entry = Entry { attributes, name: Text::Utf8(name), ..Entry::default() };
            entries.push(&entry, &mut output);
        }
        if output.is_empty() {
            return Err(status::NO_SUCH_FILE);
        }
        Ok(encoded(|out| QueryDirectoryResponse { output: &output }.encode(out)))
    }
}

pub(super) fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

fn about_file(class: u8) -> Vec<u8> {
    let level = FileLevel::try_from(class).ok();
    encoded(|out| match level.expect("a level that the session asks for") {
        FileLevel::Basic => BasicInfo::default().encode(out),
        FileLevel::Standard => StandardInfo::default().encode(out),
        FileLevel::Internal => InternalInfo::default().encode(out),
        FileLevel::Ea => EaInfo::default().encode(out),
        FileLevel::NetworkOpen => NetworkOpenInfo::default().encode(out),
        FileLevel::Stream => {}
        FileLevel::All => AllInfo::default().encode(out),
    })
}

fn about_volume(class: u8) -> Vec<u8> {
    let level = FsLevel::try_from(class).ok();
    encoded(|out| match level.expect("a level that the session asks for") {
        FsLevel::Volume => FsVolumeInfo::default().encode(out),
        FsLevel::Size => FsSizeInfo::default().encode(out),
        FsLevel::Device => FsDeviceInfo::default().encode(out),
        FsLevel::Attribute => FsAttributeInfo::default().encode(out),
        FsLevel::FullSize => FsFullSizeInfo::default().encode(out),
    })
}
