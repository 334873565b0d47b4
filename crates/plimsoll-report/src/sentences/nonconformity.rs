//! Where the servers' replies differ from their specification and mean the same.

use plimsoll_model::nonconformity::{Nonconformities, Nonconformity, NonconformityKind};
use plimsoll_model::units::grouped;

/// Ways that the sentence names; more would bury the other warnings.
const GROUPS_MAX: usize = 4;
/// Procedures that each of them names.
const NAMED_MAX: usize = 3;

/// `None` where no reply differs.
pub fn text(all: &Nonconformities) -> Option<String> {
    let groups = groups(all);
    let mut documents: Vec<(&str, Vec<String>)> = Vec::new();
    for group in groups.iter().take(GROUPS_MAX) {
        let (document, description) = (group.document(), group.text());
        match documents.iter_mut().find(|(existing, _)| *existing == document) {
            Some((_, all)) => all.push(description),
            None => documents.push((document, vec![description])),
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
            "the server deviates {text}; what the replies mean is clear, so they were accepted; \
             report it to the authors of the server",
        )
    })
}

/// Replies to several procedures that are wrong in the same way.
struct Group<'a>(Vec<&'a Nonconformity>);

/// Faults that are most likely to break other clients come first.
fn groups(all: &Nonconformities) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for one in all.iter() {
        match groups.iter_mut().find(|group| group.is_of(one)) {
            Some(group) => group.0.push(one),
            None => groups.push(Group(vec![one])),
        }
    }
    groups.sort_by_key(|group| group.0.first().map(|first| first.kind));
    groups
}

impl Group<'_> {
    fn document(&self) -> &str {
        self.0.first().map_or("", |first| &first.document)
    }

    fn is_of(&self, one: &Nonconformity) -> bool {
        let key = |it: &Nonconformity| (it.kind, it.document.clone(), it.field.clone());
        self.0.iter().all(|existing| key(existing) == key(one))
    }

    /// `FSSTAT (section 3.3.18; bytes follow the end of the message, 12 times)`.
    fn text(&self) -> String {
        let Some(first) = self.0.first() else { return String::new() };
        let Nonconformity { section, field, kind, .. } = first;
        let named: Vec<&str> = self.0.iter().take(NAMED_MAX).map(|one| &*one.reply_to).collect();
        let others = match self.0.len() - named.len() {
            0 => String::new(),
            1 => " and one other".to_owned(),
            more => format!(" and {more} others"),
        };
        let section = match self.0[..] {
            [_] => format!("section {section}; "),
            _ => String::new(),
        };
        let field = field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
        let count = self.0.iter().map(|one| one.count).sum();
        let (named, fault, times) = (named.join(", "), fault(*kind), times(count));
        format!("{named}{others} ({section}{field}{fault}, {times})")
    }
}

const fn fault(kind: NonconformityKind) -> &'static str {
    match kind {
        NonconformityKind::TrailingBytes => "bytes follow the end of the message",
        NonconformityKind::MissingPart => "the message ends too early",
        NonconformityKind::UndefinedValue => "a value that is not defined",
        NonconformityKind::OtherObject => "those of another object",
        NonconformityKind::NonzeroPadding => "padding that is not zero",
        NonconformityKind::WrongSize => "a wrong size",
        NonconformityKind::WrongFlag => "a wrong flag",
        NonconformityKind::FoldedField => "a field of the header is folded over several lines",
        NonconformityKind::OtherStatus => "another status of the same meaning",
        NonconformityKind::NotKept => "what was set is not kept",
        NonconformityKind::NotEnded => "the body does not end after it",
    }
}

/// How often, as text.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        times => format!("{} times", grouped(times as f64)),
    }
}

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
    fn each_way_is_named_once() {
        let mut observed = Nonconformities::default();
        assert_eq!(text(&observed), None);
        for one in [&PADDING, &FSSTAT, &FSSTAT] {
            observed.note(one);
        }
        assert_eq!(
            text(&observed).unwrap(),
            "the server deviates from RFC 1813 in its replies to FSSTAT (section 3.3.18; bytes \
             follow the end of the message, twice) and from RFC 4506 in its replies to MNT \
             (section 4.10; fhandle3: padding that is not zero, once); what the replies mean is \
             clear, so they were accepted; report it to the authors of the server"
        );
    }

    #[test]
    fn a_server_that_deviates_everywhere_does_not_bury_the_report() {
        let mut observed = Nonconformities::default();
        for n in 0..5 {
            observed.note(&Nonconformity { reply_to: format!("P{n}").into(), ..FSSTAT });
        }
        let one = "RFC 1813 in its replies to P0, P1, P2 and 2 others (bytes follow the end of the \
                   message, 5 times); what";
        assert!(text(&observed).unwrap().contains(one), "{:?}", text(&observed));
        for n in 0..GROUPS_MAX {
            observed.note(&Nonconformity { document: format!("RFC {n}").into(), ..FSSTAT });
        }
        let sentence = text(&observed).unwrap();
        assert!(sentence.contains(", and otherwise (1 more in result.json, `"), "{sentence}");
        let mut two = Nonconformities::default();
        two.note(&FSSTAT);
        two.note(&Nonconformity { kind: NonconformityKind::WrongFlag, ..FSSTAT });
        let and = "once) and to FSSTAT (section 3.3.18; a wrong flag, once);";
        assert!(text(&two).unwrap().contains(and), "{:?}", text(&two));
        // By its kind it comes between the two.
        two.note(&Nonconformity { kind: NonconformityKind::MissingPart, ..PADDING });
        let sentence = text(&two).unwrap();
        assert_eq!(sentence.matches("from RFC 1813").count(), 1, "{sentence}");
        assert!(sentence.contains("flag, once) and from RFC 4506 in its"), "{sentence}");
    }
}
