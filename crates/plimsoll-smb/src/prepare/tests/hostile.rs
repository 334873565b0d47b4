//! Malicious servers: their replies are refused, and soon.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_engine::interface::ClientContext;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::blocking::{Blocking, LINK, SILENCE_MAX, STOP_HEARD_WITHIN};
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::{Channel, ChannelError};

use crate::logon::{Credentials, Dialect, Established, Identity, Offer};
use crate::op::{Content, Disposition, FindLevel};
use crate::prepare::layout::remove_all;
use crate::prepare::remote::{Remote, site};
use crate::prepare::share::{Kind, Share as _, ShareError, Site};
use crate::seal::Seal;
use crate::session::SmbSession;
use crate::target::SmbTarget;
use crate::wire::create::{CreateAction, CreateRequest, CreateResponse, OplockLevel, attributes};
use crate::wire::fscc::{Entry, EntryList};
use crate::wire::header::{Command, Header, Part, Parts, flags};
use crate::wire::info::QueryDirectoryResponse;
use crate::wire::open_file::CloseResponse;
use crate::wire::text::Text;
use crate::wire::{ErrorResponse, FileId, FileTime, SetInfoResponse, frame, status};

/// Status and body, if there is to be a reply.
type Answer = Option<(u32, Vec<u8>)>;

/// A server that answers as scripted, and keeps sending when it has nothing to answer.
struct Fake<F> {
    answer: F,
    out: Vec<u8>,
    heard: Arc<AtomicU64>,
}

impl<F> Fake<F> {
    fn reply(&mut self, header: &Header, body: &[u8]) {
        let at = self.out.len();
        frame::begin(&mut self.out);
        header.encode(&mut self.out);
        self.out.extend_from_slice(body);
        frame::finish(&mut self.out, at);
    }
}

impl<F: FnMut(Command, &[u8]) -> Answer + Send> Channel for Fake<F> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        for part in Parts::new(&bytes[frame::FRAME_HEADER..]) {
            let Part { header, body, .. } = part.unwrap();
            if let Some((status, body)) = (self.answer)(header.command, body) {
                let flags = flags::RESPONSE | header.flags & flags::RELATED;
                let reply = Header { status, flags, next_command: 0, credits: 80, ..header };
                self.reply(&reply, &body);
            }
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>, _: Duration) -> Result<(), ChannelError> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        if self.out.is_empty() {
            let (flags, message_id) = (flags::RESPONSE, 1_000_000);
            let chat = Header { flags, message_id, ..Header::new(Command::Echo) };
            self.reply(&chat, &[]);
        }
        into.append(&mut self.out);
        Ok(())
    }
}

/// A client of such a server, and how often it has received something.
fn client(
    answer: impl FnMut(Command, &[u8]) -> Answer + Send + 'static,
) -> (Remote, Arc<AtomicU64>) {
    let heard = Arc::new(AtomicU64::new(0));
    let channel = Fake { answer, out: Vec::new(), heard: Arc::clone(&heard) };
    (client_on(Box::new(channel)), heard)
}

/// A client that has logged on over this channel.
pub(in crate::prepare) fn client_on(channel: Box<dyn Channel>) -> Remote {
    let established = Established {
        dialect: Dialect::V3_1_1,
        session_id: 1,
        tree_id: 1,
        seal: Seal::none(),
        next_message_id: 4,
        credits: 80,
        max_read: 0,
        max_write: 0,
        large_mtu: true,
        leasing: false,
        identity: Identity::Guest,
        guest: true,
        signing: None,
        cipher: None,
        nonconformities: Default::default(),
    };
    let target = SmbTarget {
        name: String::new(),
        address: ([127, 0, 0, 1], 1).into(),
        unc: String::new(),
        base: String::new(),
        credentials: Credentials::guest(),
    };
    let site = site(&target, &Offer::default(), &ContentTable::new(1));
    let client =
        ClientContext { client: 0, endpoint: 0, seed: 0, op_timeout: Nanos::MAX, nonce: 0 };
    let mut session = SmbSession::new(Rc::new(site), client).answering();
    session.logged_on(LINK, established);
    Remote(Blocking::new(session, channel, Arc::default()))
}

fn opened() -> Answer {
    let mut body = Vec::new();
    CreateResponse {
        oplock: OplockLevel::None,
        action: CreateAction::Opened,
        creation_time: FileTime::default(),
        last_access_time: FileTime::default(),
        last_write_time: FileTime::default(),
        change_time: FileTime::default(),
        allocation_size: 0,
        end_of_file: 0,
        attributes: attributes::DIRECTORY,
        file_id: FileId::default(),
        lease: None,
    }
    .encode(&mut body);
    Some((status::SUCCESS, body))
}

fn refused(status: u32) -> Answer {
    let mut body = Vec::new();
    ErrorResponse::default().encode(&mut body);
    Some((status, body))
}

fn listing(entries: &[(&str, u32)]) -> Answer {
    let mut output = Vec::new();
    let mut list = EntryList::new(FindLevel::Directory, &output);
    for (name, attributes) in entries {
        let name = Text::Utf8(name);
        list.push(&Entry { name, attributes: *attributes, ..Entry::default() }, &mut output);
    }
    let mut body = Vec::new();
    QueryDirectoryResponse { output: &output }.encode(&mut body);
    Some((status::SUCCESS, body))
}

/// A server whose every directory has these entries; `ends`: a listing ends.
fn with_entries(
    entries: &'static [(&'static str, u32)],
    ends: bool,
) -> impl FnMut(Command, &[u8]) -> Answer + Send {
    let mut is_listed = false;
    move |command, _| match command {
        Command::Create => {
            is_listed = false;
            opened()
        }
        Command::QueryDirectory if is_listed && ends => refused(status::NO_MORE_FILES),
        Command::QueryDirectory => {
            is_listed = true;
            listing(entries)
        }
        Command::SetInfo => {
            let mut body = Vec::new();
            SetInfoResponse {}.encode(&mut body);
            Some((status::SUCCESS, body))
        }
        _ => {
            let mut body = Vec::new();
            CloseResponse::default().encode(&mut body);
            Some((status::SUCCESS, body))
        }
    }
}

fn removed(client: &mut Remote) -> String {
    let open = |_: &Arc<_>| unreachable!("it is open");
    let site = Site { name: "smb://server/share", stop: &Arc::default(), open: &open };
    remove_all(client, &site, "plimsoll-files", Kind::Directory).unwrap_err().to_string()
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    const LISTINGS: [&[(&str, u32)]; 5] = [
        &[(".", 0), ("", 0)],
        &[("..\\letter.txt", 0)],
        &[("a/b", 0)],
        &[("..\\..\\home", attributes::DIRECTORY)],
        &[("a\0", 0)],
    ];
    for entries in LISTINGS {
        let (mut client, _) = client(with_entries(entries, true));
        let error = removed(&mut client);
        assert!(error.contains("a name that no file can have"), "{error}");
    }
}

#[test]
fn what_merely_points_to_a_directory_is_not_entered() {
    const LINK: u32 = attributes::DIRECTORY | attributes::REPARSE_POINT;
    let entries = &[(".", attributes::DIRECTORY), ("link", LINK), ("d", attributes::DIRECTORY)];
    let (mut client, _) = client(with_entries(entries, true));
    let listed = client.list("plimsoll-files").unwrap().unwrap();
    let listed: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.stat.kind)).collect();
    assert_eq!(listed, [("link", Kind::File), ("d", Kind::Directory)]);
}

#[test]
fn a_listing_of_nothing_but_dots_and_a_tree_without_ground_come_to_an_end() {
    let (mut endless, heard) = client(with_entries(&[(".", attributes::DIRECTORY)], false));
    let error = endless.list("plimsoll-files").unwrap_err();
    assert!(matches!(error, ShareError::Unfit("a listing that does not end")), "{error}");
    assert!(heard.load(Ordering::Relaxed) < 10);

    let (mut deep, _) = client(with_entries(&[("x", attributes::DIRECTORY)], true));
    let error = removed(&mut deep);
    assert!(error.contains("that path is longer or deeper than any of ours"), "{error}");
}

#[test]
fn a_server_that_chats_and_does_not_answer_is_silent() {
    let (mut client, heard) = client(|_, _| None);
    let error = client.find("plimsoll-files").unwrap_err();
    assert!(matches!(error, ShareError::Channel(ChannelError::Timeout)), "{error}");
    let waits = SILENCE_MAX.as_millis() / STOP_HEARD_WITHIN.as_millis();
    assert!(u128::from(heard.load(Ordering::Relaxed)) <= waits);
}

#[test]
fn a_server_that_takes_no_bytes_at_once_is_asked_for_some_all_the_same() {
    let mut answer = with_entries(&[], true);
    let (mut client, _) = client(move |command, body| match command {
        Command::Read | Command::Write => refused(status::INVALID_PARAMETER),
        _ => answer(command, body),
    });
    let is = |error: ShareError, expected: Command| {
        let ShareError::Status { command, status } = error else { panic!("{error}") };
        assert_eq!((command, status), (expected, status::INVALID_PARAMETER));
    };
    // Once with others in flight.
    for bytes in [9, 1_000_000] {
        let written = AtomicU64::new(0);
        let error = client.write("f", bytes, Content { key: 1 }, &written).unwrap_err();
        is(error, Command::Write);
        assert_eq!(written.into_inner(), 0);
    }
    is(client.write_text("f", "text").unwrap_err(), Command::Write);
    is(client.read("f", 0, 9).unwrap_err(), Command::Read);
}

#[test]
fn a_name_too_long_for_a_create_does_not_become_another() {
    let (mut client, _) = client(|_, _| panic!("nothing is asked"));
    let name = "x".repeat(32_769);
    assert!(matches!(client.remove(&name, Kind::File), Err(ShareError::Path)));
    let mut body = Vec::new();
    CreateRequest::new(Text::Utf8(&name), Disposition::Open, 0).encode(&mut body);
    assert_eq!(body[46..48], [0xff; 2]);
}
