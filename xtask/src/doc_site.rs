//! `cargo xtask book`: the pages of `docs/` as a book with checked links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use xtask::command::{installed, run};
use xtask::verb::Result;
use xtask::workspace;

use crate::peers;

/// The output folder of `book.toml`.
const SITE_DIR: &str = "target/book";
/// The page for missing pages: a server resolves its links.
const LOST: &str = "404.html";
/// Marks a page that mdBook made.
const MARK: &str = "<!-- Book generated using mdBook -->";

/// Builds the book and checks every link. Without mdBook, CI fails and other runs print a message.
pub fn build_and_check() -> Result<()> {
    let mdbook = match installed("mdbook", &["--no-default-features", "--debug"]) {
        Ok(mdbook) => mdbook,
        Err(message) if peers::must_be_complete() => return Err(message),
        Err(message) => {
            println!("{message}\nSKIPPED, the book was not built and its links were not checked");
            return Ok(());
        }
    };
    let root = workspace::root();
    run(Command::new(mdbook).current_dir(root).arg("build"))?;
    let site = DocSite::read(&root.join(SITE_DIR))?;
    let mut faults = site.left_out(root)?;
    faults.extend(site.pages.keys().flat_map(|page| site.broken_links(page)));
    if faults.is_empty() {
        println!("{} pages, every link leads somewhere", site.pages.len());
        return Ok(());
    }
    Err(faults.join("\n"))
}

/// The book as it was built.
struct DocSite {
    /// Paths in it.
    files: BTreeSet<String>,
    /// Text of the pages, by their paths. Reports are copied into it as the program made them and
    /// are no pages.
    pages: BTreeMap<String, String>,
}

impl DocSite {
    fn read(folder: &Path) -> Result<Self> {
        let (mut files, mut pages) = (BTreeSet::new(), BTreeMap::new());
        for file in workspace::files(folder)? {
            let path = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            if path.ends_with(".html") && path != LOST {
                let text = fs::read_to_string(&file).map_err(|e| format!("{path}: {e}"))?;
                let is_page = text.contains(MARK);
                pages.extend(is_page.then(|| (path.clone(), text)));
            }
            files.insert(path);
        }
        Ok(Self { files, pages })
    }

    /// Pages of `docs/` that the book does not include: a reader would never find them. A Markdown
    /// report is found with its HTML.
    fn left_out(&self, root: &Path) -> Result<Vec<String>> {
        let sources = workspace::sources(root, "docs")?;
        let paths = sources.into_iter().map(|source| source.path);
        Ok(paths.filter_map(|path| self.is_left_out(&path)).collect())
    }

    fn is_left_out(&self, path: &str) -> Option<String> {
        let page = path.strip_prefix("docs/")?.strip_suffix(".md")?.replace("README", "index");
        let is_there = page == "SUMMARY" || self.files.contains(&format!("{page}.html"));
        (!is_there).then(|| format!("{path}: not in the book; name it in docs/SUMMARY.md"))
    }

    fn broken_links(&self, page: &str) -> BTreeSet<String> {
        let links = links(&self.pages[page]);
        links.filter_map(|link| Some(format!("{page}: {}", self.fault(page, link)?))).collect()
    }

    /// The error of a link on this page, if any.
    fn fault(&self, page: &str, link: &str) -> Option<String> {
        let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
        if file.contains(':') || file.starts_with("//") {
            return None;
        }
        let file = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
        if !self.files.contains(&file) {
            return Some(format!("the link to `{link}` leads out of the book"));
        }
        let text = self.pages.get(&file).map_or("", String::as_str);
        let is_there = fragment.is_empty() || text.contains(&format!("id=\"{fragment}\""));
        (!is_there).then(|| format!("the link to `{link}` finds no such place in {file}"))
    }
}

/// Links and images of the page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = |attribute: &'static str| {
        text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
    };
    after(" href=\"").chain(after(" src=\"")).filter(|link| !link.is_empty())
}

/// A path in the book, from the folder of `page`.
fn resolve(page: &str, link: &str) -> String {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_from_the_folder_of_their_page() {
        assert_eq!(resolve("a/b.html", "c.html"), "a/c.html");
        assert_eq!(resolve("a/b.html", "../c.html"), "c.html");
        assert_eq!(resolve("b.html", "./x/y.png"), "x/y.png");
        assert_eq!(resolve("b.html", "../README.html"), "../README.html");
    }

    #[test]
    fn a_link_out_of_the_book_and_one_to_no_heading_are_faults() {
        let text = "<h1 id=\"top\"><a href=\"#top\"></a><a href=\"b.html\"></a>\
                    <a href=\"https://x/\"></a><a href=\"../README.html\"></a>\
                    <img src=\"no.png\"><a href=\"a.html#nowhere\">";
        let files = ["a.html", "b.html"].map(str::to_owned).into();
        let pages = [("a.html".to_owned(), text.to_owned())].into();
        let site = DocSite { files, pages };
        let faults = site.broken_links("a.html");
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!(site.is_left_out("docs/b.md"), None);
        assert!(site.is_left_out("docs/c.md").is_some_and(|fault| fault.contains("SUMMARY.md")));
    }
}
