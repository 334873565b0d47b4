//! The metrics over HTTP, for Prometheus and for people with a browser; and the end of the server,
//! which somebody must wait for.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::service::Shared;
use plimsoll_servers::{ServerError, Stop};

/// Connections at a time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 32;
/// How long one may stay, however slow its client is.
const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long to leave accept alone when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Of Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the metrics, if `listener` is there, until `stop` is requested; then tells the
/// multiplexer to end. Blocks the calling thread.
pub(super) fn attend(
    listener: Option<TcpListener>,
    shared: &Arc<Shared>,
    stop: &Stop,
) -> Result<(), ServerError> {
    let served = attend_until(listener, shared, stop);
    stop.request();
    shared.is_ending.store(true, Ordering::SeqCst);
    shared.returned.ring();
    served
}

fn attend_until(
    listener: Option<TcpListener>,
    shared: &Arc<Shared>,
    stop: &Stop,
) -> Result<(), ServerError> {
    let failed = |source| ServerError::System { doing: "set up the thread for metrics", source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let Some(listener) = listener else {
            stop.requested().await;
            return Ok(());
        };
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        tokio::select! {
            () = serve(&listener, shared) => {}
            () = stop.requested() => {}
        }
        Ok(())
    })
}

async fn serve(listener: &tokio::net::TcpListener, shared: &Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    // A scraper that fails has seen it itself.
                    let _ = tokio::time::timeout(CONNECTION_WAIT_MAX, answer(stream, shared)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn answer(stream: TcpStream, shared: Arc<Shared>) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let reply = reply(request.method(), request.uri().path(), &shared);
        async move { Ok::<_, Infallible>(reply) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(CONNECTION_WAIT_MAX);
    // As above.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn reply(method: &Method, path: &str, shared: &Shared) -> Response<Full<Bytes>> {
    let (status, body) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, shared.status()),
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
