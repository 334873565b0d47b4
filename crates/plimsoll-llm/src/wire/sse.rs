//! Server-sent events: a body in any fragments in, events out. WHATWG HTML, "Server-sent events",
//! section 9.2.5 and 9.2.6.
//!
//! An event that lies whole in one fragment, as nearly all do, is handed out where it lies. Of one
//! that does not, the part that has come is kept in a buffer, which stays for the events after it.

use memchr::memchr2;

/// Longest line, and longest data of an event. The longest answer of a model today, 128 Ki tokens
/// of about five bytes, fits even if the server sends it in a single event.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Kept of a body that is no stream of events, to show what it is: room for an error with its
/// message.
const EXCERPT_BYTES_MAX: usize = 1024;
/// Some servers begin with it; it means nothing.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What comes next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamItem<'a> {
    /// An event, its lines of data joined by LF.
    Event(&'a [u8]),
    /// The same of one marked as an error: `event: error`, or llama.cpp's field `error: {…}`, which
    /// is not in the standard.
    Error(&'a [u8]),
    /// A line that is an object of JSON without the name of a field. Some servers report errors so.
    Bare(&'a [u8]),
    /// A comment, with which servers keep a connection alive.
    Comment,
    /// An event is longer than [`EVENT_BYTES_MAX`]; nothing else is read of this stream.
    TooLong,
}

/// Cuts one body into events.
#[derive(Debug, Default)]
pub struct EventReader {
    phase: Phase,
    /// The last line ended with CR: an LF that comes next belongs to it.
    after_cr: bool,
    /// Beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Lines of data of the event whose end has not come, unless it lies whole in a fragment.
    data: Vec<u8>,
    /// There are such lines.
    has_data: bool,
    /// A line of the event marks it as an error.
    is_error: bool,
    /// `line` was handed out whole.
    is_line_used: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before the end of the first line.
    #[default]
    FirstLine,
    Lines,
    /// The body begins as JSON or HTML does.
    NoStream,
    /// What comes is not read.
    Skipping,
}

/// The content of a line.
enum Field<'a> {
    /// It is empty: the event ends.
    End,
    Data(&'a [u8]),
    Comment,
    /// `error: …`
    Error(&'a [u8]),
    /// `event: error`
    ErrorEvent,
    /// `{…}`
    Bare(&'a [u8]),
    /// Other `event:`, `id:`, `retry:` and all others.
    Ignored,
}

/// What the line in the buffer came to.
enum Buffered {
    Item(StreamItem<'static>),
    /// It stays where it is.
    Bare,
    Nothing,
}

/// The end of a line has come, or not.
enum Cut<'a> {
    No,
    /// The line lies here.
    Here(&'a [u8]),
    /// It lies in the buffer, where its beginning was.
    Buffered,
}

impl EventReader {
    /// The next of what `fragment` completes; takes the bytes from its front. `None` once all of
    /// `fragment` is taken.
    pub fn next<'s, 'b: 's>(&'s mut self, fragment: &mut &'b [u8]) -> Option<StreamItem<'s>> {
        // The one line of data of an event that may lie whole in the fragment.
        let mut whole: Option<&'b [u8]> = None;
        if std::mem::take(&mut self.is_line_used) {
            self.line.clear();
        }
        if !self.reads(fragment) {
            *fragment = &[];
            return None;
        }
        loop {
            let field = match self.cut(fragment) {
                Cut::No => {
                    self.keep(whole);
                    return self.is_too_long().then(|| self.give_up());
                }
                Cut::Buffered => match self.take_buffered() {
                    Buffered::Item(item) => return Some(item),
                    Buffered::Bare => {
                        self.is_line_used = true;
                        let line = &self.line[..];
                        return Some(StreamItem::Bare(
                            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
                        ));
                    }
                    Buffered::Nothing => continue,
                },
                Cut::Here(line) if line.len() > EVENT_BYTES_MAX => return Some(self.give_up()),
                Cut::Here(line) => Field::from_line(self.without_mark(line)),
            };
            self.is_error |= field.is_error();
            match field {
                Field::Data(value) | Field::Error(value) if whole.is_none() && !self.has_data => {
                    whole = Some(value);
                }
                Field::Data(value) | Field::Error(value) => {
                    self.keep(whole.take());
                    self.keep(Some(value));
                }
                Field::End => {
                    let has_data = std::mem::take(&mut self.has_data);
                    match (whole.take(), std::mem::take(&mut self.is_error)) {
                        (Some(data), is_error) => return Some(event(data, is_error)),
                        (None, is_error) if has_data => return Some(event(&self.data, is_error)),
                        (None, true) => return Some(StreamItem::Error(&[])),
                        (None, false) => {}
                    }
                }
                Field::Comment => {
                    self.keep(whole);
                    return Some(StreamItem::Comment);
                }
                Field::Bare(line) => {
                    self.keep(whole);
                    return Some(StreamItem::Bare(line));
                }
                Field::ErrorEvent | Field::Ignored => {}
            }
            if self.is_too_long() {
                return Some(self.give_up());
            }
        }
    }

    /// What is incomplete at the end of the body: an event, or the beginning of a body that is no
    /// stream.
    pub fn rest(&self) -> &[u8] {
        match Field::from_line(&self.line) {
            _ if self.has_data => &self.data,
            Field::Data(value) | Field::Error(value) => value,
            _ => &self.line,
        }
    }

    /// The body begins as JSON or HTML does, so it is no stream of events.
    pub fn is_no_stream(&self) -> bool {
        self.phase == Phase::NoStream
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        self.line.capacity() + self.data.capacity()
    }

    /// The bytes of `fragment` are lines of a stream.
    fn reads(&mut self, fragment: &[u8]) -> bool {
        if self.phase == Phase::FirstLine {
            let mut bytes = self.line.iter().chain(fragment).skip_while(|byte| **byte == b' ');
            // No field of an event begins like that.
            if let Some(b'{' | b'[' | b'<') = bytes.next() {
                self.phase = Phase::NoStream;
            }
        }
        if self.phase == Phase::NoStream {
            let room = EXCERPT_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&fragment[..fragment.len().min(room)]);
        }
        matches!(self.phase, Phase::FirstLine | Phase::Lines)
    }

    /// Takes a line from the front of `fragment`, or all of it.
    fn cut<'b>(&mut self, fragment: &mut &'b [u8]) -> Cut<'b> {
        let mut input = *fragment;
        if std::mem::take(&mut self.after_cr) {
            match input {
                [b'\n', rest @ ..] => input = rest,
                // The LF may be still to come.
                [] => self.after_cr = true,
                _ => {}
            }
        }
        let Some(end) = memchr2(b'\n', b'\r', input) else {
            *fragment = &[];
            let room = (EVENT_BYTES_MAX + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&input[..input.len().min(room)]);
            return Cut::No;
        };
        let (line, rest) = input.split_at(end);
        *fragment = match rest {
            [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
            [_, rest @ ..] => {
                self.after_cr = rest.is_empty();
                rest
            }
            [] => &[],
        };
        if self.line.is_empty() {
            return Cut::Here(line);
        }
        let room = (EVENT_BYTES_MAX + 1).saturating_sub(self.line.len());
        self.line.extend_from_slice(&line[..line.len().min(room)]);
        Cut::Buffered
    }

    /// A line, the first one without the mark.
    fn without_mark<'b>(&mut self, line: &'b [u8]) -> &'b [u8] {
        match std::mem::replace(&mut self.phase, Phase::Lines) {
            Phase::FirstLine => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
            _ => line,
        }
    }

    /// The line in the buffer, which is complete and not empty.
    fn take_buffered(&mut self) -> Buffered {
        let mut buffer = std::mem::take(&mut self.line);
        let field = Field::from_line(self.without_mark(&buffer));
        self.is_error |= field.is_error();
        let mut buffered = Buffered::Nothing;
        match field {
            Field::Data(value) | Field::Error(value) => self.keep(Some(value)),
            Field::Comment => buffered = Buffered::Item(StreamItem::Comment),
            Field::Bare(_) => buffered = Buffered::Bare,
            Field::ErrorEvent | Field::End | Field::Ignored => {}
        }
        let is_too_long = self.is_too_long() || buffer.len() > EVENT_BYTES_MAX;
        if !matches!(buffered, Buffered::Bare) {
            buffer.clear();
        }
        self.line = buffer;
        if is_too_long { Buffered::Item(self.give_up()) } else { buffered }
    }

    /// Adds a line of data to the event.
    fn keep(&mut self, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        match std::mem::replace(&mut self.has_data, true) {
            true => self.data.push(b'\n'),
            false => self.data.clear(),
        }
        let room = (EVENT_BYTES_MAX + 1).saturating_sub(self.data.len());
        self.data.extend_from_slice(&value[..value.len().min(room)]);
    }

    fn is_too_long(&self) -> bool {
        self.line.len() > EVENT_BYTES_MAX || self.has_data && self.data.len() > EVENT_BYTES_MAX
    }

    /// Reads nothing else.
    fn give_up(&mut self) -> StreamItem<'static> {
        *self = Self { phase: Phase::Skipping, ..Self::default() };
        StreamItem::TooLong
    }
}

/// An event that is whole.
const fn event(data: &[u8], is_error: bool) -> StreamItem<'_> {
    if is_error { StreamItem::Error(data) } else { StreamItem::Event(data) }
}

impl<'a> Field<'a> {
    fn from_line(line: &'a [u8]) -> Self {
        let value = |name: &str| match line.strip_prefix(name.as_bytes())? {
            [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
            [] => Some(&[][..]),
            _ => None,
        };
        match line {
            [] => Self::End,
            [b':', ..] => Self::Comment,
            [b'd', ..] => value("data").map_or(Self::Ignored, Self::Data),
            [b'{', ..] => Self::Bare(line),
            [b'e', b'v', ..] if value("event") == Some(b"error") => Self::ErrorEvent,
            [b'e', b'r', ..] => value("error").map_or(Self::Ignored, Self::Error),
            _ => Self::Ignored,
        }
    }

    const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_) | Self::ErrorEvent)
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
