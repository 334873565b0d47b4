//! What comes back from the loop on the other host, line by line. Pure.

use crate::frame::Texts;

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
        /// What the host says it is.
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

/// Puts messages together. What does not belong to one is passed over: a greeting of the host, a
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
        let mut words = rest.split_whitespace();
        match word {
            "hello" => {
                let version: u32 = words.next()?.parse().ok()?;
                let (shell, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let system = words.collect::<Vec<_>>().join(" ");
                (version == 1).then_some(Message::Hello { shell, parent, system })
            }
            "pong" => {
                let number = words.next()?.parse().ok()?;
                Some(Message::Pong { number, clock: words.next().unwrap_or("").to_owned() })
            }
            "begin" => {
                let number = words.next().and_then(|number| number.parse().ok());
                self.file = None;
                self.bytes = 0;
                self.frame =
                    number.map(|number| Whole { number, begun_ns: now_ns, ..Whole::default() });
                None
            }
            "servers" => {
                let mut servers: Vec<u32> = words.filter_map(|pid| pid.parse().ok()).collect();
                servers.sort_unstable();
                servers.dedup();
                self.frame.as_mut()?.servers = servers;
                None
            }
            "end" => {
                self.end_file();
                let number = words.next()?.parse().ok();
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "Welcome to db!\n=plimsoll hello 1 71 70 Linux 6.1.0 x86_64\n";
    const FRAME: &str = "=plimsoll begin 4\n=plimsoll servers 812 90\n==> /proc/stat <==\n\
        cpu  1 2 3\nctxt 9\n\n==> /sys/class/net/lo/speed <==\n\n==> /proc/loadavg <==\n0.5\n\n\
        =plimsoll end 4\n";

    fn messages(text: &str) -> Vec<Message> {
        let mut assembler = Assembler::default();
        let lines = text.lines().enumerate();
        lines.filter_map(|(at, line)| assembler.line(line, at as u64)).collect()
    }

    fn whole(message: &Message) -> &Whole {
        match message {
            Message::Whole(whole) => whole,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_frame_has_the_texts_of_its_files_and_the_instant_it_began() {
        let all = messages(&format!("{HEAD}=plimsoll pong 3 1700000000123456789\n{FRAME}"));
        let system = "Linux 6.1.0 x86_64".to_owned();
        assert_eq!(all[0], Message::Hello { shell: 71, parent: 70, system });
        assert_eq!(all[1], Message::Pong { number: 3, clock: "1700000000123456789".into() });
        let frame = whole(&all[2]);
        assert_eq!((frame.number, frame.begun_ns, &frame.servers[..]), (4, 3, &[90, 812][..]));
        assert_eq!(frame.texts["proc/stat"], "cpu  1 2 3\nctxt 9\n");
        assert_eq!(frame.texts["proc/loadavg"], "0.5\n");
        assert_eq!(frame.texts["sys/class/net/lo/speed"], "", "it could not be read");
        assert_eq!(frame.texts.len(), 3);
    }

    #[test]
    fn what_other_programs_told_there_stands_beside_the_files() {
        let all = messages(&FRAME.replace("/proc/loadavg", "/plimsoll/shaping"));
        assert_eq!(whole(&all[0]).texts["plimsoll/shaping"], "0.5\n");
    }

    #[test]
    fn a_frame_that_was_cut_is_none_and_the_next_one_is_whole() {
        for at in 0..FRAME.len() - 1 {
            if !FRAME.is_char_boundary(at) {
                continue;
            }
            let all = messages(&format!("{}\n{FRAME}", &FRAME[..at]));
            let frame = whole(&all[0]);
            assert_eq!((all.len(), frame.texts.len()), (1, 3), "cut at {at}");
            assert_eq!(frame.texts["proc/stat"], "cpu  1 2 3\nctxt 9\n");
        }
    }

    #[test]
    fn a_frame_without_end_takes_no_more_than_its_share_of_memory() {
        let mut assembler = Assembler::default();
        assembler.line("=plimsoll begin 1", 0);
        assembler.line("==> /proc/stat <==", 0);
        let line = "x".repeat(1024 * 1024);
        for _ in 0..40 {
            assert_eq!(assembler.line(&line, 0), None);
        }
        assert!(assembler.frame.is_none() && assembler.file.is_none());
        assert_eq!(assembler.line("=plimsoll end 1", 0), None);
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(
            lines in prop::collection::vec("(=plimsoll )?(begin|end|servers|hello|pong|==> /proc/|.{0,9})[ 0-9<=]{0,12}", 0..40),
        ) {
            let mut assembler = Assembler::default();
            for line in lines {
                assembler.line(&line, 0);
            }
        }
    }
}
