//! Routes, viewers and connections, each of them bounded.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::{Domain, Socket, Type};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::board::Board;
use super::door::{Door, guard};

/// Event streams at a time: a team, its wall screens, and room.
const VIEWERS_MAX: usize = 32;
/// Connections at a time: a browser opens a few beside its event stream.
const CONNECTIONS_MAX: usize = 128;
/// Waiting to be accepted.
const BACKLOG: i32 = 64;
/// What the kernel may hold for a viewer who reads nothing; it would take megabytes otherwise.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
/// What is held for a connection besides.
const BUFFER_BYTES: usize = 64 * 1024;
/// Whoever connects says what is wanted within this time.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// At the end viewers have this long to take the report; who has not by then has its file.
const LINGER: Duration = Duration::from_secs(2);
/// And this long for what was handed to their connections.
const FLUSH: Duration = Duration::from_millis(500);
/// Before the next try, when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const TOO_MANY: &str = "32 viewers look on already, and no more are let in; close one of them.\n";

pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // The run before this one may have had the same port.
    socket.set_reuse_address(true)?;
    // Accepted sockets take it over.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What every route of the live page reads.
#[derive(Clone)]
struct LiveState {
    page: Bytes,
    board: watch::Receiver<Board>,
    seats: Arc<Semaphore>,
}

/// Serves until the run is over and the viewers have been told, or have had the time for it.
pub(super) async fn serve(
    listener: TcpListener,
    door: Door,
    page: String,
    board: watch::Receiver<Board>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let seats = Arc::new(Semaphore::new(VIEWERS_MAX));
    let state = LiveState { page: page.into(), board: board.clone(), seats: Arc::clone(&seats) };
    let connections = GracefulShutdown::new();
    let routes = routes(&door, state);
    let over_and_told = async {
        let mut board = board;
        // Nobody writes any more: it is over as well.
        let _ = board.wait_for(|board| board.is_over).await;
        let all_seats = seats.acquire_many(VIEWERS_MAX as u32);
        let _ = tokio::time::timeout(LINGER, all_seats).await;
    };
    tokio::select! {
        () = accept(&listener, &routes, &connections) => {}
        () = over_and_told => {}
    }
    let _ = tokio::time::timeout(FLUSH, connections.shutdown()).await;
    Ok(())
}

fn routes(door: &Door, state: LiveState) -> Router {
    let (way_in, home) = (door.path(""), door.path(""));
    let redirect = move || async move { (StatusCode::PERMANENT_REDIRECT, [(LOCATION, home)]) };
    Router::new()
        .route(way_in.trim_end_matches('/'), get(redirect))
        .route(&way_in, get(page))
        .route(&door.path("events"), get(events))
        .with_state(state)
        .layer(axum::middleware::from_fn_with_state(door.clone(), guard))
}

/// Takes connections, each of which ends by itself or at the end of all.
async fn accept(
    listener: &tokio::net::TcpListener,
    routes: &Router,
    connections: &GracefulShutdown,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // One that breaks is the viewer's affair.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn page(State(state): State<LiveState>) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], state.page).into_response()
}

async fn events(State(state): State<LiveState>) -> Response {
    let Ok(seat) = state.seats.try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, TOO_MANY).into_response();
    };
    let viewer = Viewer { board: state.board, seen: 0, _seat: seat };
    let body = Body::from_stream(stream::unfold(viewer, Viewer::next));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Somebody who looks on, asked when the connection has room: who reads nothing is not
/// sent to, and goes on with what is newest then.
struct Viewer {
    board: watch::Receiver<Board>,
    seen: u64,
    _seat: OwnedSemaphorePermit,
}

impl Viewer {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            let (next, is_over) = {
                let board = self.board.borrow_and_update();
                (board.after(self.seen), board.is_over)
            };
            if let Some((number, frame)) = next {
                self.seen = number;
                return Some((Ok(frame), self));
            }
            if is_over || self.board.changed().await.is_err() {
                return None;
            }
        }
    }
}
