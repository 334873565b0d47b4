//! Where a server's replies differ from the specification of its protocol, and mean the same.
//!
//! Such a reply is accepted, as other clients accept it, counted by kind, and named in the report.
//! A reply whose meaning is in doubt is an error instead ([`crate::outcome::ErrorClass`]).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named::named;
use crate::units::grouped;

/// One way in which a server's replies differ from their specification, and how often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nonconformity {
    /// The specification: `RFC 1813`, `MS-SMB2`.
    pub document: Cow<'static, str>,
    /// Its section that says what is right: `3.3.18`.
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

named! {
    fn text;
    /// What is wrong with a message that means the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NonconformityKind {
        /// Bytes follow the end of the message.
        TrailingBytes = "bytes follow the end of the message",
        /// The message ends before a part that nobody here reads.
        MissingPart = "the message ends too early",
        /// A number that the specification does not define, where nobody here reads it.
        UndefinedValue = "a value that is not defined",
        /// Attributes of another object than the one in question, where nobody here needs them.
        OtherObject = "those of another object",
        /// Bytes that must be zero are not.
        NonzeroPadding = "padding that is not zero",
        /// A size or length differs from what the specification says, and from the message itself.
        WrongSize = "a wrong size",
        /// A flag that must be set is not, or the other way round.
        WrongFlag = "a wrong flag",
        /// The server said that it set a value, and did not.
        NotKept = "what was set is not kept",
    }
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

/// `FSSTAT (section 3.3.18: bytes follow the end of the message, 12 times)`.
impl fmt::Display for Nonconformity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { section, reply_to, field, kind, count, .. } = self;
        write!(f, "{reply_to} (section {section}: ")?;
        if let Some(field) = field {
            write!(f, "{field}, ")?;
        }
        write!(f, "{}, {})", kind.text(), Times(*count))
    }
}

/// Ways in which one server, or all of a run, differ from their specification: each once, in the
/// order in which a reader wants them. Their number is bounded by what this program knows to
/// tolerate, not by what a server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonconformities(Vec<Nonconformity>);

impl Nonconformities {
    /// Counts what was seen in a message. Allocates only where this is the first of its kind.
    pub fn note(&mut self, seen: &Nonconformity) {
        match self.0.iter_mut().find(|known| known.is_like(seen)) {
            Some(known) => known.count += seen.count,
            None => {
                let at = self.0.partition_point(|known| known < seen);
                self.0.insert(at, seen.clone());
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

    /// What a reader is told; `None` where none were seen.
    pub fn sentence(&self) -> Option<String> {
        let groups = self.groups();
        let mut documents: Vec<(&str, Vec<String>)> = Vec::new();
        for group in groups.iter().take(GROUPS_MAX) {
            let (document, said) = (group.document(), group.to_string());
            match documents.iter_mut().find(|(known, _)| *known == document) {
                Some((_, all)) => all.push(said),
                None => documents.push((document, vec![said])),
            }
        }
        let from = |(document, all): &(&str, Vec<String>)| {
            format!("from {document} in its replies to {}", all.join(" and to "))
        };
        let mut text = documents.iter().map(from).collect::<Vec<_>>().join(" and ");
        text += &match groups.len().saturating_sub(GROUPS_MAX) {
            0 => String::new(),
            more => format!(", and otherwise ({more} more in result.json, `nonconformities`)"),
        };
        (!groups.is_empty()).then(|| {
            format!(
                "the server deviates {text}; what the replies mean is clear, so they were \
                 accepted; report it to the authors of the server",
            )
        })
    }

    /// What is wrong in the same way with replies to several procedures is said once, what other
    /// clients are most likely to stumble over first.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for one in &self.0 {
            match groups.iter_mut().find(|group| group.is_of(one)) {
                Some(group) => group.0.push(one),
                None => groups.push(Group(vec![one])),
            }
        }
        groups.sort_by_key(|group| group.0.first().map(|first| first.kind));
        groups
    }
}

/// Replies to several procedures that are wrong in the same way.
struct Group<'a>(Vec<&'a Nonconformity>);

impl Group<'_> {
    fn document(&self) -> &str {
        self.0.first().map_or("", |first| &first.document)
    }

    fn is_of(&self, one: &Nonconformity) -> bool {
        let key = |it: &Nonconformity| (it.kind, it.document.clone(), it.field.clone());
        self.0.iter().all(|known| key(known) == key(one))
    }
}

/// `FSSTAT (section 3.3.18; bytes follow the end of the message, 12 times)`.
impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else { return Ok(()) };
        let Nonconformity { section, field, kind, .. } = first;
        let named: Vec<&str> = self.0.iter().take(NAMED_MAX).map(|one| &*one.reply_to).collect();
        f.write_str(&named.join(", "))?;
        match self.0.len() - named.len() {
            0 => {}
            1 => write!(f, " and one other")?,
            more => write!(f, " and {more} others")?,
        }
        f.write_str(" (")?;
        if let [_] = self.0[..] {
            write!(f, "section {section}; ")?;
        }
        if let Some(field) = field {
            write!(f, "{field}: ")?;
        }
        let count = self.0.iter().map(|one| one.count).sum();
        write!(f, "{}, {})", kind.text(), Times(count))
    }
}

/// How often, in words.
struct Times(u64);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("once"),
            2 => f.write_str("twice"),
            times => write!(f, "{} times", grouped(times as f64)),
        }
    }
}

/// Ways that [`Nonconformities::sentence`] names; more would bury the other warnings.
const GROUPS_MAX: usize = 4;
/// Procedures that each of them names.
const NAMED_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const FSSTAT: Nonconformity =
        Nonconformity::once("RFC 1813", "3.3.18", "FSSTAT", None, NonconformityKind::TrailingBytes);
    const PADDING: Nonconformity = Nonconformity::once(
        "RFC 4506",
        "4.10",
        "MNT",
        Some("fhandle3"),
        NonconformityKind::NonzeroPadding,
    );

    #[test]
    fn each_way_is_counted_and_named_once() {
        let mut seen = Nonconformities::default();
        assert_eq!(seen.sentence(), None);
        for one in [&PADDING, &FSSTAT, &FSSTAT] {
            seen.note(one);
        }
        let mut both = seen.clone();
        both.add(&seen);
        assert_eq!(both.iter().map(|one| one.count).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(
            seen.sentence().unwrap(),
            "the server deviates from RFC 1813 in its replies to FSSTAT (section 3.3.18; bytes \
             follow the end of the message, twice) and from RFC 4506 in its replies to MNT \
             (section 4.10; fhandle3: padding that is not zero, once); what the replies mean is \
             clear, so they were accepted; report it to the authors of the server"
        );
        let json = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Nonconformities>(&json).unwrap(), seen);
    }

    #[test]
    fn a_server_that_deviates_everywhere_does_not_bury_the_report() {
        let mut seen = Nonconformities::default();
        for n in 0..5 {
            seen.note(&Nonconformity { reply_to: format!("P{n}").into(), ..FSSTAT });
        }
        let one = "RFC 1813 in its replies to P0, P1, P2 and 2 others (bytes follow the end of the \
                   message, 5 times); what";
        assert!(seen.sentence().unwrap().contains(one), "{:?}", seen.sentence());
        for n in 0..GROUPS_MAX {
            seen.note(&Nonconformity { document: format!("RFC {n}").into(), ..FSSTAT });
        }
        let sentence = seen.sentence().unwrap();
        assert!(sentence.contains(", and otherwise (1 more in result.json, `"), "{sentence}");
        let mut two = Nonconformities::default();
        two.note(&FSSTAT);
        two.note(&Nonconformity { kind: NonconformityKind::WrongFlag, ..FSSTAT });
        let and = "once) and to FSSTAT (section 3.3.18; a wrong flag, once);";
        assert!(two.sentence().unwrap().contains(and), "{:?}", two.sentence());
        // By its kind it comes between the two.
        two.note(&Nonconformity { kind: NonconformityKind::MissingPart, ..PADDING });
        let sentence = two.sentence().unwrap();
        assert_eq!(sentence.matches("from RFC 1813").count(), 1, "{sentence}");
        assert!(sentence.contains("flag, once) and from RFC 4506 in its"), "{sentence}");
    }
}
