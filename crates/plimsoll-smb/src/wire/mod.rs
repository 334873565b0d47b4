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
//! | [`header`] | headers, and the commands of a compound | MS-SMB2 2.2.1, 3.2.4.1.4 |
//! | [`transform`] | the header before an encrypted message | MS-SMB2 2.2.41 |
//! | [`status`] | NTSTATUS and its names | MS-ERREF 2.3.1 |
//! | [`text`] | UTF-16LE | |
//! | [`lenient`] | replies that differ from the specification and mean the same | |
//! | [`fscc`] | what is asked and set of files and volumes | MS-FSCC 2.4, 2.5 |
//! | all others | the command of that name | MS-SMB2 2.2 |

#[macro_use]
pub mod bytes;

pub mod close;
pub mod create;
pub mod echo;
pub mod error;
pub mod frame;
pub mod fscc;
pub mod header;
pub mod ioctl;
pub mod lenient;
pub mod lock;
pub mod negotiate;
pub mod oplock_break;
pub mod query_directory;
pub mod query_info;
pub mod read;
pub mod session_setup;
pub mod set_info;
pub mod status;
pub mod text;
pub mod transform;
pub mod tree_connect;
pub mod write;

pub use bytes::HEADER_BYTES;
pub use bytes::{FileId, FileTime, WireError};
pub use close::{CloseRequest, CloseResponse, FlushRequest, FlushResponse};
pub use create::{CreateRequest, CreateResponse, OplockLevel};
pub use echo::{CancelRequest, EchoRequest, EchoResponse};
pub use error::ErrorResponse;
pub use header::{Command, Header, Part, Parts, chain};
pub use ioctl::{IoctlRequest, IoctlResponse};
pub use lock::{LockElement, LockElements, LockRequest, LockResponse};
pub use negotiate::{NegotiateRequest, NegotiateResponse};
pub use oplock_break::{Break, LeaseBreakAcknowledgement, LeaseBreakNotification, OplockBreak};
pub use query_directory::{QueryDirectoryRequest, QueryDirectoryResponse};
pub use query_info::{QueryInfoRequest, QueryInfoResponse};
pub use read::{ReadRequest, ReadResponse};
pub use session_setup::{LogoffRequest, LogoffResponse, SessionSetupRequest, SessionSetupResponse};
pub use set_info::{SetInfoRequest, SetInfoResponse};
pub use text::Text;
pub use transform::{TRANSFORM_BYTES, TransformHeader};
pub use tree_connect::{
    TreeConnectRequest, TreeConnectResponse, TreeDisconnectRequest, TreeDisconnectResponse,
};
pub use write::{WriteRequest, WriteResponse};

#[cfg(test)]
mod tests;
