//! The same bytes as tshark reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use plimsoll_testkit::peers::require_peer;

use super::{Exchange, callbacks, directories, files, opens, sessions};
use crate::wire::tests::golden::hex;
use crate::wire::v4::{
    CALLBACK_PROGRAM, CALLBACK_VERSION, CallbackOperation, Operation, PROGRAM, Procedure, Status4,
    VERSION,
};
use crate::wire::{record, rpc};

/// Fields of a message by their names.
type Fields<'a> = BTreeMap<&'a str, String>;

/// An exchange, the numbers of its operations, and fields of its call and of its reply. A field
/// that occurs more than once has commas between its values.
type Expected = (
    fn() -> Exchange,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str)],
);

const CLIENT_ID: (&str, &str) = ("nfs.clientid", "0x0000000100000002");
const HANDLE: (&str, &str) = ("nfs.fhandle", "aabbccddee");
const NAME: (&str, &str) = ("nfs.pathname.component", "f1");
const NEW_NAME: (&str, &str) = ("nfs.pathname.component", "new");
const OTHER: (&str, &str) = ("nfs.stateid.other", "6f74686572206f66206f6e65");
const NEWEST: (&str, &str) = ("nfs.stateid.seqid", "0");
const FIRST: (&str, &str) = ("nfs.stateid.seqid", "1");
const SECOND: (&str, &str) = ("nfs.stateid.seqid", "2");

const EXPECTED: [Expected; 27] = [
    (sessions::exchange_id, "42", &[("nfs.nii_name4", "makers")], &[CLIENT_ID]),
    (sessions::create_session, "43", &[CLIENT_ID], &[("nfs.session_id4", SESSION)]),
    (sessions::reclaim_complete, "53,58", &[], &[]),
    (sessions::lone_sequence, "53", &[], &[]),
    (sessions::root, "53,24,15,10,9", &[("nfs.pathname.component", "export")], &[HANDLE]),
    (sessions::bind_connection, "41", &[("nfs.session_id4", SESSION)], &[]),
    (sessions::destroy_session, "44", &[("nfs.session_id4", SESSION)], &[]),
    (sessions::destroy_client_id, "57", &[CLIENT_ID], &[]),
    (
        opens::create,
        "53,22,18,10,3,9",
        &[NAME, CLIENT_ID, ("nfs.open.claim_type", "0"), ("nfs.open.opentype", "1")],
        &[FIRST, OTHER, HANDLE, ("nfs.open.why_no_delegation", "3")],
    ),
    (
        opens::open_to_read,
        "53,22,18,10,3,9",
        &[HANDLE, ("nfs.open.claim_type", "4"), ("nfs.open.opentype", "0")],
        &[("nfs.stateid.seqid", "1,2"), ("nfs.open.delegation_type", "1"), ("nfs.who", WHO)],
    ),
    (
        opens::open_again,
        "53,22,18,10,3,9",
        &[HANDLE, ("nfs.open.claim_type", "1"), ("nfs.delegate_type", "2")],
        &[("nfs.stateid.seqid", "1,2"), ("nfs.open.delegation_type", "2"), ("nfs.who", WHO)],
    ),
    (files::read, "53,22,25", &[HANDLE, NEWEST, OTHER], &[]),
    (files::write, "53,22,38,9", &[HANDLE, NEWEST, OTHER], &[]),
    (files::commit, "53,22,5", &[HANDLE], &[]),
    (files::set_attributes, "53,22,34,9", &[HANDLE, NEWEST], &[]),
    (opens::close, "53,22,9,4", &[HANDLE, FIRST, OTHER], &[]),
    (files::return_delegation, "53,22,8", &[HANDLE, SECOND, OTHER], &[]),
    (files::access, "53,22,3,9", &[HANDLE], &[("nfs.fattr4_owner", "1000")]),
    (files::space, "53,22,9", &[HANDLE], &[("nfs.fattr4.space_total", "12288")]),
    (directories::lookup, "53,22,15,10,9", &[NAME], &[HANDLE, ("nfs.fattr4.size", "4294967298")]),
    (directories::list, "53,22,26", &[HANDLE], &[("nfs.name", "f1,g")]),
    (directories::read_link, "53,22,27", &[HANDLE], &[]),
    (directories::remove, "53,22,28", &[NAME], &[]),
    (directories::rename, "53,22,32,22,29", &[("nfs.pathname.component", "f1,new")], &[]),
    (directories::make_directory, "53,22,6,31,9", &[NEW_NAME], &[]),
    (directories::make_link, "53,22,6,31,9", &[NEW_NAME], &[]),
    (directories::make_device, "53,22,6,31,9", &[NEW_NAME], &[]),
];

const CALLBACKS: [Expected; 2] = [
    (callbacks::recall, "11,4", &[HANDLE, SECOND, OTHER], &[]),
    (callbacks::recall_with_referring_calls, "11,4", &[HANDLE, SECOND], &[]),
];

const SESSION: &str = "73657373696f6e206f66207465737473";
const WHO: &str = "EVERYONE@";

/// What SEQUENCE has in a call, and what in a reply.
const SEQUENCE: [&[(&str, &str)]; 2] = [
    &[("nfs.session_id4", SESSION), ("nfs.slotid", "3"), ("nfs.high_slotid", "5")],
    &[("nfs.session_id4", SESSION), ("nfs.slotid", "3"), ("nfs.target_high_slotid", "31")],
];

/// Packets between a client and the server, as text2pcap reads them.
#[derive(Default)]
struct Conversation {
    text: String,
    xid: u32,
}

impl Conversation {
    /// Adds a call and its reply. `directions`: of both, where O leads to the server, I from it.
    fn exchange(&mut self, program: (u32, u32), directions: [char; 2], exchange: &Exchange) {
        self.xid += 1;
        let xid = self.xid;
        let mut call = Vec::new();
        let at = record::begin(&mut call);
        let procedure = Procedure::Compound.number();
        rpc::encode_call(&mut call, xid, program, procedure, &rpc::Credential::none());
        self.packet(directions[0], call, at, &exchange.call);
        let mut reply = Vec::new();
        let at = record::begin(&mut reply);
        rpc::encode_reply_success(&mut reply, xid);
        self.packet(directions[1], reply, at, &exchange.reply);
    }

    fn packet(&mut self, direction: char, mut record: Vec<u8>, at: usize, body: &str) {
        record.extend(hex(body));
        record::finish(&mut record, at);
        let bytes: String =
            record.iter().fold(String::new(), |text, byte| format!("{text} {byte:02x}"));
        writeln!(self.text, "{direction}\n000000{bytes}\n").unwrap();
    }

    /// The fields of each message that tshark finds, and what it dislikes; `None` where it is
    /// missing (see [`require_peer`]).
    fn dissect(&self, fields: &[&'static str]) -> Option<Vec<Fields<'static>>> {
        let (text2pcap, tshark) = (require_peer("text2pcap")?, require_peer("tshark")?);
        let directory = tempfile::tempdir().unwrap();
        let [text, capture] = ["text", "pcapng"].map(|name| directory.path().join(name));
        std::fs::write(&text, &self.text).unwrap();
        let mut convert = Command::new(text2pcap);
        convert.args(["-q", "-D", "-T", "1000,2049"]).args([&text, &capture]);
        assert!(convert.output().unwrap().status.success());
        let mut dissect = Command::new(tshark);
        dissect.arg("-r").arg(&capture).args(["-d", "tcp.port==2049,rpc", "-T", "fields"]);
        for field in fields {
            dissect.args(["-e", field]);
        }
        let output = dissect.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let of_line = |line: &str| {
            let values = line.split('\t').map(str::to_owned);
            fields.iter().copied().zip(values).collect()
        };
        Some(String::from_utf8(output.stdout).unwrap().lines().map(of_line).collect())
    }
}

/// Empty for a message that ends where it should and holds what it should.
const FAULTS: [&str; 2] = ["_ws.malformed", "data.len"];

#[test]
fn tshark_reads_in_every_message_what_was_meant() {
    let mut conversation = Conversation::default();
    for (exchange, ..) in EXPECTED {
        conversation.exchange((PROGRAM, VERSION), ['O', 'I'], &exchange());
    }
    for (exchange, ..) in CALLBACKS {
        let program = (CALLBACK_PROGRAM, CALLBACK_VERSION);
        conversation.exchange(program, ['I', 'O'], &exchange());
    }
    let rows: Vec<_> = EXPECTED.iter().chain(&CALLBACKS).collect();
    let mut fields = [&FAULTS[..], &["nfs.opcode", "nfs.cb.operation"]].concat();
    let expected = rows.iter().flat_map(|(_, _, call, reply)| [*call, *reply]).chain(SEQUENCE);
    fields.extend(expected.flatten().map(|(field, _)| field));
    fields.sort_unstable();
    fields.dedup();
    let Some(messages) = conversation.dissect(&fields) else { return };
    assert_eq!(messages.len(), 2 * rows.len());
    for ((_, operations, call, reply), messages) in rows.into_iter().zip(messages.chunks(2)) {
        for ((message, fields), sequence) in messages.iter().zip([*call, *reply]).zip(SEQUENCE) {
            for fault in FAULTS {
                assert_eq!(message[fault], "", "{fault}: {message:?}");
            }
            let numbers =
                [&message["nfs.opcode"], &message["nfs.cb.operation"]].map(String::as_str);
            assert_eq!(numbers.concat(), *operations);
            let sequence = if operations.starts_with("53") { sequence } else { &[] };
            for (field, value) in fields.iter().chain(sequence) {
                assert_eq!(message[field], *value, "{field}: {message:?}");
            }
        }
    }
}

#[test]
fn tshark_finds_a_compound_that_ends_early_or_late() {
    let mut conversation = Conversation::default();
    let cut = sessions::root().reply.replace("00000000 00080000 ; maxwrite", "");
    let more = sessions::root().reply + "\n00000001";
    for reply in [cut, more, directories::lookup_failed().reply] {
        let exchange = Exchange { reply, ..sessions::root() };
        conversation.exchange((PROGRAM, VERSION), ['O', 'I'], &exchange);
    }
    let Some(messages) = conversation.dissect(&FAULTS) else { return };
    let is_faulty = |message: &Fields<'_>| message.values().any(|fault| !fault.is_empty());
    assert_eq!(
        Vec::from_iter(messages.iter().map(is_faulty)),
        [false, true, false, true, false, false]
    );
}

#[test]
fn tshark_has_the_same_names_of_statuses_and_operations() {
    let Some(tshark) = require_peer("tshark") else { return };
    let output = Command::new(tshark).args(["-G", "values"]).output().unwrap();
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let ["V", field, number, name] = columns[..] else { continue };
        let Ok(number) = number.parse() else { continue };
        let ours = match field {
            "nfs.nfsstat4" => Status4(number).name(),
            "nfs.opcode" => Operation::from_number(number).map(Operation::name),
            "nfs.cb.operation" => CallbackOperation::from_number(number).map(|it| it.name()),
            _ => None,
        };
        if let Some(ours) = ours {
            // These are called by their names in drafts.
            let name = match name {
                "NFS4ERR_READDIR_NOSPC" => "NFS4ERR_RESTOREFH",
                "NFS4ERR_DIRDELEG_UNAVAIL" if number == 10_057 => "NFS4ERR_BACK_CHAN_BUSY",
                name => name,
            };
            assert_eq!(ours, name, "{field} {number}");
            *compared.entry(field).or_default() += 1;
        }
    }
    assert_eq!(compared["nfs.opcode"], Operation::ALL.len());
    assert_eq!(compared["nfs.cb.operation"], CallbackOperation::ALL.len());
    assert!(compared["nfs.nfsstat4"] > 70, "{compared:?}");
}
