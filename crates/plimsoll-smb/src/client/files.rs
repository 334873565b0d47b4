//! Files and directories by their path below the share, with backslashes and without one in
//! front. What one path is asked goes in one compound: CREATE, the question, CLOSE.

use super::{SmbClient, SmbError};
use crate::op::{Disposition, FsLevel};
use crate::wire::close::{CloseRequest, FlushRequest};
use crate::wire::create::{CreateRequest, CreateResponse, access, attributes, options};
use crate::wire::fscc::{FsFullSizeInfo, SetFile};
use crate::wire::header::Command;
use crate::wire::query_info::{QueryInfoRequest, QueryInfoResponse, info_type};
use crate::wire::set_info::SetInfoRequest;
use crate::wire::text::Text;
use crate::wire::{FileId, status};

/// Directories below each other. More is none of ours, or a server that invents them.
const DEPTH_MAX: usize = 64;
/// Path in bytes of UTF-8; a CREATE has room for it.
const PATH_BYTES_MAX: usize = 8_192;
/// Bytes of an answer about a volume.
const VOLUME_BYTES: u32 = 64;

/// An open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The server's name for it.
    pub file_id: FileId,
    /// Size of a file.
    pub bytes: u64,
    /// It is a directory.
    pub is_directory: bool,
}

/// Room on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// In all.
    pub total_bytes: u64,
    /// That this user may still write.
    pub available_bytes: u64,
}

impl SmbClient {
    /// Opens or makes what `request` says.
    pub fn create(&mut self, request: &CreateRequest<'_>) -> Result<Opened, SmbError> {
        check_path(&request.name)?;
        let body = self.call(Command::Create, 0, |out| request.encode(out))?;
        opened(&body)
    }

    /// Opens a file that is there, for reading.
    pub fn open_to_read(&mut self, path: &str) -> Result<Opened, SmbError> {
        self.create(&file(path, Disposition::Open, access::READ_DATA | access::READ_ATTRIBUTES))
    }

    /// Opens a file that is there, for writing.
    pub fn open_to_write(&mut self, path: &str) -> Result<Opened, SmbError> {
        self.create(&file(path, Disposition::Open, WRITING))
    }

    /// Makes a file, or empties the one that is there, and opens it for writing.
    pub fn make_file(&mut self, path: &str) -> Result<Opened, SmbError> {
        self.create(&file(path, Disposition::OverwriteIf, WRITING))
    }

    /// Gives an open back.
    pub fn close(&mut self, file_id: FileId) -> Result<(), SmbError> {
        self.call(Command::Close, 0, |out| CloseRequest { flags: 0, file_id }.encode(out)).map(drop)
    }

    /// Brings what was written to stable storage.
    pub fn flush(&mut self, file_id: FileId) -> Result<(), SmbError> {
        self.call(Command::Flush, 0, |out| FlushRequest { file_id }.encode(out)).map(drop)
    }

    /// Cuts or lengthens an open file.
    pub fn set_end_of_file(&mut self, file_id: FileId, bytes: u64) -> Result<(), SmbError> {
        let change = SetFile::EndOfFile(bytes);
        let body = |out: &mut Vec<u8>| SetInfoRequest::encode_file(file_id, &change, out);
        self.call(Command::SetInfo, 0, body).map(drop)
    }

    /// What has that name; `None`: nothing has.
    pub fn find(&mut self, path: &str) -> Result<Option<Opened>, SmbError> {
        let request =
            CreateRequest::new(Text::Utf8(path), Disposition::Open, access::READ_ATTRIBUTES);
        match self.once(&request, None) {
            Ok((found, _)) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Size of the file.
    pub fn file_bytes(&mut self, path: &str) -> Result<u64, SmbError> {
        let request = file(path, Disposition::Open, access::READ_ATTRIBUTES);
        self.once(&request, None).map(|(found, _)| found.bytes)
    }

    /// Makes a directory; one that is there is as good.
    pub fn make_dir(&mut self, path: &str) -> Result<(), SmbError> {
        let request = directory(path, Disposition::OpenIf, access::READ_ATTRIBUTES);
        self.once(&request, None).map(drop)
    }

    /// Cuts or lengthens a file.
    pub fn cut(&mut self, path: &str, bytes: u64) -> Result<(), SmbError> {
        let request = file(path, Disposition::Open, WRITING);
        let change = SetFile::EndOfFile(bytes);
        self.once(&request, Some(Question::Set(change))).map(drop)
    }

    /// Gives a file or directory another name, and takes that from the file that has it.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), SmbError> {
        let wanted = access::DELETE | access::READ_ATTRIBUTES;
        let request = CreateRequest::new(Text::Utf8(from), Disposition::Open, wanted);
        let change = SetFile::Rename { replace: true, name: Text::Utf8(to) };
        self.once(&request, Some(Question::Set(change))).map(drop)
    }

    /// Removes a file. `false`: nothing had that name.
    pub fn delete_file(&mut self, path: &str) -> Result<bool, SmbError> {
        let mut request = file(path, Disposition::Open, access::DELETE);
        request.options |= options::DELETE_ON_CLOSE;
        self.delete(request, None)
    }

    /// Removes an empty directory. `false`: nothing had that name.
    pub fn delete_dir(&mut self, path: &str) -> Result<bool, SmbError> {
        let wanted = access::DELETE | access::READ_ATTRIBUTES;
        let request = directory(path, Disposition::Open, wanted);
        // Samba says nothing of a directory that cannot go when its open ends, only when asked.
        self.delete(request, Some(Question::Set(SetFile::Disposition(true))))
    }

    fn delete(
        &mut self,
        mut request: CreateRequest<'_>,
        question: Option<Question<'_>>,
    ) -> Result<bool, SmbError> {
        // Opens and removes a link itself, never what it points to.
        request.options |= options::OPEN_REPARSE_POINT;
        match self.once(&request, question) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a directory and all below it; answers with how many files that were. A directory
    /// that is not there has none.
    pub fn delete_tree(&mut self, path: &str) -> Result<u64, SmbError> {
        let Some(entries) = self.list(path)? else { return Ok(0) };
        let mut files = 0;
        for entry in entries {
            let inner = format!("{path}\\{}", entry.name);
            if entry.is_directory {
                files += self.delete_tree(&inner)?;
            } else {
                files += u64::from(self.delete_file(&inner)?);
            }
        }
        self.delete_dir(path)?;
        Ok(files)
    }

    /// How much room there is.
    pub fn space(&mut self) -> Result<Space, SmbError> {
        let request = directory("", Disposition::Open, access::READ_ATTRIBUTES);
        let (_, body) = self.once(&request, Some(Question::Volume))?;
        let reply = QueryInfoResponse::decode(&body)?;
        let info = FsFullSizeInfo::decode(reply.output)?;
        let unit = u64::from(info.sectors_per_unit) * u64::from(info.bytes_per_sector);
        Ok(Space {
            total_bytes: info.total_units.saturating_mul(unit),
            available_bytes: info.caller_available_units.saturating_mul(unit),
        })
    }

    /// CREATE, a question perhaps, and CLOSE, as one compound. The status is that of the first
    /// that fails.
    fn once(
        &mut self,
        create: &CreateRequest<'_>,
        question: Option<Question<'_>>,
    ) -> Result<(Opened, Vec<u8>), SmbError> {
        check_path(&create.name)?;
        let commands = 2 + u32::from(question.is_some());
        self.earn(commands)?;
        self.begin();
        let mut asked = vec![(
            Command::Create,
            self.command(Command::Create, 0, |out| {
                create.encode(out);
            }),
        )];
        if let Some(question) = &question {
            let command = question.command();
            asked.push((command, self.command(command, 0, |out| question.encode(out))));
        }
        let close = CloseRequest { flags: 0, file_id: FileId::RELATED };
        asked.push((Command::Close, self.command(Command::Close, 0, |out| close.encode(out))));
        self.send()?;
        let mut bodies = Vec::new();
        let mut failed = None;
        for (command, message_id) in asked {
            let reply = self.reply(message_id)?;
            if status::is_failure(reply.status) {
                failed = failed.or(Some(SmbError::Status { command, status: reply.status }));
            }
            bodies.push(reply.body);
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((opened(&bodies[0])?, bodies.swap_remove(1))),
        }
    }
}

/// What is asked between CREATE and CLOSE.
enum Question<'a> {
    Set(SetFile<'a>),
    Volume,
}

impl Question<'_> {
    fn command(&self) -> Command {
        match self {
            Self::Set(_) => Command::SetInfo,
            Self::Volume => Command::QueryInfo,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Set(change) => SetInfoRequest::encode_file(FileId::RELATED, change, out),
            Self::Volume => QueryInfoRequest {
                info_type: info_type::FILE_SYSTEM,
                class: FsLevel::FullSize.class(),
                output_bytes_max: VOLUME_BYTES,
                file_id: FileId::RELATED,
                ..QueryInfoRequest::default()
            }
            .encode(out),
        }
    }
}

const WRITING: u32 = access::READ_DATA
    | access::WRITE_DATA
    | access::APPEND_DATA
    | access::READ_ATTRIBUTES
    | access::WRITE_ATTRIBUTES;

fn file(path: &str, disposition: Disposition, wanted: u32) -> CreateRequest<'_> {
    let options = options::NON_DIRECTORY_FILE;
    CreateRequest { options, ..CreateRequest::new(Text::Utf8(path), disposition, wanted) }
}

pub(super) fn directory(path: &str, disposition: Disposition, wanted: u32) -> CreateRequest<'_> {
    let options = options::DIRECTORY_FILE;
    CreateRequest { options, ..CreateRequest::new(Text::Utf8(path), disposition, wanted) }
}

/// Every path of ours is short; what a server's listings make of them may not be.
fn check_path(path: &Text<'_>) -> Result<(), SmbError> {
    let path = path.to_string();
    if path.len() > PATH_BYTES_MAX || path.matches('\\').count() > DEPTH_MAX {
        return Err(SmbError::Path);
    }
    Ok(())
}

fn opened(body: &[u8]) -> Result<Opened, SmbError> {
    let reply = CreateResponse::decode(body)?;
    Ok(Opened {
        file_id: reply.file_id,
        bytes: reply.end_of_file,
        is_directory: reply.attributes & attributes::DIRECTORY != 0,
    })
}
