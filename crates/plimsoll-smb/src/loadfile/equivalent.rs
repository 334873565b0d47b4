//! Where SMB2 answers otherwise than SMB1, or a replay otherwise than its recording: what is
//! expected instead. Published in `docs/load-files.md`; each with its reason.

use crate::op::Expected;
use crate::wire::status::END_OF_FILE;

use super::line::Line;
use super::names;
use super::status::Status;
use super::verb::Verb;

/// What a line expects of an SMB2 server.
pub(crate) fn expected(line: &Line<'_>) -> Expected {
    match line.status {
        Status::OK => exception(line).unwrap_or(Expected::Success),
        status => status.expected(),
    }
}

/// Of a line that expects success.
fn exception(line: &Line<'_>) -> Option<Expected> {
    let number = |at: usize| line.values[at].number();
    match line.verb {
        // All clients share the directory: the first to come makes it, the others find it.
        Verb::Mkdir if !names::is_own(line.values[0].text()) => Some(Expected::Anything),
        // SMB1 answers a read at the end of the file with success and no bytes, SMB2 with
        // STATUS_END_OF_FILE (MS-SMB2 3.3.5.12).
        Verb::ReadX if number(2) > 0 && number(3) == 0 => Some(Expected::Failure(END_OF_FILE)),
        _ => None,
    }
}
