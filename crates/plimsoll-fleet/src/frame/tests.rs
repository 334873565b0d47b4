use plimsoll_model::assignment::{Assignment, Load, Phases, PointId, Purpose};
use plimsoll_model::suite::{Arrivals, InterArrival};
use plimsoll_model::units::OpsPerSec;
use proptest::prelude::*;

use super::*;
use crate::message::{FromAgent, PointReport, ToAgent};
use crate::testing::assignment;

fn decoded<M: DeserializeOwned>(bytes: &[u8]) -> Result<Option<M>, FrameError> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    decoder.next()
}

fn refusal(bytes: &[u8]) -> String {
    decoded::<FromAgent>(bytes).unwrap_err().to_string()
}

fn clock(sent_ns: u64) -> ToAgent {
    ToAgent::Clock { sent_ns }
}

fn shown<T: std::fmt::Debug>(value: &T) -> String {
    format!("{value:?}")
}

#[test]
fn a_message_has_a_header_of_ten_bytes() {
    let frame = encode(&ToAgent::Alive).unwrap();
    assert_eq!(frame[..HEADER_BYTES], *b"PLMS\0\x01\0\0\0\x06");
    assert_eq!(frame[HEADER_BYTES..], *b"\xa5Alive");
    let frame = encode(&clock(7)).unwrap();
    assert_eq!(frame[HEADER_BYTES..], *b"\x81\xa5Clock\x81\xa7sent_ns\x07");
}

#[test]
fn an_assignment_comes_back_as_it_was() {
    let phases = Phases { ops: Some(1_000), ..assignment(1).phases };
    let open = Load::Open {
        rate_ops_per_s: OpsPerSec::new(1_234.5).unwrap(),
        arrivals: Arrivals::PerClient,
        gaps: InterArrival::Uniform,
        clients: 64,
        backlog_ops_max: 65_536,
    };
    let expected = Assignment {
        point: PointId { ordinal: 3, purpose: Purpose::Verify },
        load: open,
        phases,
        sources: vec!["10.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()],
        ..assignment(3)
    };
    let frame = encode(&ToAgent::Point(Box::new(expected.clone()))).unwrap();
    let Ok(Some(ToAgent::Point(read))) = decoded(&frame) else { panic!("no assignment") };
    assert_eq!(*read, expected);
    let report = PointReport { started_ns: u64::MAX, clock_step_ns: -5, ..PointReport::default() };
    let frame = encode(&FromAgent::Finished(Box::new(report.clone()))).unwrap();
    let Ok(Some(FromAgent::Finished(read))) = decoded(&frame) else { panic!("no report") };
    assert_eq!(*read, report);
}

#[test]
fn text_before_the_first_message_is_shown_with_what_it_suggests() {
    let cases: [(&[u8], &str); 7] = [
        (b"Welcome to node7!\n", "shell start-up file"),
        ("Grüße von Knoten 7\n".as_bytes(), "shell start-up file"),
        (b"root@node7's password: ", "BatchMode"),
        (b"bash: plimsoll: command not found\n", "--deploy"),
        (b"Usage: plimsoll [COMMAND]\n", "another program"),
        (b"0: PLMS\0\x01", "--label"),
        (b"\x16\x03\x01\0\xa5\x01\0\0\xa1\x03\x03", "something other than"),
    ];
    for (bytes, suggests) in cases {
        let text = refusal(bytes);
        assert!(text.contains(suggests), "{text}");
    }
    assert!(refusal(b"Welcome to node7!\n").contains(r#"got "Welcome to node7!\n";"#));
    let shown = refusal("é".repeat(2_000).as_bytes());
    assert!(shown.len() < 800, "a long text is cut: {shown}");
}

#[test]
fn text_between_messages_is_refused_and_nothing_after_it_is_read() {
    let alive = encode(&ToAgent::Alive).unwrap();
    let mut decoder = Decoder::default();
    decoder.push(&[&alive[..], b"segmentation fault", &alive[..]].concat());
    assert!(matches!(decoder.next(), Ok(Some(ToAgent::Alive))));
    let error = decoder.next::<ToAgent>().unwrap_err();
    assert!(error.to_string().contains("besides the agent"), "{error}");
    decoder.push(&alive);
    assert_eq!(decoder.next::<ToAgent>().unwrap_err(), error);
    assert_eq!(decoder.end().unwrap_err(), error);
}

#[test]
fn a_frame_of_two_gibibytes_is_refused_before_any_of_it_arrives() {
    let header = [b"PLMS\0\x01".as_slice(), &(2_u32 << 30).to_be_bytes()].concat();
    assert_eq!(decoded::<FromAgent>(&header).unwrap_err(), FrameError::TooLong { bytes: 2 << 30 });
    let longest = [b"PLMS\0\x01".as_slice(), &(FRAME_BYTES_MAX as u32).to_be_bytes()].concat();
    let mut decoder = Decoder::default();
    decoder.push(&longest);
    assert!(matches!(decoder.next::<FromAgent>(), Ok(None)));
    assert!(decoder.bytes.capacity() < 100, "only what arrived is held");
    assert_eq!(decoder.end(), Err(FrameError::Cut));
}

#[test]
fn a_message_that_is_too_long_is_not_written() {
    let suite = "x".repeat(FRAME_BYTES_MAX);
    let error = encode(&ToAgent::Hello { version: suite }).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { .. }));
}

#[test]
fn another_format_is_named_with_ours() {
    let text = refusal(b"PLMS\0\x09\0\0\0\0");
    assert!(text.contains("format 9") && text.contains("program 1"), "{text}");
}

#[test]
fn a_payload_that_is_no_message_or_more_than_one_is_broken() {
    let alive = encode(&ToAgent::Alive).unwrap();
    let longer = [&b"PLMS\0\x01\0\0\0\x07"[..], &alive[HEADER_BYTES..], b"\0"].concat();
    assert!(refusal(&longer).contains("1 bytes after"), "{}", refusal(&longer));
    let nested = [&b"PLMS\0\x01\0\x01\0\0"[..], &[0x91; 1 << 16]].concat();
    assert!(matches!(decoded::<FromAgent>(&nested), Err(FrameError::Broken { .. })));
    assert!(matches!(decoded::<FromAgent>(b"PLMS\0\x01\0\0\0\0"), Err(FrameError::Broken { .. })));
}

#[test]
fn a_decoder_gives_the_memory_of_a_long_message_back() {
    let version = "x".repeat(4 * KEPT_BYTES);
    let mut decoder = Decoder::default();
    decoder.push(&encode(&ToAgent::Hello { version }).unwrap());
    assert!(matches!(decoder.next(), Ok(Some(ToAgent::Hello { .. }))));
    decoder.push(b"P");
    assert!(decoder.bytes.capacity() <= KEPT_BYTES);
}

/// What a stream of agents or of anything else may hold.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let greeting = FromAgent::Hello(Box::default());
    prop_oneof![
        Just(encode(&FromAgent::Alive).unwrap()),
        Just(encode(&greeting).unwrap()),
        Just(encode(&FromAgent::Finished(Box::default())).unwrap()),
        Just(b"PLMS\0\x01\0\0".to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn no_bytes_break_a_decoder(
        pieces in prop::collection::vec(piece(), 0..8),
        at in any::<prop::sample::Index>(),
        flip in any::<u8>(),
    ) {
        let mut bytes = pieces.concat();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        let mut decoder = Decoder::default();
        for piece in bytes.chunks(7) {
            decoder.push(piece);
            while let Ok(Some(_)) = decoder.next::<FromAgent>() {}
            prop_assert!(decoder.bytes.len() <= bytes.len());
        }
    }

    #[test]
    fn a_stream_reads_the_same_however_it_is_cut(
        times in prop::collection::vec(any::<u64>(), 0..20),
        cuts in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let sent: Vec<ToAgent> = times.into_iter().map(clock).collect();
        let stream: Vec<u8> = sent.iter().flat_map(|m| encode(m).unwrap()).collect();
        let (mut decoder, mut read) = (Decoder::default(), Vec::new());
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            decoder.push(now);
            while let Some(message) = decoder.next::<ToAgent>().unwrap() {
                read.push(message);
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(shown(&read), shown(&sent));
        prop_assert_eq!(decoder.end(), Ok(()));
    }
}
