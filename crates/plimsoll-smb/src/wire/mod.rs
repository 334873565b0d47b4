//! SMB2 messages as bytes, pure: no socket, no clock, no keys.
//!
//! Every message both encodes and decodes. A body is appended directly behind its header, because
//! offsets on the wire count from the header's start: `header.encode(out); request.encode(out)`.
//! `decode` takes what follows the header ([`Part::body`]) and borrows from it: nothing is copied
//! and nothing allocated, so no length on the wire can cost memory.
//!
//! | module | what it holds | specification |
//! | --- | --- | --- |
//! | [`frame`] | messages on a stream | MS-SMB2 2.1 |
//! | [`header`] | headers, and the commands of a compound | MS-SMB2 2.2.1, 2.2.41, 3.2.4.1.4 |
//! | [`status`] | NTSTATUS and its names, and the answer to what failed | MS-ERREF 2.3.1 |
//! | [`negotiate`], [`session`] | NEGOTIATE; sessions and trees | MS-SMB2 2.2.3 to 2.2.12 |
//! | [`create`], [`open_file`] | opening a file; what is done to it | MS-SMB2 2.2.13 to 2.2.27 |
//! | [`info`] | what is queried and set, and IOCTL | MS-SMB2 2.2.31 to 2.2.40 |
//! | [`fscc`] | the data of that | MS-FSCC 2.4, 2.5 |
//! | [`bytes`](mod@bytes), [`text`] | fields, and UTF-16LE | |
//! | [`lenient`] | replies that differ from the specification and mean the same | |

#[macro_use]
pub mod bytes;

pub mod create;
pub mod frame;
pub mod fscc;
pub mod header;
pub mod info;
pub mod lenient;
pub mod negotiate;
pub mod open_file;
pub mod session;
pub mod status;
pub mod text;

pub use bytes::{FileId, FileTime, HEADER_BYTES, WireError};
pub use create::{CreateRequest, CreateResponse, OplockLevel};
pub use header::{Command, Header, Part, Parts, TransformHeader, chain};
pub use info::{
    IoctlRequest, IoctlResponse, QueryDirectoryRequest, QueryDirectoryResponse, QueryInfoRequest,
    QueryInfoResponse, SetInfoRequest, SetInfoResponse,
};
pub use negotiate::{NegotiateRequest, NegotiateResponse};
pub use open_file::{
    Break, CloseRequest, CloseResponse, FlushRequest, FlushResponse, LeaseBreakAcknowledgement,
    LeaseBreakNotification, LockRequest, LockResponse, OplockBreak, ReadRequest, ReadResponse,
    WriteRequest, WriteResponse,
};
pub use session::{
    EchoRequest, EchoResponse, LogoffRequest, LogoffResponse, SessionSetupRequest,
    SessionSetupResponse, TreeConnectRequest, TreeConnectResponse,
};
pub use status::ErrorResponse;
pub use text::Text;

#[cfg(test)]
mod tests;
