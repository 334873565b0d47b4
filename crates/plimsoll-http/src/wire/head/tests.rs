use proptest::prelude::*;

use super::*;

const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n\
    Date: Sat, 21 Nov 2026 20:00:00 GMT\r\nContent-Type: application/octet-stream\r\n\
    Content-Length: 1024\r\nLast-Modified: Sat, 21 Nov 2026 19:00:00 GMT\r\n\
    Connection: keep-alive\r\nETag: \"67400000-400\"\r\nAccept-Ranges: bytes\r\n\r\n";

fn head(text: &str) -> Result<Option<Head>, Malformed> {
    parse(text.as_bytes())
}

#[test]
fn the_usual_header_takes_the_fast_path() {
    let Usual::Head(head) = parse_usual(NGINX) else { panic!("not recognised") };
    assert_eq!((head.bytes, head.status, head.persistent), (NGINX.len(), 200, true));
    assert_eq!((head.content_length, head.chunked), (Some(1024), false));
    assert_eq!(parse_any(NGINX), Ok(head));
}

#[test]
fn a_header_in_the_making_is_awaited() {
    for end in 0..NGINX.len() {
        assert_eq!(parse(&NGINX[..end]), Ok(None), "{end}");
    }
}

#[test]
fn persistence_follows_version_and_connection() {
    let persistent = |text: &str| head(text).unwrap().unwrap().persistent;
    assert!(persistent("HTTP/1.1 204 No Content\r\n\r\n"));
    assert!(!persistent("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n"));
    assert!(!persistent("HTTP/1.0 200 OK\r\n\r\n"));
    assert!(persistent("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n"));
}

#[test]
fn bare_line_feeds_and_a_missing_reason_are_read() {
    assert_eq!(head("HTTP/1.1 200\r\n\r\n").unwrap().unwrap().status, 200);
    let it = head("HTTP/1.1 404 Nope\nContent-Length: 3\n\n").unwrap().unwrap();
    assert_eq!((it.status, it.content_length), (404, Some(3)));
}

#[test]
fn doubtful_headers_are_malformed() {
    let wrong = |fields: &str| head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"));
    assert_eq!(wrong("Content-Length: 5\r\nContent-Length: 5"), Err(Malformed::Framing));
    assert_eq!(wrong("Content-Length: 5\r\nContent-Length: 6"), Err(Malformed::Framing));
    assert_eq!(wrong("Content-Length: 5\r\nTransfer-Encoding: chunked"), Err(Malformed::Framing));
    for bad in ["-1", "", "5 5", "0x5", "18446744073709551616", "5, 5"] {
        assert_eq!(wrong(&format!("Content-Length: {bad}")), Err(Malformed::ContentLength));
    }
    assert_eq!(wrong("Transfer-Encoding: gzip"), Err(Malformed::TransferEncoding));
    assert!(matches!(wrong("na me: b"), Err(Malformed::Head(_))));
    assert!(matches!(wrong("A: b\0c"), Err(Malformed::Head(_))));
    assert_eq!(head("HTTP/1.1 099 X\r\n\r\n"), Err(Malformed::StatusCode));
    assert_eq!(head("SSH-2.0-x"), Err(Malformed::NotHttp));
    assert_eq!(head("\r\nHTTP/1.1 200 OK\r\n\r\n"), Err(Malformed::NotHttp));
}

/// httparse #68, rawhttp #56.
#[test]
fn a_folded_field_is_read_as_one_value_with_spaces() {
    let read = |fields: &str| head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).unwrap();
    let policy = "Content-Security-Policy:\r\n     default-src 'self';\r\n\timg-src data:";
    let it = read(&format!("{policy}\r\nContent-Length: 5")).unwrap();
    assert_eq!((it.folded, it.content_length, it.persistent), (true, Some(5), true));
    assert!(!read("Connection: a,\r\n\tclose").unwrap().persistent);
    assert_eq!(read("Content-Length:\n  7").unwrap().content_length, Some(7));
    assert!(read("Transfer-Encoding:\r\n chunked").unwrap().chunked);
    assert!(!read("Content-Length: 5").unwrap().folded);
    for bad in ["Content-Length: 5\r\n 6", " first line", "A: b\r\n fo\0ld"] {
        assert!(head(&format!("HTTP/1.1 200 OK\r\n{bad}\r\n\r\n")).is_err(), "{bad:?}");
    }
}

#[test]
fn a_header_of_a_megabyte_is_refused_whole_or_in_part() {
    let text = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(1 << 20));
    assert_eq!(head(&text), Err(Malformed::HeadTooLong));
    assert_eq!(head(&text[..HEAD_BYTES_MAX]), Ok(None));
    assert_eq!(head(&text[..=HEAD_BYTES_MAX]), Err(Malformed::HeadTooLong));
}

fn any_head() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just("Content-Length: 12".to_owned()),
        Just("content-length:7".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just("Connection: close".to_owned()),
        "[A-Za-z-]{1,16}: ?[ -~]{0,40}",
    ];
    ("[01]", 0u16..1000, "[ -~]{0,12}", prop::collection::vec(field, 0..8)).prop_map(
        |(minor, status, reason, fields)| {
            let mut text = format!("HTTP/1.{minor} {status:03} {reason}\r\n");
            for field in fields {
                text.push_str(&field);
                text.push_str("\r\n");
            }
            text.push_str("\r\n");
            text.into_bytes()
        },
    )
}

proptest! {
    #[test]
    fn the_fast_reader_agrees_with_httparse_where_it_decides(
        mut bytes in any_head(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Usual::Head(head) = parse_usual(&bytes) {
            prop_assert_eq!(parse_any(&bytes), Ok(head));
        }
    }

    #[test]
    fn what_was_read_before_changes_nothing(
        heads in prop::collection::vec(any_head(), 2),
        order in prop::collection::vec((0usize..2, any::<prop::sample::Index>()), 1..8),
    ) {
        for (which, cut) in order {
            let bytes = &heads[which];
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                prop_assert_eq!(parse(bytes), parse_anew(bytes));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        let _ = parse(&[b"HTTP/1.1 200 ".as_slice(), &bytes].concat());
    }
}

/// Reads `input` in pieces of the given length: the payload, and what follows the body.
fn read(input: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
    let mut framing = Framing::Chunked(Chunks::default());
    let mut payload = Vec::new();
    let mut after = Vec::new();
    for mut part in input.chunks(piece) {
        while !part.is_empty() && !framing.is_complete() {
            let (taken, data) = framing.take(part)?;
            payload.extend_from_slice(data);
            part = &part[taken..];
        }
        after.extend_from_slice(part);
    }
    Ok((payload, after))
}

#[test]
fn chunks_with_extensions_and_trailers_are_read_at_any_fragmentation() {
    let input = b"4;a=\"b\"\r\nWiki\r\n6 \r\npedia \r\n\
        E\r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\nrest";
    for piece in 1..=input.len() {
        let (payload, after) = read(input, piece).unwrap();
        assert_eq!(payload, b"Wikipedia in \r\n\r\nchunks.");
        assert_eq!(after, b"rest");
    }
}

#[test]
fn wrong_chunks_are_malformed() {
    for bad in ["\r\n", "x\r\n", "5\nhello", "1\r\nab\r\n", "11111111111111111\r\n", "-1\r\n"] {
        assert!(read(bad.as_bytes(), 3).is_err(), "{bad:?}");
    }
    let endless = format!("5;{}", "x".repeat(5_000));
    assert_eq!(read(endless.as_bytes(), 100), Err(Malformed::ChunkSize));
    let endless = format!("0\r\n{}", "a: b\r\n".repeat(20_000));
    assert_eq!(read(endless.as_bytes(), 1_000), Err(Malformed::TrailerTooLong));
}

proptest! {
    #[test]
    fn arbitrary_chunk_bytes_never_panic(
        input in prop::collection::vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()],
            0..200,
        ),
        piece in 1usize..20,
    ) {
        let _ = read(&input, piece);
    }
}

#[test]
fn settings_and_goaway_are_known_from_other_bytes() {
    // What nghttpd 1.52 sends to a GET of HTTP/1.1.
    let nghttpd = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
    assert!(begins_http2(&nghttpd));
    assert_eq!(parse(&nghttpd), Err(Malformed::Http2));
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert!(begins_http2(&goaway));
    let no_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    assert!(begins_http2(&no_settings), "all settings may be the defaults");
    for at in [2, 3, 8] {
        let mut other = nghttpd;
        other[at] = 9;
        assert!(!begins_http2(&other), "{other:?}");
        assert_eq!(parse(&other), Err(Malformed::NotHttp));
    }
    for other in [&nghttpd[..8], b"SSH-2.0-OpenSSH_9.2", b"HTTP/1.1 200 OK", b""] {
        assert!(!begins_http2(other), "{other:?}");
    }
    let tls_alert = [0x15, 3, 3, 0, 2, 2, 10, 0, 0, 0];
    assert!(!begins_http2(&tls_alert));
}
