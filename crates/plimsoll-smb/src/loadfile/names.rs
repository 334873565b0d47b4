//! Names in a load file: what may be replayed, the pool that keeps each once, and where a client
//! finds it on the share.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::op::PathText;

use super::grammar::{Argument, Verb};
use super::problem::{NAME_BYTES_MAX, Problem, REPLAY_ROOT};

/// What becomes the client's own directory.
pub(crate) const OWN_MARK: &str = "client1";
/// `client4294967296` is so much longer than [`OWN_MARK`].
const OWN_GROWTH_BYTES_MAX: usize = 9;

const WILDCARDS: [char; 2] = ['*', '?'];

/// Reads a name: separators as backslashes, none at the front.
pub(crate) fn read<'t>(
    verb: Verb,
    argument: Argument,
    word: &'t str,
) -> Result<Cow<'t, str>, Problem> {
    let refuse = |why| Err(Problem::Name { name: word.to_owned(), why });
    let name = word.trim_start_matches(['\\', '/']);
    let name = match name.contains('/') {
        true => Cow::Owned(name.replace('/', "\\")),
        false => Cow::Borrowed(name),
    };
    let empty = name.is_empty();
    if !empty && name.split('\\').any(|part| matches!(part, "" | "." | "..")) {
        return refuse(
            "has an empty part, \".\" or \"..\"; a replay stays below its own directory",
        );
    }
    if name.chars().any(char::is_control) {
        return refuse("has a control character, which no server takes");
    }
    if empty && !matches!(verb, Verb::NtCreateX | Verb::QueryPath) {
        return refuse("names nothing below the replay's root");
    }
    let smb1_only = matches!(verb, Verb::Unlink | Verb::Rename) && name.contains(WILDCARDS);
    if smb1_only {
        return refuse("has a wildcard, which SMB2 cannot rename or remove; write a line per file");
    }
    if argument == Argument::Mask && name.rsplit_once('\\').is_some_and(|(d, _)| d.contains('*')) {
        return refuse("has a wildcard in its directory; only the last part may have one");
    }
    let own = name.matches(OWN_MARK).count();
    if name.len() + own * OWN_GROWTH_BYTES_MAX > NAME_BYTES_MAX {
        return Err(Problem::NameTooLong(word.to_owned()));
    }
    Ok(name)
}

/// The name differs from client to client.
pub(crate) fn is_own(name: &str) -> bool {
    name.contains(OWN_MARK)
}

/// What a client's own directory is called; clients count from 0.
pub(crate) fn own_name(client: u32) -> PathText {
    PathText::new(&format!("client{}", u64::from(client) + 1)).expect("16 bytes fit")
}

/// Where a client whose directory is `own` finds `name`.
pub(crate) fn on_share(name: &str, own: &PathText) -> PathText {
    const FITS: &str = "the parser leaves room for the root and the longest client number";
    let mut path = PathText::new(REPLAY_ROOT).expect(FITS);
    if name.is_empty() {
        return path;
    }
    path.push("\\").expect(FITS);
    for (index, part) in name.split(OWN_MARK).enumerate() {
        if index > 0 {
            path.push(own.as_str()).expect(FITS);
        }
        path.push(part).expect(FITS);
    }
    path
}

/// Each name once, one after the other.
#[derive(Default)]
pub struct Pool {
    text: Box<str>,
    /// Where each begins, and where the last ends.
    starts: Box<[u32]>,
}

impl Pool {
    /// The name of that number.
    pub fn get(&self, number: u32) -> &str {
        let at = number as usize;
        &self.text[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.starts)
    }
}

/// A [`Pool`] that grows.
#[derive(Default)]
pub struct PoolBuilder {
    numbers: HashMap<Box<str>, u32>,
    text: String,
    starts: Vec<u32>,
}

impl PoolBuilder {
    /// The number of `name`, a new one if need be.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        const BOUND: &str = "the parser stops long before 4 GiB of names";
        let number = u32::try_from(self.starts.len()).expect(BOUND);
        self.starts.push(u32::try_from(self.text.len()).expect(BOUND));
        self.text.push_str(name);
        self.numbers.insert(name.into(), number);
        number
    }

    /// Bytes of text so far.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// No more names will come.
    pub fn finish(mut self) -> Pool {
        self.starts.push(self.text.len() as u32);
        Pool { text: self.text.into(), starts: self.starts.into() }
    }
}
