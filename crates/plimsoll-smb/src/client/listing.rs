//! What a directory holds, from a server that may say anything.

use super::files::directory;
use super::{SmbClient, SmbError};
use crate::op::{Disposition, FindLevel};
use crate::wire::create::{access, attributes};
use crate::wire::fscc::{Entries, Entry};
use crate::wire::header::Command;
use crate::wire::query_directory::{
    QueryDirectoryRequest, QueryDirectoryResponse, query_directory_flags,
};
use crate::wire::text::Text;
use crate::wire::{FileId, status};

/// Bytes of a listing asked for at once.
const LISTING_BYTES: u32 = 65_536;
/// Least of that, whatever the server says it can give.
const LISTING_BYTES_MIN: u32 = 4_096;
/// Entries that one directory may have.
const ENTRIES_MAX: usize = 1_000_000;
/// Replies without a name of use: those with `.` and `..`, perhaps one by one.
const BARREN_MAX: u32 = 2;

/// What a directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name there.
    pub name: String,
    /// Size of a file.
    pub bytes: u64,
    /// It is a directory, and not one that only points to another.
    pub is_directory: bool,
}

impl SmbClient {
    /// What a directory holds, without `.` and `..`. `None`: there is no such directory.
    pub fn list(&mut self, path: &str) -> Result<Option<Vec<Listed>>, SmbError> {
        let wanted = access::LIST_DIRECTORY | access::READ_ATTRIBUTES;
        let opened = match self.create(&directory(path, Disposition::Open, wanted)) {
            Ok(opened) => opened,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let listed = self.list_open(opened.file_id);
        let closed = self.close(opened.file_id);
        let listed = listed?;
        closed?;
        Ok(Some(listed))
    }

    fn list_open(&mut self, file_id: FileId) -> Result<Vec<Listed>, SmbError> {
        let output_bytes_max = self.session.max_transact.clamp(LISTING_BYTES_MIN, LISTING_BYTES);
        let mut listed = Vec::new();
        let mut barren = 0;
        let mut flags = query_directory_flags::RESTART_SCANS;
        loop {
            let request = QueryDirectoryRequest {
                class: FindLevel::Directory.class(),
                flags,
                file_index: 0,
                file_id,
                pattern: Text::Utf8("*"),
                output_bytes_max,
            };
            flags = 0;
            let body = |out: &mut Vec<u8>| request.encode(out);
            let body = match self.call(Command::QueryDirectory, output_bytes_max, body) {
                Ok(body) => body,
                Err(SmbError::Status {
                    status: status::NO_MORE_FILES | status::NO_SUCH_FILE,
                    ..
                }) => return Ok(listed),
                Err(error) => return Err(error),
            };
            let before = listed.len();
            let reply = QueryDirectoryResponse::decode(&body)?;
            for entry in Entries::new(FindLevel::Directory, reply.output) {
                listed.extend(of_use(&entry?)?);
            }
            barren += u32::from(listed.len() == before);
            if barren > BARREN_MAX || listed.len() > ENTRIES_MAX {
                return Err(SmbError::Unfit("a listing that does not end"));
            }
        }
    }
}

/// An entry as it counts here; `None`: `.` or `..`. What is removed by its name must be in the
/// directory that was listed: a name with a separator would lead out of it, and so would what
/// merely points somewhere if it were entered.
fn of_use(entry: &Entry<'_>) -> Result<Option<Listed>, SmbError> {
    let name = entry.name.to_string();
    if name == "." || name == ".." {
        return Ok(None);
    }
    if name.is_empty() || name.contains(['\\', '/', '\0']) {
        return Err(SmbError::Unfit("a name that no file can have"));
    }
    let is = |attribute| entry.attributes & attribute != 0;
    Ok(Some(Listed {
        name,
        bytes: entry.end_of_file,
        is_directory: is(attributes::DIRECTORY) && !is(attributes::REPARSE_POINT),
    }))
}
