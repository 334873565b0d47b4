//! TREE_CONNECT and TREE_DISCONNECT. MS-SMB2 2.2.9 to 2.2.12

use super::bytes::{WireError, buffer, from_header, get, put, since, structure};
use super::text::Text;

/// Values of [`TreeConnectResponse::share_type`].
pub mod share_type {
    /// Files.
    pub const DISK: u8 = 1;
    /// Named pipes: IPC$.
    pub const PIPE: u8 = 2;
    /// A printer.
    pub const PRINT: u8 = 3;
}

/// Bit of [`TreeConnectResponse::share_flags`]: the server wants encryption.
pub const SHARE_ENCRYPT_DATA: u32 = 0x8000;

/// Reaches for a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConnectRequest<'a> {
    /// 3.1.1: 1 reconnects to a cluster, 2 redirects to the owner.
    pub flags: u16,
    /// `\\host\share`
    pub path: Text<'a>,
}

impl<'a> TreeConnectRequest<'a> {
    const FIXED: usize = 8;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; TreeConnectRequest::FIXED];
        put(&mut bytes, 0, &9u16);
        put(&mut bytes, 2, &self.flags);
        put(&mut bytes, 4, &(from_header(Self::FIXED) as u16));
        out.extend_from_slice(&bytes);
        self.path.encode(out);
        let length = since(out, at + Self::FIXED) as u16;
        put(out, at + 6, &length);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ TreeConnectRequest::FIXED }>(body, 9, "a TREE_CONNECT request")?;
        let path = (get::<u16>(bytes, 4)?.into(), get::<u16>(bytes, 6)?.into());
        let path = Text::Utf16(buffer(body, Self::FIXED, path, "the share's path")?);
        Ok(Self { flags: get(bytes, 2)?, path })
    }
}

layout! {
    /// The share; its number is in the header. MS-SMB2 2.2.10
    TreeConnectResponse "a TREE_CONNECT response": 16 bytes, size 16 {
        /// See [`share_type`].
        share_type: u8 = 2,
        /// See [`SHARE_ENCRYPT_DATA`].
        share_flags: u32 = 4,
        /// SHARE_CAP bits.
        capabilities: u32 = 8,
        /// What the user may do at most.
        maximal_access: u32 = 12,
    }
}

layout! {
    /// Lets go of the share. MS-SMB2 2.2.11
    TreeDisconnectRequest "a TREE_DISCONNECT request": 4 bytes, size 4 {}
}

layout! {
    /// The share has been let go. MS-SMB2 2.2.12
    TreeDisconnectResponse "a TREE_DISCONNECT response": 4 bytes, size 4 {}
}
