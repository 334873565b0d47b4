//! A page of metrics as an exporter serves it, made anew for each request.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// A running exporter; stops when dropped.
pub struct ExporterPage {
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl ExporterPage {
    /// Answers each request with what `page` returns.
    pub fn start(listener: TcpListener, page: impl Fn() -> String + Send + 'static) -> Self {
        let serving = listener.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            // A listener that was shut down returns an error.
            while let Ok((mut stream, _)) = serving.accept() {
                // A client that leaves without a request, or before its reply, concerns no other.
                let _ = stream.read(&mut [0; 4_096]);
                let page = page();
                let length = page.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
                let _ = write!(stream, "{head}Connection: close\r\n\r\n{page}");
            }
        });
        Self { listener, thread: Some(thread) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.listener.local_addr().unwrap())
    }
}

impl Drop for ExporterPage {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}
