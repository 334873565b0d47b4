//! A sharing violation as a real Samba gives it: another client has files to itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use plimsoll_servers::Login;
use plimsoll_smb::logon::{Credentials, Established, Logon, LogonProgress, LogonRequest, Offer};
use plimsoll_smb::op::Disposition;
use plimsoll_smb::server::samba::SambaRequest;
use plimsoll_smb::wire::create::{access, share_access};
use plimsoll_smb::wire::header::{Command, Header, Parts};
use plimsoll_smb::wire::{CreateRequest, Text, frame, status};
use plimsoll_testkit::smb_peers::{samba_as, share_of};

use plimsoll_testkit::shared_files::{PASSWORD, run};

const SEED_FILES: &str = "plimsoll-files/client00000/seed";

#[test]
fn files_that_another_client_has_to_itself_are_counted_and_cost_nobody_else() {
    let login = Login { user: "ann".to_owned(), password: PASSWORD.to_owned() };
    let request = SambaRequest { login: Some(login), ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let mut other = OtherClient::log_on(server.address);
    // To the end of the run: its opens end with its connection.
    let hold_seed_files = || {
        let files: Vec<_> = fs::read_dir(share_of(&server).join(SEED_FILES)).unwrap().collect();
        for file in &files {
            let name = file.as_ref().unwrap().file_name().into_string().unwrap();
            other.hold(&format!("{SEED_FILES}/{name}").replace('/', "\\"));
        }
        assert!(files.len() > 10, "{files:?}");
    };
    let think = ["--set", "profiles.quick.think_scale=0.2", "--set", "workload.shared_percent=0"];
    let url = format!("smb://ann@{}/share", server.address);
    let finished = run(&url, &[&["--points", "3"], &think[..]].concat(), hold_seed_files);
    finished.ended.check(1, &["invalid"]);
    let point = finished.point();
    let counts = point["unexpected"].as_array().unwrap();
    let refused = |one: &serde_json::Value| {
        one["op"] == "create" && one["actual"] == status::SHARING_VIOLATION
    };
    assert!(counts.iter().any(refused), "{point}");
    // Only the owner of these files can be lost.
    assert!(finished.stayed() >= 2, "{point}");
    assert!(finished.unexpected() > 0);
}

/// Opens files without sharing them.
struct OtherClient {
    stream: TcpStream,
    session: Box<Established>,
}

impl OtherClient {
    fn log_on(address: SocketAddr) -> Self {
        let credentials = Credentials::named("ann", PASSWORD);
        let offer = Offer { client_guid: [0xaa; 16], ..Offer::default() };
        let unc = format!("\\\\{}\\share", address.ip());
        let request =
            LogonRequest { credentials: &credentials, offer: &offer, unc: &unc, nonce: 5 };
        let mut stream = TcpStream::connect(address).unwrap();
        let (mut logon, mut out) = (Logon::new(&request), Vec::new());
        logon.start(&mut out);
        loop {
            stream.write_all(&out).unwrap();
            out.clear();
            let message = receive(&mut stream);
            if let LogonProgress::Done(session) = logon.on_message(&message, &mut out).unwrap() {
                return Self { stream, session };
            }
        }
    }

    fn hold(&mut self, path: &str) {
        let Self { stream, session } = self;
        let mut out = Vec::new();
        frame::begin(&mut out);
        let header = Header {
            message_id: session.next_message_id,
            credit_charge: 1,
            credits: 1,
            tree_id: session.tree_id,
            session_id: session.session_id,
            ..Header::new(Command::Create)
        };
        header.encode(&mut out);
        let create = CreateRequest {
            share_access: share_access::NONE,
            ..CreateRequest::new(Text::Utf8(path), Disposition::Open, access::READ_DATA)
        };
        create.encode(&mut out);
        frame::finish(&mut out, 0);
        session.seal.protect(&mut out, 0);
        stream.write_all(&out).unwrap();
        session.next_message_id += 1;
        let (message, mut plain) = (receive(stream), Vec::new());
        let reply = Parts::new(session.seal.open(&message, &mut plain).unwrap()).next();
        assert_eq!(reply.unwrap().unwrap().header.status, status::SUCCESS, "{path}");
    }
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).unwrap();
    message
}
