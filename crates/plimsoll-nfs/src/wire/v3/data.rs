//! Content of files: READ, WRITE, COMMIT. RFC 1813 §3.3.6, §3.3.7, §3.3.21.

use super::{Handle, PostOpAttr, Reply3, Verifier, WccData};

xdr_enum! {
    /// How durable written data must be, or is. RFC 1813 §3.3.7 `stable_how`
    pub enum StableHow: "stable_how" {
        /// UNSTABLE: not before a COMMIT.
        Unstable = 0,
        /// DATA_SYNC: the data, and what is needed to find it again.
        DataSync = 1,
        /// FILE_SYNC: data and attributes.
        FileSync = 2,
    }
}

xdr_struct! {
    /// Arguments of READ. RFC 1813 §3.3.6
    pub struct ReadArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Most bytes wanted.
        count: u32,
    }

    /// What READ answers. RFC 1813 §3.3.6
    pub struct ReadOk<'a> {
        /// Of the file.
        attributes: PostOpAttr,
        /// Bytes read; what it says is for the caller to compare with `data`.
        count: u32,
        /// The file ends behind the data.
        eof: bool,
        /// What was read.
        data: &'a [u8],
    }

    /// Arguments of WRITE. RFC 1813 §3.3.7
    pub struct WriteArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Bytes to write; a server compares it with `data`.
        count: u32,
        /// How durable before the server answers.
        stable: StableHow,
        /// What to write.
        data: &'a [u8],
    }

    /// What WRITE answers. RFC 1813 §3.3.7
    pub struct WriteOk {
        /// Of the file.
        wcc: WccData,
        /// Bytes written.
        count: u32,
        /// How durable they are.
        committed: StableHow,
        /// Of the server's run: another one when it may have lost unstable data.
        verifier: Verifier,
    }

    /// Arguments of COMMIT. RFC 1813 §3.3.21
    pub struct CommitArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Bytes; 0: to the end of the file.
        count: u32,
    }

    /// What COMMIT answers. RFC 1813 §3.3.21
    pub struct CommitOk {
        /// Of the file.
        wcc: WccData,
        /// Of the server's run.
        verifier: Verifier,
    }
}

/// Result of READ.
pub type ReadRes<'a> = Reply3<ReadOk<'a>, PostOpAttr>;
/// Result of WRITE.
pub type WriteRes = Reply3<WriteOk, WccData>;
/// Result of COMMIT.
pub type CommitRes = Reply3<CommitOk, WccData>;
