//! Errors by class and status, and how the clients saw them.

use plimsoll_model::event::UnexpectedCount;
use plimsoll_model::result::RunResult;

use crate::sentences::late;
use crate::table::{Rows, Table};
use crate::text::{ABSENT, count};

pub(super) fn errors_table(run: &RunResult) -> Table {
    let all = run.points.iter().flat_map(|point| {
        let failed = point.errors.iter().filter(|(_, n)| **n > 0);
        failed.map(move |(class, n)| (point, class.as_str(), *n))
    });
    Rows::new("Errors by class", all)
        .figures("point", "", |(point, ..)| point.position)
        .text("class", |(point, class, _)| class_text(class, &point.unexpected))
        .figures("ops", "", |(.., n)| count(Some(*n)))
        .text("what it means", |(_, class, _)| meaning(class))
        .table()
}

/// Short meanings of the classes of `docs/validity.md`.
fn meaning(class: &str) -> &'static str {
    match class {
        "timeout" => "no reply within the time limit of an op",
        "transport" => "connection refused, reset, or closed before the reply",
        "tls" => "the TLS handshake or record layer failed",
        "ports_exhausted" => "no local port was free",
        "descriptors_exhausted" => "this process may open no more connections",
        "truncated" => "the reply broke off",
        "malformed" => "the reply is not of the protocol",
        "surplus" => "the server sent bytes behind the reply",
        "length" => "the reply has another length than the file",
        "corrupt" => "the reply contained other data than the file",
        "rejected" => {
            "the server refused the call itself: program, version, procedure, or credentials"
        }
        "not_taken" => "the reply lacks what the next request of the journey needs",
        "content" => "the reply lacks the text that was expected in it",
        "redirect" => "a redirect that leads elsewhere, or in circles",
        "abandoned" => "a user gave up before the page was complete",
        "verifier" => "the server restarted and may have lost writes it had not committed",
        status if status.starts_with("status:") => "the server answered with this status",
        _ => ABSENT,
    }
}

pub(super) fn unexpected_table(run: &RunResult) -> Table {
    let points = run.points.iter();
    let all = points.flat_map(|point| point.unexpected.iter().map(move |it| (point, it)));
    Rows::new("Statuses other than expected", all)
        .figures("point", "", |(point, _)| point.position)
        .text("op", |(_, it)| it.op.clone())
        .figures("expected status", "", |(_, it)| {
            status_text(it.expected, it.expected_name.as_deref())
        })
        .figures("seen", "", |(_, it)| status_text(it.actual, it.actual_name.as_deref()))
        .figures("ops", "", |(_, it)| count(Some(it.count)))
        .table()
}

/// Statuses from here on are codes of parts (NTSTATUS), which people write in hex.
const HEX_FROM: u32 = 0x1_0000;

/// The protocol's name of it, else its number.
fn status_text(status: u32, name: Option<&str>) -> String {
    match name {
        Some(name) => name.to_owned(),
        None if status >= HEX_FROM => format!("0x{status:08X}"),
        None => status.to_string(),
    }
}

/// `status:3221225524` as what people call that status.
pub(super) fn class_text(class: &str, unexpected: &[UnexpectedCount]) -> String {
    let Some(status) = class.strip_prefix("status:").and_then(|s| s.parse::<u32>().ok()) else {
        return class.to_owned();
    };
    let mismatch = unexpected.iter().find(|mismatch| mismatch.actual == status);
    let name = mismatch.and_then(|mismatch| mismatch.actual_name.as_deref());
    format!("status:{}", status_text(status, name))
}

pub(super) fn error_samples(run: &RunResult) -> Vec<(String, Vec<String>)> {
    let failed = run.points.iter().filter(|p| !p.error_samples.is_empty());
    let samples = failed.map(|p| (format!("point {}", p.position), p.error_samples.clone()));
    let late = run.points.iter().filter(|p| !p.late.is_empty()).map(|p| {
        let named = p.late.first.iter().map(late::text).collect();
        (format!("point {}: the first of {} late requests", p.position, p.late.count), named)
    });
    samples.chain(late).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::outcome::ErrorClass;

    #[test]
    fn statuses_have_names_where_the_protocol_gives_them_and_large_ones_are_in_hex() {
        let mismatch = UnexpectedCount {
            actual: 0xC000_0043,
            actual_name: Some("STATUS_SHARING_VIOLATION".to_owned()),
            ..UnexpectedCount::default()
        };
        let class = |text: &str| class_text(text, std::slice::from_ref(&mismatch));
        assert_eq!(class("status:3221225539"), "status:STATUS_SHARING_VIOLATION");
        assert_eq!(class("status:3221225506"), "status:0xC0000022");
        assert_eq!(
            (class("status:503"), class("timeout")),
            ("status:503".into(), "timeout".into())
        );
        assert_eq!(status_text(0, None), "0");
    }

    #[test]
    fn every_class_of_errors_is_explained_in_words_here_and_in_the_document() {
        let document = include_str!("../../../../docs/validity.md");
        for class in [
            ErrorClass::Timeout,
            ErrorClass::Transport,
            ErrorClass::Tls,
            ErrorClass::PortsExhausted,
            ErrorClass::DescriptorsExhausted,
            ErrorClass::Status(70),
            ErrorClass::Truncated,
            ErrorClass::Malformed,
            ErrorClass::TrailingBytes,
            ErrorClass::Length,
            ErrorClass::Corrupt,
            ErrorClass::Rejected,
            ErrorClass::NotTaken,
            ErrorClass::Content,
            ErrorClass::Redirect,
            ErrorClass::Abandoned,
            ErrorClass::Verifier,
        ] {
            let key = class.to_string();
            assert_ne!(meaning(&key), ABSENT, "{key}");
            let name = key.split(':').next().unwrap_or_default();
            assert!(document.contains(&format!("`{name}")), "{name}");
        }
        assert_eq!(meaning("of tomorrow"), ABSENT);
    }
}
