//! ONC RPC, portmapper, MOUNT and NFS as bytes, pure: no socket, no clock.
//!
//! Every message both encodes and decodes. What is decoded borrows from the bytes it came in;
//! nothing is copied, and nothing allocated, so no length on the wire can cost memory.
//!
//! | module | what it holds | specification |
//! | --- | --- | --- |
//! | [`xdr`] | numbers, opaque bytes, names and paths, lists | RFC 4506 |
//! | [`reply`] | a status, and what comes with it | |
//! | [`flaws`] | how a reply may differ and mean the same | |
//! | [`record`] | messages on a stream | RFC 5531 §11 |
//! | [`rpc`] | calls, credentials, replies | RFC 5531 |
//! | [`portmap`] | which port a program listens on | RFC 1833 §3 |
//! | [`mount`] | MOUNT versions 1 and 3 | RFC 1094 appendix A, RFC 1813 appendix I |
//! | [`v2`], [`v3`], [`v4`] | NFS | RFC 1094, RFC 1813, RFC 8881 |

#[macro_use]
mod define;

pub mod flaws;
pub mod mount;
pub mod portmap;
pub mod record;
pub mod reply;
pub mod rpc;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod xdr;

pub use self::xdr::{Name, Path};
pub use xdr::{Decode, Encode, List, XdrError, XdrIn};

#[cfg(test)]
mod tests;
