//! What a server that speaks HTTP/2 only answers to a request of HTTP/1.1: its settings, or that
//! it goes away. RFC 9113 §3.4, §4.1.

/// Bytes of a frame's header.
const HEADER_BYTES: usize = 9;
/// RFC 9113 §6.5; each setting has six bytes.
const SETTINGS: u8 = 4;
const SETTING_BYTES: u32 = 6;
/// RFC 9113 §6.8; a stream and an error code at least.
const GOAWAY: u8 = 7;
const GOAWAY_BYTES_MIN: u32 = 8;
/// A peer must not send a longer frame before it was told that it may (§4.2).
const FRAME_BYTES_MAX: u32 = 16_384;
/// The stream's number is that of the connection; its first bit is reserved.
const STREAM_MASK: u32 = 0x7fff_ffff;

/// The bytes begin with a frame with which a server of HTTP/2 may begin.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return false };
    let [a, b, c, kind, _flags, stream @ ..] = *header;
    let length = u32::from_be_bytes([0, a, b, c]);
    let is_of_connection = u32::from_be_bytes(stream) & STREAM_MASK == 0;
    let fits = match kind {
        SETTINGS => length.is_multiple_of(SETTING_BYTES),
        GOAWAY => length >= GOAWAY_BYTES_MIN,
        _ => false,
    };
    fits && is_of_connection && length <= FRAME_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Malformed, head};

    #[test]
    fn settings_and_goaway_are_known_from_other_bytes() {
        // What nghttpd 1.52 sends to a GET of HTTP/1.1.
        let nghttpd = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
        assert!(begins(&nghttpd));
        assert_eq!(head::parse(&nghttpd), Err(Malformed::Http2));
        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(begins(&goaway));
        let no_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        assert!(begins(&no_settings), "all settings may be the defaults");
        for at in [2, 3, 8] {
            let mut other = nghttpd;
            other[at] = 9;
            assert!(!begins(&other), "{other:?}");
            assert_eq!(head::parse(&other), Err(Malformed::NotHttp));
        }
        for other in [&nghttpd[..8], b"SSH-2.0-OpenSSH_9.2", b"HTTP/1.1 200 OK", b""] {
            assert!(!begins(other), "{other:?}");
        }
        let tls_alert = [0x15, 3, 3, 0, 2, 2, 10, 0, 0, 0];
        assert!(!begins(&tls_alert));
    }
}
