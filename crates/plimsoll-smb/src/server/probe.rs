//! Identifies the SMB server at an address by a message written by hand: starting a server needs no
//! client.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use plimsoll_servers::Bounded;
use plimsoll_servers::clock::Deadline;

/// Largest reply that is read; a NEGOTIATE reply takes some 240 bytes.
const REPLY_BYTES_MAX: usize = 4096;
/// MS-SMB2 2.2.1.2.
const HEADER_BYTES: usize = 64;
/// Where the server's GUID stands in a NEGOTIATE response (MS-SMB2 2.2.4), from its header on.
const GUID_AT: usize = HEADER_BYTES + 8;

/// The GUID of the server at `address`, requested by a NEGOTIATE of dialect 2.0.2; `None` if it
/// answers anything but success.
pub(super) fn server_guid(address: SocketAddr, until: Deadline) -> io::Result<Option<[u8; 16]>> {
    let mut stream = Bounded::connect(address, until)?;
    stream.write_all(&negotiate())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let bytes = u32::from_be_bytes(length) as usize;
    if bytes > REPLY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut reply = vec![0; bytes];
    stream.read_exact(&mut reply)?;
    Ok(guid_in(&reply))
}

fn guid_in(reply: &[u8]) -> Option<[u8; 16]> {
    // Protocol id, structure size, credit charge, STATUS_SUCCESS, command NEGOTIATE.
    let begins = [&b"\xfeSMB\x40\0"[..], &[0; 2], &[0; 4], &[0; 2]];
    let (mut rest, mut at) = (reply, 0);
    for (part, expected) in begins.into_iter().enumerate() {
        let (actual, after) = rest.split_at_checked(expected.len())?;
        // The credit charge is the server's to choose.
        if part != 1 && actual != expected {
            return None;
        }
        (rest, at) = (after, at + expected.len());
    }
    rest.get(GUID_AT - at..)?.first_chunk().copied()
}

/// MS-SMB2 2.2.3, with its 4 bytes of length (2.1).
fn negotiate() -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_BYTES + 38);
    message.extend_from_slice(b"\xfeSMB\x40\0");
    // The rest of the header is 0, except for the requested credit.
    message.resize(14, 0);
    message.extend_from_slice(&1_u16.to_le_bytes());
    message.resize(HEADER_BYTES, 0);
    // Structure size, one dialect, signing enabled.
    message.extend([36_u16, 1, 1].into_iter().flat_map(u16::to_le_bytes));
    message.resize(HEADER_BYTES + 36, 0);
    message.extend_from_slice(&0x0202_u16.to_le_bytes());
    let mut framed = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    framed.append(&mut message);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u32) -> Vec<u8> {
        let mut reply = b"\xfeSMB\x40\0\x01\0".to_vec();
        reply.extend_from_slice(&status.to_le_bytes());
        reply.resize(GUID_AT, 0);
        reply.extend_from_slice(b"plim0123456789a\0 and what follows");
        reply
    }

    #[test]
    fn the_length_counts_what_follows_it() {
        let framed = negotiate();
        assert_eq!(framed[..4], [0, 0, 0, 102]);
        assert_eq!(framed.len(), 4 + 102);
    }

    #[test]
    fn the_guid_is_read_from_a_success_only() {
        assert_eq!(guid_in(&reply(0)), Some(*b"plim0123456789a\0"));
        assert_eq!(guid_in(&reply(0xc000_00bb)), None);
        for cut in [0, 5, HEADER_BYTES, GUID_AT + 15] {
            assert_eq!(guid_in(&reply(0)[..cut]), None, "{cut} bytes");
        }
    }
}
