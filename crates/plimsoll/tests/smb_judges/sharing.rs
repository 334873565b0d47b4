//! A sharing violation as a real Samba gives it: another client has files to itself.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};
use plimsoll_servers::Login;
use plimsoll_smb::client::SmbClient;
use plimsoll_smb::logon::{Credentials, LogonRequest, Offer};
use plimsoll_smb::op::Disposition;
use plimsoll_smb::server::samba::SambaRequest;
use plimsoll_smb::wire::create::{access, share_access};
use plimsoll_smb::wire::{CreateRequest, Text, status};
use plimsoll_testkit::smb_peers::samba_as;

use crate::share::{PASSWORD, run};

const SEED_FILES: &str = "plimsoll-files\\client00000\\seed";

#[test]
fn files_that_another_client_has_to_itself_are_counted_and_cost_nobody_else() {
    let login = Login { user: "ann".to_owned(), password: PASSWORD.to_owned() };
    let request = SambaRequest { login: Some(login), ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let mut other = other_client(server.address);
    // To the end of the run: its opens end with its connection.
    let held = || {
        let files = other.list(SEED_FILES).unwrap().unwrap();
        for file in &files {
            let path = format!("{SEED_FILES}\\{}", file.name);
            let create = CreateRequest {
                share_access: share_access::NONE,
                ..CreateRequest::new(Text::Utf8(&path), Disposition::Open, access::READ_DATA)
            };
            other.create(&create).unwrap();
        }
        assert!(files.len() > 10, "{files:?}");
    };
    let think = ["--set", "profiles.quick.think_scale=0.2", "--set", "workload.shared_percent=0"];
    let url = format!("smb://ann@{}/share", server.address);
    let finished = run(&url, &[&["--points", "3"], &think[..]].concat(), held);
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

fn other_client(address: SocketAddr) -> SmbClient {
    let credentials = Credentials::named("ann", PASSWORD);
    let offer = Offer { client_guid: [0xaa; 16], ..Offer::default() };
    let unc = format!("\\\\{}\\share", address.ip());
    let request = LogonRequest { credentials: &credentials, offer: &offer, unc: &unc, nonce: 5 };
    SmbClient::logon(&Sockets, address, &request, Arc::default()).unwrap()
}

/// TCP of this host.
#[derive(Debug)]
struct Sockets;

struct Stream(TcpStream);

impl Dial for Sockets {
    fn dial(
        &self,
        address: SocketAddr,
        _: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let stream = TcpStream::connect(address).map_err(ChannelError::Failed)?;
        Ok(Box::new(Stream(stream)))
    }
}

impl Channel for Stream {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.0.write_all(bytes).map_err(ChannelError::Failed)
    }

    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
        self.0.set_read_timeout(Some(wait)).map_err(ChannelError::Failed)?;
        let mut buffer = vec![0; 65_536];
        match self.0.read(&mut buffer) {
            Ok(0) => Err(ChannelError::Closed),
            Ok(length) => {
                into.extend_from_slice(&buffer[..length]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(ChannelError::Timeout),
            Err(error) => Err(ChannelError::Failed(error)),
        }
    }
}
