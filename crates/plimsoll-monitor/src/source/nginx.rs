//! nginx's own figures, from its status page (`stub_status`).

use std::path::PathBuf;
use std::time::Duration;

use super::http::{Endpoint, Page};
use super::{Fact, Fetched, Lost, Peer, SAMPLE_WAIT, middle};
use crate::clock::ClockReading;
use crate::parse::parse_stub_status;
use crate::root::{Frame, Texts};
use crate::sampler::SERVER_TEXT;

/// The status page of one nginx, polled repeatedly.
#[derive(Debug)]
pub struct NginxStatus {
    page: Page,
    own_requests: u64,
}

impl NginxStatus {
    /// A page that nginx serves over a Unix socket.
    pub fn at_socket(socket: PathBuf) -> Self {
        let page =
            Page { endpoint: Endpoint::Unix(socket), host: "plimsoll".into(), path: "/".into() };
        Self { page, own_requests: 0 }
    }

    /// Its figures for a [`crate::ServerProbe`], within `wait`.
    pub fn ask(&mut self, wait: Duration) -> Option<String> {
        self.answer(wait).ok().map(|(text, _)| text)
    }

    fn answer(&mut self, wait: Duration) -> Result<(String, u64), Lost> {
        self.own_requests += 1;
        let reply = self.page.get(wait)?;
        let status = parse_stub_status(&reply.text)
            .ok_or_else(|| Lost(format!("{} is not a page of stub_status", self.page.path)))?;
        Ok((status.metrics_text(self.own_requests), reply.first_byte_ns))
    }
}

#[derive(Debug)]
pub(super) struct NginxPeer(NginxStatus);

impl NginxPeer {
    /// Asks once.
    pub(super) fn open(host: &str, port: u16, path: &str) -> Result<(Self, Vec<Fact>), Lost> {
        let page = Page::resolve(host, port, path)?;
        let mut status = NginxStatus { page, own_requests: 0 };
        status.answer(SAMPLE_WAIT)?;
        let facts = vec![
            ("system", "nginx (stub_status); its host is unknown".to_owned()),
            ("clock", "unknown; samples carry this host's time".to_owned()),
        ];
        Ok((Self(status), facts))
    }
}

impl Peer for NginxPeer {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        let requested = ClockReading::now();
        let (text, answered_ns) = self.0.answer(SAMPLE_WAIT)?;
        frame.replace(Texts::from([(SERVER_TEXT.to_owned(), text)]));
        Ok(Some(Fetched { at: middle(requested, answered_ns), ..Fetched::default() }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::root::Root;
    use crate::sampler::Sampler;

    /// A port at which each connection gets one of these pages, then none.
    fn serving(pages: Vec<String>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for page in pages {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 1024];
                let n = stream.read(&mut question).unwrap();
                assert!(question[..n].starts_with(b"GET /stub_status HTTP/1.1\r\n"));
                write!(stream, "HTTP/1.1 200 OK\r\n\r\n{page}").unwrap();
            }
        });
        port
    }

    fn page(requests: u64) -> String {
        format!(
            "Active connections: 9 \nserver accepts handled requests\n 20 20 {requests} \n\
             Reading: 1 Writing: 5 Waiting: 3 \n"
        )
    }

    #[test]
    fn a_foreign_nginx_tells_its_connections_and_requests_without_ours() {
        let port = serving(vec![page(100), page(1_101), page(3_102)]);
        let (mut peer, _) = NginxPeer::open("127.0.0.1", port, "/stub_status").unwrap();
        let frame = Frame::default();
        let mut sampler = Sampler::new(&Root::of_frame(frame.clone()), Vec::new());
        let mut sample = |peer: &mut NginxPeer| {
            let fetched = peer.fetch(&frame).unwrap().unwrap();
            sampler.sample(fetched.at).servers.clone()
        };
        let first = sample(&mut peer);
        assert_eq!(first.value("", "connections"), Some(8.0));
        assert_eq!(first.value("", "connections_writing"), Some(4.0), "one of them answers us");
        assert_eq!(first.value("", "requests"), None, "the first has no rates");
        let second = sample(&mut peer);
        assert!(second.value("", "requests").unwrap() > 0.0);
        let refused = peer.fetch(&frame).unwrap_err();
        assert!(refused.0.contains("connect") || refused.0.contains("receive"), "{refused:?}");
    }

    #[test]
    fn another_page_is_refused_before_there_is_load() {
        let port = serving(vec!["<html>Welcome to nginx!</html>".to_owned()]);
        let Lost(message) = NginxPeer::open("127.0.0.1", port, "/stub_status").unwrap_err();
        assert_eq!(message, "/stub_status is not a page of stub_status");
    }
}
