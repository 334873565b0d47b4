//! The bytes of every fault.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::{Fault, RequestFacts};

/// What happens to the connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    KeepAlive,
    Close,
}

pub(super) fn send(
    stream: &mut TcpStream,
    facts: &RequestFacts,
    (fault, body): (&Fault, Option<Vec<u8>>),
) -> io::Result<Then> {
    let Some(mut body) = body else {
        stream.write_all(&whole(404, "", b"no such file\n", facts))?;
        return Ok(Then::KeepAlive);
    };
    match fault {
        Fault::None => stream.write_all(&whole(200, "", &body, facts))?,
        Fault::Status(status) => stream.write_all(&whole(*status, "", b"on purpose\n", facts))?,
        Fault::Redirect(to) => {
            stream.write_all(&whole(301, &format!("Location: {to}\r\n"), b"moved\n", facts))?;
        }
        Fault::FlippedByte => {
            let middle = body.len() / 2;
            body.get_mut(middle).into_iter().for_each(|byte| *byte ^= 0xff);
            stream.write_all(&whole(200, "", &body, facts))?;
        }
        Fault::WrongLength(by) => {
            body.resize(body.len().saturating_add_signed(*by as isize), b'?');
            stream.write_all(&whole(200, "", &body, facts))?;
        }
        Fault::HugeHeader(bytes) => {
            let header = format!("X-Huge: {}\r\n", "h".repeat(*bytes));
            stream.write_all(&whole(200, &header, &body, facts))?;
        }
        Fault::SlowDrip { bytes, pause } => {
            drip(stream, &whole(200, "", &body, facts), (*bytes, *pause))?;
        }
        Fault::Late(pause) => {
            std::thread::sleep(*pause);
            stream.write_all(&whole(200, "", &body, facts))?;
        }
        Fault::TwoWrites(pause) => {
            let reply = whole(200, "", &body, facts);
            let (head, body) = reply.split_at(reply.len() - body.len());
            stream.write_all(head)?;
            std::thread::sleep(*pause);
            stream.write_all(body)?;
        }
        Fault::TrailingBytes { bytes, after } => {
            let mut reply = whole(200, "", &body, facts);
            if after.is_zero() {
                reply.extend_from_slice(bytes);
                stream.write_all(&reply)?;
            } else {
                stream.write_all(&reply)?;
                std::thread::sleep(*after);
                stream.write_all(bytes)?;
            }
        }
        Fault::Chunked(size) => stream.write_all(&chunked(&body, *size, "0\r\n\r\n"))?,
        Fault::Silence => {}
        _ => return send_and_close(stream, facts, (fault, &body)),
    }
    Ok(Then::KeepAlive)
}

/// Faults after which the connection is of no more use.
fn send_and_close(
    stream: &mut TcpStream,
    facts: &RequestFacts,
    (fault, body): (&Fault, &[u8]),
) -> io::Result<Then> {
    match fault {
        Fault::Truncated => {
            let reply = whole(200, "", body, facts);
            stream.write_all(&reply[..reply.len() - body.len().div_ceil(2)])?;
        }
        Fault::MalformedStatusLine => {
            stream.write_all(b"ICY two hundred fine\r\nContent-Length: 2\r\n\r\nok")?;
        }
        Fault::MalformedLength => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\nok")?;
        }
        Fault::BadChunkSize => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n")?;
        }
        Fault::UnfinishedChunks => stream.write_all(&chunked(body, 512, ""))?,
        Fault::ResetBeforeReply => set_socket_linger(&*stream, Some(Duration::ZERO))?,
        Fault::CloseAfterReply => stream.write_all(&whole(200, "", body, facts))?,
        Fault::AnnouncedCloseAfterReply => {
            stream.write_all(&whole(200, "Connection: close\r\n", body, facts))?;
        }
        // CloseBeforeReply: just that. The others keep the connection and never come here.
        _ => {}
    }
    Ok(Then::Close)
}

/// Head and body; HEAD gets the head alone.
fn whole(status: u16, headers: &str, body: &[u8], facts: &RequestFacts) -> Vec<u8> {
    let reason = if status < 400 { "OK" } else { "On Purpose" };
    let length = body.len();
    let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: {length}\r\n{headers}\r\n");
    let mut reply = head.into_bytes();
    if facts.method != "HEAD" {
        reply.extend_from_slice(body);
    }
    reply
}

fn chunked(body: &[u8], size: usize, end: &str) -> Vec<u8> {
    let mut reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(size.max(1)) {
        reply.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        reply.extend_from_slice(chunk);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(end.as_bytes());
    reply
}

fn drip(stream: &mut TcpStream, reply: &[u8], by: (usize, Duration)) -> io::Result<()> {
    let (bytes, pause) = by;
    for part in reply.chunks(bytes.max(1)) {
        stream.write_all(part)?;
        std::thread::sleep(pause);
    }
    Ok(())
}
