//! The answers of the loop on the other host, line by line. Pure.

use crate::root::Texts;

/// How lines begin that are not of a file.
const MARK: &str = "=plimsoll ";
/// A frame of a host with 256 processors and a thousand interfaces has 3 MB.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
const FILES_MAX: usize = 20_000;

/// A whole message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// The loop runs.
    Hello {
        /// Process ids of the shell, and of what started it.
        shell: u32,
        parent: u32,
        /// The host's description of itself.
        system: String,
    },
    /// Its clock, as `date` printed it.
    Pong { number: u64, clock: String },
    /// The texts of one instant.
    Whole(Whole),
}

/// A frame that is whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Whole {
    pub(super) number: u64,
    /// When its first line arrived, on the monotonic clock of this host.
    pub(super) begun_ns: u64,
    pub(super) servers: Vec<u32>,
    pub(super) texts: Texts,
}

/// Puts messages together. Anything else is skipped: a greeting of the host, a
/// frame without its end.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    frame: Option<Whole>,
    file: Option<(String, String)>,
    bytes: usize,
}

impl Assembler {
    /// Takes the next line, without its newline, and when it arrived.
    pub(super) fn line(&mut self, line: &str, now_ns: u64) -> Option<Message> {
        if let Some(rest) = line.strip_prefix(MARK) {
            return self.mark(rest, now_ns);
        }
        let frame = self.frame.as_mut()?;
        self.bytes = self.bytes.saturating_add(line.len() + 1);
        if self.bytes > FRAME_BYTES_MAX || frame.texts.len() > FILES_MAX {
            self.frame = None;
            self.file = None;
            return None;
        }
        if let Some(path) = header(line) {
            self.end_file();
            self.file = Some((path.to_owned(), String::new()));
        } else if let Some((_, text)) = &mut self.file {
            text.push_str(line);
            text.push('\n');
        }
        None
    }

    fn mark(&mut self, rest: &str, now_ns: u64) -> Option<Message> {
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut tokens = rest.split_whitespace();
        match word {
            "hello" => {
                let version: u32 = tokens.next()?.parse().ok()?;
                let (shell, parent) = (tokens.next()?.parse().ok()?, tokens.next()?.parse().ok()?);
                let system = tokens.collect::<Vec<_>>().join(" ");
                (version == 1).then_some(Message::Hello { shell, parent, system })
            }
            "pong" => {
                let number = tokens.next()?.parse().ok()?;
                Some(Message::Pong { number, clock: tokens.next().unwrap_or("").to_owned() })
            }
            "begin" => {
                let number = tokens.next().and_then(|number| number.parse().ok());
                self.file = None;
                self.bytes = 0;
                self.frame =
                    number.map(|number| Whole { number, begun_ns: now_ns, ..Whole::default() });
                None
            }
            "servers" => {
                let mut servers: Vec<u32> = tokens.filter_map(|pid| pid.parse().ok()).collect();
                servers.sort_unstable();
                servers.dedup();
                self.frame.as_mut()?.servers = servers;
                None
            }
            "end" => {
                self.end_file();
                let number = tokens.next()?.parse().ok();
                self.frame.take().filter(|frame| Some(frame.number) == number).map(Message::Whole)
            }
            _ => None,
        }
    }

    /// An empty line precedes the name of the next file.
    fn end_file(&mut self) {
        let (Some((path, mut text)), Some(frame)) = (self.file.take(), &mut self.frame) else {
            return;
        };
        if text == "\n" || text.ends_with("\n\n") {
            text.pop();
        }
        frame.texts.insert(path, text);
    }
}

/// The path in `==> /proc/stat <==`.
fn header(line: &str) -> Option<&str> {
    let path = line.strip_prefix("==> /")?.strip_suffix(" <==")?;
    ["proc/", "sys/", "plimsoll/"].iter().any(|root| path.starts_with(root)).then_some(path)
}

#[cfg(test)]
mod tests;
