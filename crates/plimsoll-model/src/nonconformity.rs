//! Where a server's replies differ from the specification of its protocol, and mean the same.
//!
//! Such a reply is accepted, as other clients accept it, counted by kind, and named in the report.
//! A reply whose meaning is in doubt is an error instead ([`crate::outcome::ErrorClass`]).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One way in which a server's replies differ from their specification, and how often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nonconformity {
    /// The specification: `RFC 1813`, `MS-SMB2`.
    pub document: Cow<'static, str>,
    /// Its section with the rule: `3.3.18`.
    pub section: Cow<'static, str>,
    /// What the replies answer, a procedure or a command: `FSSTAT`.
    pub reply_to: Cow<'static, str>,
    /// Which field of them, by its name in the specification; absent where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Cow<'static, str>>,
    /// What is wrong with them.
    pub kind: NonconformityKind,
    /// How many replies were like that.
    pub count: u64,
}

/// What is wrong with a message that means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonconformityKind {
    /// Bytes follow the end of the message.
    TrailingBytes,
    /// The message ends before a part that nobody here reads.
    MissingPart,
    /// A number that the specification does not define, where nobody here reads it.
    UndefinedValue,
    /// Attributes of another object than the one in question, where nobody here needs them.
    OtherObject,
    /// Bytes that must be zero are not.
    NonzeroPadding,
    /// A size or length differs from the specification and from the message itself.
    WrongSize,
    /// A flag that must be set is not, or the other way round.
    WrongFlag,
    /// A field that goes on over several lines, which nobody may send any more.
    FoldedField,
    /// A status with the same meaning as the right one.
    OtherStatus,
    /// The server reported that it set a value, and did not.
    NotKept,
    /// The message is over, and its carrier does not end.
    NotEnded,
}

impl Nonconformity {
    /// Seen in one message.
    pub const fn once(
        document: &'static str,
        section: &'static str,
        reply_to: &'static str,
        field: Option<&'static str>,
        kind: NonconformityKind,
    ) -> Self {
        let field = match field {
            Some(name) => Some(Cow::Borrowed(name)),
            None => None,
        };
        Self {
            document: Cow::Borrowed(document),
            section: Cow::Borrowed(section),
            reply_to: Cow::Borrowed(reply_to),
            field,
            kind,
            count: 1,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.reply_to == other.reply_to
            && self.field == other.field
            && self.document == other.document
            && self.section == other.section
    }
}

/// Ways in which one server, or all of a run, differ from their specification: each once, in the
/// order of the report. Their number is bounded by what this program tolerates, not by what a
/// server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonconformities(Vec<Nonconformity>);

impl Nonconformities {
    /// Counts what was seen in a message. Allocates only where this is the first of its kind.
    pub fn note(&mut self, observed: &Nonconformity) {
        match self.0.iter_mut().find(|existing| existing.is_like(observed)) {
            Some(existing) => existing.count += observed.count,
            None => {
                let at = self.0.partition_point(|existing| existing < observed);
                self.0.insert(at, observed.clone());
            }
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, others: &Self) {
        others.0.iter().for_each(|other| self.note(other));
    }

    /// None were seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each way once.
    pub fn iter(&self) -> impl Iterator<Item = &Nonconformity> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_counted_once() {
        let fsstat = Nonconformity::once(
            "RFC 1813",
            "3.3.18",
            "FSSTAT",
            None,
            NonconformityKind::TrailingBytes,
        );
        let padding = Nonconformity::once(
            "RFC 4506",
            "4.10",
            "MNT",
            Some("fhandle3"),
            NonconformityKind::NonzeroPadding,
        );
        let mut observed = Nonconformities::default();
        for one in [&padding, &fsstat, &fsstat] {
            observed.note(one);
        }
        let mut both = observed.clone();
        both.add(&observed);
        assert_eq!(both.iter().map(|one| one.count).collect::<Vec<_>>(), [4, 2]);
        let json = serde_json::to_string(&observed).unwrap();
        assert_eq!(serde_json::from_str::<Nonconformities>(&json).unwrap(), observed);
    }
}
