//! A page on loopback that shows the run while it goes.
//!
//! The coordinator hands what it is told to one thread, which draws and serves. That thread has
//! the lowest priority and keeps off the workers' cores; ten viewers share what it has drawn.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `board.rs` | what viewers are shown: the newest report, the last seconds |
//! | `door.rs` | who may come in: token, `Host`, the fields of every answer |
//! | `server.rs` | routes, viewers, connections, all of them bounded |

mod board;
mod door;
mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use plimsoll_model::result::RunResult;
use plimsoll_servers::cores;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use self::board::{Board, Writer};
use self::door::Door;
use super::{BeginningPoint, FinishedPoint, Observer, SecondView};
use crate::exit::Failure;

/// A minute of seconds, should the thread that draws get no turn for so long.
const MESSAGES_MAX: usize = 64;

pub(super) struct LivePage {
    url: String,
    title: String,
    messages: Sender<Message>,
    dropped: u64,
    thread: JoinHandle<Vec<String>>,
}

enum Message {
    Begins(String),
    Second(String, SecondView),
    Finished(Box<Finished>),
    Over(Box<RunResult>, PathBuf),
}

/// A load point that is over.
struct Finished {
    title: String,
    run: RunResult,
}

impl LivePage {
    /// Listens, and starts the thread.
    pub(super) fn open(address: SocketAddr) -> Result<Self, Failure> {
        let cannot = |why: String| Failure::unusable(format!("--live {address}: {why}"));
        let page = plimsoll_report::live_page().map_err(|e| cannot(e.to_string()))?;
        let listener = server::listen(address).map_err(|e| {
            cannot(format!("cannot listen there: {e}; name another port, or none for a free one"))
        })?;
        let at = listener.local_addr().map_err(|e| cannot(e.to_string()))?;
        let door = Door::new(at, &page).map_err(|e| cannot(format!("no random token: {e}")))?;
        let url = door.url();
        let (messages, heard) = channel(MESSAGES_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| cannot(e.to_string()))?;
        let thread = thread::Builder::new().name("plimsoll-live".into()).spawn(move || {
            // Without the right to it the thread still keeps off the workers' cores.
            let _ = cores::lower_priority();
            let (board, shown) = Board::begin();
            runtime.block_on(async {
                let (problems, served) = tokio::join!(
                    hear(heard, Writer::new(board)),
                    server::serve(listener, door, page, shown)
                );
                problems.into_iter().chain(served.err().map(|e| e.to_string())).collect()
            })
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
        self.send(Message::Finished(Box::new(Finished {
            title: self.title.clone(),
            run: finished.run.clone(),
        })));
    }

    fn run_finished(&mut self, result: &RunResult, page: &Path) {
        // Nothing is left that could be held up.
        let over = Message::Over(Box::new(result.clone()), page.to_owned());
        self.dropped += u64::from(self.messages.blocking_send(over).is_err());
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

/// Draws what is heard until nothing more comes; what went wrong.
async fn hear(mut heard: Receiver<Message>, mut writer: Writer) -> Vec<String> {
    let mut problems = Vec::new();
    while let Some(message) = heard.recv().await {
        let drawn = match message {
            Message::Begins(title) => {
                writer.begins(&title);
                Ok(())
            }
            Message::Second(title, second) => {
                writer.second(&title, &second);
                Ok(())
            }
            Message::Finished(finished) => writer.finished(&finished.title, &finished.run),
            Message::Over(result, page) => writer.over(&result, &page),
        };
        problems.extend(drawn.err().map(|e| e.to_string()));
    }
    problems
}
