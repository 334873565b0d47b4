//! Failures for a person: a mistake in a suite with its line and a caret, everything else as text.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use plimsoll_model::suite::SuiteError;
use plimsoll_run::secrets::starred;

use super::{note, stderr_style};
use crate::exit::Failure;

/// Writes a failure to standard error.
pub(crate) fn show_failure(failure: &Failure) {
    match failure {
        Failure::Suite(error) => note(&mistake_text(error, stderr_style().is_painted())),
        Failure::Hook(_) | Failure::Other { .. } => {
            note(&format!("{} {failure}", stderr_style().bad("plimsoll:")));
        }
    }
}

fn mistake_text(error: &SuiteError, painted: bool) -> String {
    let Some(span) = error.span.clone() else {
        let help = error.help.as_deref().map(|help| format!("; {help}")).unwrap_or_default();
        return format!("plimsoll: {error}{help}");
    };
    let source = starred(&error.text);
    let end = span.end.min(source.len());
    let start = span.start.min(end);
    let end = end_of_first_line(&source, start, end);
    let mut group = Level::ERROR.primary_title(&error.message).element(
        Snippet::source(&source)
            .path(&*error.file)
            .annotation(AnnotationKind::Primary.span(start..end)),
    );
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if painted { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// A table's span covers many lines; one is enough to show where.
fn end_of_first_line(text: &str, start: usize, end: usize) -> usize {
    text.get(start..end).and_then(|inside| inside.find('\n')).map_or(end, |at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_shows_file_line_caret_and_help() {
        let error = SuiteError {
            file: "mine.toml".into(),
            text: "format = 1\nnmae = \"x\"\n".into(),
            key: "nmae".into(),
            span: Some(11..15),
            message: "unknown key `nmae`".into(),
            help: Some("did you mean `name`?".into()),
        };
        let text = mistake_text(&error, false);
        for part in ["mine.toml:2:1", "unknown key `nmae`", "^^^^", "did you mean `name`?"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn a_mistake_on_the_command_line_has_no_snippet() {
        let error = SuiteError {
            file: "--set load.cleints".into(),
            text: "".into(),
            key: "load.cleints".into(),
            span: None,
            message: "unknown key `load.cleints`".into(),
            help: Some("did you mean `clients`?".into()),
        };
        assert_eq!(
            mistake_text(&error, false),
            "plimsoll: --set load.cleints: unknown key `load.cleints`; did you mean `clients`?"
        );
    }
}
