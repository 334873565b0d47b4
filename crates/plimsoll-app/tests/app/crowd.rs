//! Many connections at once.

use plimsoll_app::server::AppConfig;
use plimsoll_app::wire::{Hello, Refusal, RequestHeader, RequestType, Status, VERSION};
use plimsoll_servers::raise_descriptor_limit;
use plimsoll_testkit::skips::skip;

use crate::support::{Client, config, frame, request, serve};
use plimsoll_testkit::program::wait_until;

/// Connections of the largest crowd; both ends are in this process.
const CROWD: u32 = 5_000;

#[test]
fn five_thousand_connections_are_served_at_once() {
    raise_descriptor_limit();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < u64::from(2 * CROWD) + 1_000) {
        return skip(&format!("{limit:?} descriptors are too few for {CROWD} connections"));
    }
    let server = serve(&config());
    let mut clients: Vec<Client> = (0..CROWD).map(|_| server.stranger()).collect();
    for (client, number) in clients.iter_mut().zip(0..) {
        client.send(&Hello { version: VERSION, client: number, segment_bytes: 0 }.encode());
    }
    for client in &mut clients {
        assert_eq!(client.welcome().refusal, None);
    }
    for round in 0..2 {
        let question = RequestHeader { id: round, size: 64, ..request(RequestType::ClientServer) };
        for client in &mut clients {
            client.send(&frame(question, &[9; 300]));
        }
        for client in &mut clients {
            let (header, payload) = client.reply();
            assert_eq!((header.id, header.status, payload.len()), (round, Status::Ok, 64));
        }
    }
    assert_eq!(server.metric("connections"), f64::from(CROWD + 1));
    assert_eq!(
        server.metric("requests_total{type=\"client_server\",status=\"ok\"}"),
        f64::from(2 * CROWD)
    );
    drop(clients);
    wait_until("all have left", || server.metric("connections") == 1.0);
}

#[test]
fn one_too_many_is_told_so_and_let_in_once_another_has_left() {
    let server = serve(&AppConfig { connections_max: 2, ..config() });
    let mut clients = [server.client(1, 0), server.client(2, 0)];
    let mut third = server.stranger();
    third.send(&Hello { version: VERSION, client: 3, segment_bytes: 0 }.encode());
    assert_eq!(third.welcome().refusal, Some(Refusal::Full));
    third.check_ended();
    assert_eq!(clients[0].ask(request(RequestType::ServerClient), b"").0.status, Status::Ok);
    drop(clients);
    wait_until("there is room again", || {
        let mut client = server.stranger();
        client.send(&Hello { version: VERSION, client: 3, segment_bytes: 0 }.encode());
        client.welcome().refusal.is_none()
    });
}
