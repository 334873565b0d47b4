//! A page on loopback that shows a run live.
//!
//! The coordinator sends messages to one thread, which renders and serves the page. That thread has
//! the lowest priority and keeps off the workers' cores; ten viewers share one rendering.
//!
//! | file | contents |
//! | --- | --- |
//! | `board.rs` | what viewers see: the newest report, the last seconds |
//! | `door.rs` | access: token, `Host`, the header fields of every answer |
//! | `server.rs` | routes, viewers, connections, all of them bounded |

mod board;
mod door;
mod server;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use plimsoll_model::result::RunResult;
use plimsoll_servers::cores;

use self::board::Message;
use self::door::Door;
use self::server::LiveServer;
use super::{BeginningPoint, FinishedPoint, Observer, SecondView};
use crate::failure::Failure;

/// A minute of seconds, in case the rendering thread gets no CPU time for that long.
const MESSAGES_MAX: usize = 64;

pub(super) struct LivePage {
    url: String,
    title: String,
    messages: SyncSender<Message>,
    dropped: u64,
    thread: JoinHandle<Vec<String>>,
}

impl LivePage {
    /// Listens, and starts the thread.
    pub(super) fn open(address: SocketAddr) -> Result<Self, Failure> {
        let cannot = |why: String| Failure::unusable(format!("--live {address}: {why}"));
        let page = plimsoll_report::live_page().map_err(|e| cannot(e.to_string()))?;
        let (listener, at) = server::listen(address).map_err(|e| {
            cannot(format!("cannot listen there: {e}; name another port, or none for a free one"))
        })?;
        let door = Door::new(at, &page).map_err(|e| cannot(format!("no random token: {e}")))?;
        let url = door.url();
        let (messages, heard) = sync_channel(MESSAGES_MAX);
        let thread = thread::Builder::new().name("plimsoll-live".into()).spawn(move || {
            // Without permission the thread still keeps off the workers' cores.
            let _ = cores::lower_priority();
            LiveServer::new(page, door, heard).serve(listener)
        });
        let thread = thread.map_err(|e| cannot(e.to_string()))?;
        Ok(Self { url, title: String::new(), messages, dropped: 0, thread })
    }

    fn send(&mut self, message: Message) {
        self.dropped += u64::from(self.messages.try_send(message).is_err());
    }
}

impl Observer for LivePage {
    fn greeting(&self) -> Option<String> {
        Some(format!("live: {}", self.url))
    }

    fn point_begins(&mut self, point: &BeginningPoint<'_>) {
        point.title.clone_into(&mut self.title);
        self.send(Message::Begins(point.title.to_owned()));
    }

    fn second(&mut self, second: &SecondView) {
        self.send(Message::Second(self.title.clone(), *second));
    }

    fn point_finished(&mut self, finished: &FinishedPoint<'_>) {
        self.send(Message::Finished(self.title.clone(), Box::new(finished.run.clone())));
    }

    fn run_finished(&mut self, result: &RunResult, page: &Path) {
        // Blocking does no harm here: the run has ended.
        let message = Message::RunFinished(Box::new(result.clone()), page.to_owned());
        self.dropped += u64::from(self.messages.send(message).is_err());
    }

    fn end(self: Box<Self>) -> Vec<String> {
        drop(self.messages);
        let mut problems = self.thread.join().unwrap_or_else(|_| vec!["its thread died".into()]);
        if self.dropped > 0 {
            problems.push(format!("{} messages found no room and were dropped", self.dropped));
        }
        problems.into_iter().map(|problem| format!("--live: {problem}")).collect()
    }
}
