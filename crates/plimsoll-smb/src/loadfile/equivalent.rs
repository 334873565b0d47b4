//! Where SMB2 answers otherwise than SMB1, or a replay otherwise than its recording: what is
//! expected instead. Published in `docs/load-files.md`; every entry has its reason.

use crate::op::Expected;
use crate::wire::status::END_OF_FILE;

use super::line::Line;
use super::names;
use super::status::Status;
use super::verb::Verb;

/// One exception.
#[derive(Clone, Copy, Debug)]
pub struct Equivalent {
    /// Of which lines that expect success.
    pub case: Case,
    /// What is expected instead.
    pub expected: Expected,
    /// Why.
    pub why: &'static str,
}

/// Lines an exception is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Mkdir of a directory that is not the client's own.
    MkdirOfShared,
    /// ReadX that asks for bytes and expects none.
    ReadOfNothing,
}

/// All exceptions.
pub const EQUIVALENT: &[Equivalent] = &[
    Equivalent {
        case: Case::MkdirOfShared,
        expected: Expected::Anything,
        why: "all clients share the directory: the first to come makes it, the others find it",
    },
    Equivalent {
        case: Case::ReadOfNothing,
        expected: Expected::Failure(END_OF_FILE),
        why: "SMB1 answers a read at the end of the file with success and no bytes, SMB2 with \
              STATUS_END_OF_FILE (MS-SMB2 3.3.5.12)",
    },
];

impl Case {
    fn covers(self, line: &Line<'_>) -> bool {
        let number = |at: usize| line.values[at].number();
        match self {
            Self::MkdirOfShared => {
                line.verb == Verb::Mkdir && !names::is_own(line.values[0].text())
            }
            Self::ReadOfNothing => line.verb == Verb::ReadX && number(2) > 0 && number(3) == 0,
        }
    }
}

/// What a line expects of an SMB2 server.
pub fn expected(line: &Line<'_>) -> Expected {
    let exception = || EQUIVALENT.iter().find(|equivalent| equivalent.case.covers(line));
    match line.status {
        Status::OK => exception().map_or(Expected::Success, |equivalent| equivalent.expected),
        status => status.expected(),
    }
}
