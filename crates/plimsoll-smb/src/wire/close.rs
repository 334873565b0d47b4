//! CLOSE and FLUSH. MS-SMB2 2.2.15 to 2.2.18

use super::bytes::{FileId, FileTime};

/// Bit of the flags of both: the response shall tell, or tells, about the file.
pub const CLOSE_QUERY_ATTRIBUTES: u16 = 1;

layout! {
    /// Gives an open back. MS-SMB2 2.2.15
    CloseRequest "a CLOSE request": 24 bytes, size 24 {
        /// See [`CLOSE_QUERY_ATTRIBUTES`].
        flags: u16 = 2,
        /// Which.
        file_id: FileId = 8,
    }
}

layout! {
    /// The open is gone. MS-SMB2 2.2.16; all but the flags is zero unless asked for.
    CloseResponse "a CLOSE response": 60 bytes, size 60 {
        /// See [`CLOSE_QUERY_ATTRIBUTES`].
        flags: u16 = 2,
        /// When it was made.
        creation_time: FileTime = 8,
        /// Of the last access.
        last_access_time: FileTime = 16,
        /// Of the last write.
        last_write_time: FileTime = 24,
        /// Of the last change, of metadata too.
        change_time: FileTime = 32,
        /// Bytes set aside for it.
        allocation_size: u64 = 40,
        /// Its length.
        end_of_file: u64 = 48,
        /// See [`super::create::attributes`].
        attributes: u32 = 56,
    }
}

layout! {
    /// Brings written data to stable storage. MS-SMB2 2.2.17
    FlushRequest "a FLUSH request": 24 bytes, size 24 {
        /// Of which open.
        file_id: FileId = 8,
    }
}

layout! {
    /// It is there. MS-SMB2 2.2.18
    FlushResponse "a FLUSH response": 4 bytes, size 4 {}
}
