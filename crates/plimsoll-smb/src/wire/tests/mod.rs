use plimsoll_fuzz::smb_entries::every_decoder;
use proptest::prelude::*;

use super::frame::{Assembler, FRAME_BYTES_MAX, FrameError, begin, finish};
use super::header::flags;
use super::*;

mod golden;
mod lenient;
mod oracle;
mod sample;

/// Frames of `messages`, one behind the other.
fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        let at = begin(&mut out);
        out.extend_from_slice(message);
        finish(&mut out, at);
    }
    out
}

proptest! {
    #[test]
    fn a_stream_in_any_pieces_gives_its_messages(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
        piece in 1usize..300,
    ) {
        let mut assembler = Assembler::new();
        let mut read = Vec::new();
        for bytes in stream(&messages).chunks(piece) {
            let take = |message: &[u8]| { read.push(message.to_vec()); Ok::<_, FrameError>(()) };
            assembler.push(bytes, take).unwrap();
        }
        prop_assert_eq!(read, messages);
        prop_assert_eq!(assembler.buffered_bytes(), 0);
    }

    #[test]
    fn no_bytes_upset_a_decoder(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        every_decoder(&bytes);
    }

    #[test]
    fn a_message_with_a_few_wrong_bytes_upsets_no_decoder(
        sample in any::<prop::sample::Index>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let samples = sample::bodies();
        let mut bytes = samples[sample.index(samples.len())].clone();
        for (at, byte) in wrong {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        every_decoder(&bytes);
    }
}

#[test]
fn a_message_cut_short_upsets_no_decoder() {
    for bytes in sample::bodies() {
        (0..=bytes.len()).for_each(|length| every_decoder(&bytes[..length]));
    }
}

#[test]
fn a_whole_message_is_handed_on_where_it_lies() {
    let bytes = stream(&[vec![1, 2, 3], vec![4]]);
    let mut assembler = Assembler::new();
    let mut rest = &bytes[..];
    let first = assembler.take(&mut rest).unwrap().unwrap();
    assert!(std::ptr::eq(first.as_ptr(), &raw const bytes[4]));
    assert_eq!(assembler.take(&mut rest).unwrap(), Some(&[4][..]));
    assert_eq!(assembler.take(&mut rest), Ok(None));
}

#[test]
fn a_message_that_is_too_long_or_of_another_protocol_ends_the_stream() {
    let bytes = FRAME_BYTES_MAX + 1;
    let header = (bytes as u32).to_be_bytes();
    for piece in [1, 4] {
        let mut assembler = Assembler::new();
        let pushed: Result<(), _> = header
            .chunks(piece)
            .try_for_each(|bytes| assembler.push(bytes, |_| Ok::<_, FrameError>(())));
        assert_eq!(pushed, Err(FrameError::TooLong { bytes }));
    }
    let mut assembler = Assembler::new();
    assert_eq!(assembler.take(&mut &b"HTTP/1.1"[..]), Err(FrameError::Kind(b'H')));
}

#[test]
fn an_announced_length_costs_no_memory() {
    let mut assembler = Assembler::new();
    let mut bytes = &(FRAME_BYTES_MAX as u32).to_be_bytes()[..];
    assert_eq!(assembler.take(&mut bytes), Ok(None));
    assert_eq!(assembler.buffered_bytes(), 0);
}

/// Three related commands as one message.
fn compound() -> Vec<u8> {
    let mut out = Vec::new();
    let create = Header { message_id: 7, credits: 1, ..Header::new(Command::Create) };
    create.encode(&mut out);
    let name = Text::from("a\\bcd");
    CreateRequest::new(name, create::Disposition::Open, create::access::READ_ATTRIBUTES)
        .encode(&mut out);
    let at = chain(&mut out, 0);
    let related = flags::RELATED;
    Header { message_id: 8, flags: related, ..Header::new(Command::QueryInfo) }.encode(&mut out);
    QueryInfoRequest { file_id: FileId::RELATED, ..Default::default() }.encode(&mut out);
    chain(&mut out, at);
    Header { message_id: 9, flags: related, ..Header::new(Command::Close) }.encode(&mut out);
    CloseRequest { file_id: FileId::RELATED, flags: 0 }.encode(&mut out);
    out
}

#[test]
fn a_compound_reads_back_as_its_commands() {
    let message = compound();
    let parts: Result<Vec<_>, _> = Parts::new(&message).collect();
    let parts = parts.unwrap();
    let commands: Vec<_> = parts.iter().map(|part| part.header.command).collect();
    assert_eq!(commands, [Command::Create, Command::QueryInfo, Command::Close]);
    assert_eq!(CreateRequest::decode(parts[0].body).unwrap().name, "a\\bcd");
    assert_ne!(parts[2].header.flags & flags::RELATED, 0);
    assert_eq!(CloseRequest::decode(parts[2].body).unwrap().file_id, FileId::RELATED);
    assert!(parts.iter().all(|part| part.bytes.as_ptr().addr() % 8 == message.as_ptr().addr() % 8));
}

#[test]
fn a_compound_that_points_back_between_or_out_ends_with_an_error() {
    let sound = compound();
    for next in [1, 8, 63, 65, 68, sound.len() as u32, u32::MAX, u32::MAX - 7] {
        let mut message = sound.clone();
        message[20..24].copy_from_slice(&next.to_le_bytes());
        let parts: Vec<_> = Parts::new(&message).collect();
        assert!(parts.last().is_some_and(Result::is_err), "{next}: {parts:?}");
        assert!(parts.len() <= 2);
    }
    assert!(Parts::new(&[]).next().is_some_and(|part| part.is_err()));
}

#[test]
fn every_status_has_one_number_and_one_name() {
    for (number, name) in status::ALL {
        assert_eq!(status::parse(name), Some(*number));
        assert_eq!(status::parse(name.strip_prefix("NT_").unwrap()), Some(*number));
        assert_eq!(status::parse(status::name(*number).unwrap()), Some(*number), "{name}");
    }
    assert!(status::ALL.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(status::parse("NT_STATUS_OK"), Some(status::SUCCESS));
    assert_eq!(status::name(0xc000_0034), Some("NT_STATUS_OBJECT_NAME_NOT_FOUND"));
    assert_eq!(status::parse("0xC000000F"), Some(status::NO_SUCH_FILE));
    assert_eq!((status::parse("NT_STATUS_"), status::name(0xdead_beef)), (None, None));
    assert_eq!(status::Named(0xdead_beef).to_string(), "NTSTATUS 0xDEADBEEF");
}

#[test]
fn failures_are_errors_and_warnings_but_for_an_answer_that_did_not_fit() {
    let failures = [status::ACCESS_DENIED, status::NO_MORE_FILES, status::STOPPED_ON_SYMLINK];
    assert!(failures.into_iter().all(status::is_failure));
    let others = [status::SUCCESS, status::PENDING, status::BUFFER_OVERFLOW];
    assert!(!others.into_iter().any(status::is_failure));
}

#[test]
fn text_is_the_same_however_it_is_held() {
    for text in ["", "plimsoll-files\\client00001", "größe", "🗀\\x"] {
        let mut wire = Vec::new();
        Text::from(text).encode(&mut wire);
        assert_eq!(wire.len(), Text::from(text).wire_bytes());
        assert_eq!(Text::Utf16(&wire), text);
        assert_eq!(Text::Utf16(&wire).to_string(), text);
    }
    assert_eq!(Text::Utf16(&[0x00, 0xd8, b'a', 0]).to_string(), "\u{fffd}a");
}
