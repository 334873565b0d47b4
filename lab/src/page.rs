//! Tables in the pages of `docs/`. Each stands between two markers, and a measurement replaces it.

use std::fs;

use xtask::verb::Result;
use xtask::workspace;

/// A table in a page.
pub struct Table<'a> {
    /// The page's path from the root of the workspace.
    pub page: &'a str,
    /// Its name in the markers `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
    pub name: &'a str,
}

impl Table<'_> {
    /// An error where the page has no such markers. Checked before the minutes of a measurement.
    pub fn check(&self) -> Result<()> {
        self.replaced("").map(drop)
    }

    /// Replaces what stands between the markers.
    pub fn write(&self, text: &str) -> Result<()> {
        let page = self.replaced(text.trim())?;
        fs::write(workspace::root().join(self.page), page).map_err(|e| self.failed(e))
    }

    fn replaced(&self, text: &str) -> Result<String> {
        let page = fs::read_to_string(workspace::root().join(self.page));
        replaced(&page.map_err(|e| self.failed(e))?, self.name, text)
            .ok_or_else(|| format!("{}: the markers of `{}` are missing", self.page, self.name))
    }

    fn failed(&self, error: std::io::Error) -> String {
        format!("{}: {error}", self.page)
    }
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- {name}: begin -->");
    let end = format!("<!-- {name}: end -->");
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
        let once = replaced(page, "bench web", "new").unwrap();
        assert_eq!(once, "# A\n<!-- bench web: begin -->\n\nnew\n\n<!-- bench web: end -->\nB\n");
        assert_eq!(replaced(&once, "bench web", "new").unwrap(), once);
        assert_eq!(replaced(page, "bench memory", "new"), None);
    }
}
