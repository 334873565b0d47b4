//! `/etc/os-release`, `/proc/pressure/*`, `/proc/self/status` and files that offer choices.

/// Name and version of the operating system from os-release(5).
pub fn parse_os_release(text: &str) -> Option<String> {
    let field = |name: &str| {
        let value =
            text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
        let value = value.trim();
        let bare = ['"', '\'']
            .iter()
            .find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote))
            .unwrap_or(value);
        (!bare.is_empty()).then(|| bare.to_owned())
    };
    field("PRETTY_NAME").or_else(|| {
        let name = field("NAME")?;
        Some(match field("VERSION").or_else(|| field("VERSION_ID")) {
            Some(version) => format!("{name} {version}"),
            None => name,
        })
    })
}

/// Time lost waiting for a resource since boot, in microseconds (kernel, accounting/psi).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_us: Option<u64>,
    /// Every task that could have run waited.
    pub full_us: Option<u64>,
}

/// Reads one file of `/proc/pressure`.
pub fn parse_pressure(text: &str) -> Pressure {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Pressure { some_us: total("some "), full_us: total("full ") }
}

/// The choice in brackets: `always [madvise] never`. A file without brackets is its own choice.
pub fn parse_selected(text: &str) -> Option<&str> {
    let text = text.trim();
    let selected = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    selected.or(Some(text)).filter(|choice| !choice.is_empty())
}

/// A field of `/proc/self/status`.
pub fn parse_status_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pretty_name_wins_and_quotes_go() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(parse_os_release(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    }

    #[test]
    fn name_and_version_stand_in_for_a_missing_pretty_name() {
        assert_eq!(parse_os_release("NAME=Alpine\nVERSION_ID='3.20'"), Some("Alpine 3.20".into()));
        assert_eq!(parse_os_release("PRETTY_NAME=\"\"\n"), None);
    }

    #[test]
    fn pressure_totals_are_read_and_full_may_be_missing() {
        let text = "some avg10=0.15 avg60=0.85 avg300=0.86 total=42201249\n";
        assert_eq!(parse_pressure(text), Pressure { some_us: Some(42_201_249), full_us: None });
    }

    #[test]
    fn the_choice_in_brackets_is_the_one() {
        assert_eq!(parse_selected("always [madvise] never\n"), Some("madvise"));
        assert_eq!(parse_selected("none\n"), Some("none"));
        assert_eq!(parse_selected("a ]b[ c"), Some("a ]b[ c"));
        assert_eq!(parse_selected(" \n"), None);
    }

    #[test]
    fn status_fields_are_found_by_name() {
        let text = "Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(parse_status_field(text, "Cpus_allowed_list"), Some("0-1"));
        assert_eq!(parse_status_field(text, "Threads"), None);
    }
}
