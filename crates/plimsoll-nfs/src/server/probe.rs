//! Asks an RPC program over TCP whether it serves, in bytes written by hand: what starts a server
//! needs no client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Largest reply that is read; a MOUNT reply takes some 100 bytes.
const REPLY_BYTES_MAX: usize = 4096;
/// RFC 5531 §11: the highest bit of the record mark says that no fragment follows.
const LAST_FRAGMENT: u32 = 1 << 31;
const XID: u32 = 0x504c_494d;

/// One procedure of one program.
#[derive(Clone, Copy)]
pub(super) struct Procedure {
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) number: u32,
}

/// NULL of NFSv3 (RFC 1813 §3.3.0).
pub(super) const NFS3_NULL: Procedure = Procedure { program: 100_003, version: 3, number: 0 };
/// MNT of MOUNT version 3 (RFC 1813 §5.2.1).
pub(super) const MOUNT3_MNT: Procedure = Procedure { program: 100_005, version: 3, number: 1 };

/// Calls `procedure` with already encoded `arguments`; answers with the encoded results of an
/// accepted and successful call, `None` of any other.
pub(super) fn call(
    address: SocketAddr,
    procedure: Procedure,
    arguments: &[u8],
    wait: Duration,
) -> io::Result<Option<Vec<u8>>> {
    // A timeout of zero is an error to the system.
    let wait = wait.max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(&address, wait)?;
    stream.set_read_timeout(Some(wait))?;
    stream.set_write_timeout(Some(wait))?;
    stream.write_all(&record(procedure, arguments))?;
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let bytes = (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize;
    if bytes > REPLY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut reply = vec![0; bytes];
    stream.read_exact(&mut reply)?;
    // xid, REPLY, MSG_ACCEPTED, verifier of no bytes, SUCCESS.
    let expected = words(&[XID, 1, 0, 0, 0, 0]);
    Ok(reply.strip_prefix(expected.as_slice()).map(<[u8]>::to_vec))
}

/// A string as XDR has it (RFC 4506 §4.11).
pub(super) fn xdr_string(text: &str) -> Vec<u8> {
    let mut bytes = words(&[text.len() as u32]);
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A call with AUTH_NONE as one record of one fragment.
fn record(procedure: Procedure, arguments: &[u8]) -> Vec<u8> {
    const HEADER_BYTES: u32 = 40;
    let Procedure { program, version, number } = procedure;
    let mark = LAST_FRAGMENT | (HEADER_BYTES + arguments.len() as u32);
    let mut bytes = words(&[mark, XID, 0, 2, program, version, number, 0, 0, 0, 0]);
    bytes.extend_from_slice(arguments);
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_padded_to_whole_words() {
        assert_eq!(xdr_string("abcde"), b"\0\0\0\x05abcde\0\0\0");
        assert_eq!(xdr_string(""), [0; 4]);
    }

    #[test]
    fn the_record_mark_counts_what_follows_it() {
        let bytes = record(MOUNT3_MNT, &xdr_string("/a"));
        let mark = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        assert_eq!((mark & !LAST_FRAGMENT) as usize, bytes.len() - 4);
    }
}
