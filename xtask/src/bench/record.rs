//! Prints what was measured and, when asked, writes it to its place in `docs/performance.md`.

use std::fs;

use super::{GENERATOR_CORE, Options, SERVER_CORE, facts};
use crate::{Result, workspace};

/// The page that holds the figures.
const PAGE: &str = "docs/performance.md";

/// Prints the tables with the facts of the machine; with `--write` puts them between the
/// markers of `part`.
pub fn record(part: &str, tables: &str, options: &Options) -> Result<()> {
    let only = match options.only.join(",") {
        only if only.is_empty() => only,
        only => format!(" --only {only}"),
    };
    let rounds = match part {
        "memory" => String::new(),
        _ => format!(" --rounds {}", options.rounds),
    };
    let text = format!(
        "Command: `cargo xtask bench {part}{rounds} --seconds {}{only}`\n\n\
         Server on core {SERVER_CORE}, generator on core {GENERATOR_CORE}, loopback.\n\n\
         {}\n{}",
        options.seconds,
        facts::facts(part),
        tables.trim_end()
    );
    println!("{text}");
    if !options.write {
        return Ok(());
    }
    let path = workspace::root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let page = placed(&page, part, &text)
        .ok_or_else(|| format!("{PAGE}: the markers of `bench {part}` are missing"))?;
    fs::write(&path, page).map_err(|e| format!("{PAGE}: {e}"))
}

/// A part of the tables under its title. What could not be measured is named in its place.
pub fn section(title: &str, measure: impl FnOnce() -> Result<String>) -> String {
    eprintln!("\n== {title} ==");
    let table = measure().unwrap_or_else(|message| {
        eprintln!("NOT MEASURED: {message}");
        format!("Not measured: {message}\n")
    });
    format!("### {title}\n\n{table}\n")
}

/// The page with everything between the two markers replaced.
fn placed(page: &str, part: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- bench {part}: begin -->");
    let end = format!("<!-- bench {part}: end -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{text}\n\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_between_its_markers() {
        let page = "# A\n<!-- bench web: begin -->\nold\n<!-- bench web: end -->\nB\n";
        let once = placed(page, "web", "new").unwrap();
        assert_eq!(once, "# A\n<!-- bench web: begin -->\n\nnew\n\n<!-- bench web: end -->\nB\n");
        assert_eq!(placed(&once, "web", "new").unwrap(), once);
        assert_eq!(placed(page, "memory", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_every_part() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        for part in ["web", "memory", "nfs", "smb", "app"] {
            assert!(placed(&page, part, "").is_some(), "{part}");
        }
    }
}
