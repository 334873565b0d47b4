//! The metrics over HTTP, for Prometheus and for people with a browser.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use plimsoll_servers::timed::{Clients, EDGES, EventFlags, Timed};
use plimsoll_servers::web::{Closed, Head, Reply, Status, WebClient};
use plimsoll_servers::{ServerError, Stop};

use super::service::Shared;

/// How long a connection may stay, however slow its client is.
const CONNECTION_NS_MAX: u64 = 10_000_000_000;
/// Longest body of a request, which is not looked at.
const BODY_BYTES_MAX: usize = 4_096;

/// Serves the metrics until `stop` is requested, which a failure does too. Blocks the calling
/// thread.
pub(super) fn serve_until(
    listener: TcpListener,
    shared: Arc<Shared>,
    stop: &Stop,
) -> Result<(), ServerError> {
    let clients = Clients::new(listener, &[]);
    let served = clients.and_then(|clients| clients.serve(&mut Scrapes(shared), stop));
    stop.request();
    served.map(drop)
}

struct Scrapes(Arc<Shared>);

impl Timed for Scrapes {
    type Client = WebClient;
    const CLIENTS_MAX: usize = 32;
    const LOOK_UP_NS: u64 = 50_000_000;

    fn act(&mut self, clients: &mut Clients<WebClient>, now_ns: u64) {
        clients.retain(|client| now_ns < client.accepted_ns + CONNECTION_NS_MAX);
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn admit(&mut self, clients: &mut Clients<WebClient>, stream: TcpStream, now_ns: u64) {
        clients.add(WebClient::new(stream, BODY_BYTES_MAX, now_ns), EDGES);
    }

    fn hear(&mut self, clients: &mut Clients<WebClient>, index: usize, _: EventFlags) {
        self.resume(clients, index);
    }

    fn resume(&mut self, clients: &mut Clients<WebClient>, index: usize) {
        let Some(client) = clients.get_mut(index) else { return };
        match client.exchange(|head| reply(head, &self.0)) {
            Ok(false) => {}
            Ok(true) => clients.requeue(index),
            // A scraper whose request fails notices it itself.
            Err(Closed) => drop(clients.remove(index)),
        }
    }
}

fn reply(head: &Head, shared: &Shared) -> Reply<'static> {
    match (head.method.as_str(), head.path.as_str()) {
        ("GET" | "HEAD", "/metrics") => Reply::text(Status::Ok, shared.status()),
        ("GET" | "HEAD", _) => Reply::text(Status::NotFound, "the metrics are at /metrics\n"),
        _ => Reply {
            fields: "allow: GET, HEAD\r\n".into(),
            ..Reply::text(Status::MethodNotAllowed, "only GET and HEAD\n")
        },
    }
}
