//! The paths of a log, each once, and the pages that they are: paths that differ in an identifier or
//! in one of many names are the same page.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use crate::request::{OUTCOMES, Outcome, PathId, Request};

/// Distinct paths that are kept; requests of others are counted and left out.
pub(crate) const PATHS_MAX: usize = 500_000;
/// Bytes of their texts together.
const TEXT_BYTES_MAX: usize = 48 << 20;
/// Names in a folder that may be pages of their own.
const CHILDREN_MAX: usize = 20;
/// Where a folder has more names: share of its requests that a name of its own has.
const OWN_NAME_SHARE: f64 = 0.01;
/// Segments of a path that are compared; what is behind is one name.
const DEPTH_MAX: usize = 8;

/// A map whose keys are hashes.
pub(crate) type HashKeyed<T> = HashMap<u64, T, BuildHasherDefault<HashItself>>;

/// The hash of a hash.
#[derive(Default)]
pub(crate) struct HashItself(u64);

impl Hasher for HashItself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// What the log has of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathEntry {
    start: u32,
    length: u32,
    /// Requests of users and of bots, by outcome.
    pub counts: [[u32; OUTCOMES]; 2],
    /// Whole replies, their sizes and the squares of those.
    pub sized: u32,
    bytes: f64,
    bytes_squared: f64,
    /// Which page it is: paths with the same key are one page.
    pub page_key: u64,
    /// Segments of it that are no names of their own, a bit each.
    any: u16,
}

impl PathEntry {
    /// Mean size of its whole replies.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.sized > 0).then(|| self.bytes / f64::from(self.sized))
    }

    /// Replies, sum and sum of squares of their sizes.
    pub fn size_sums(&self) -> [f64; 3] {
        [f64::from(self.sized), self.bytes, self.bytes_squared]
    }

    /// Its requests.
    pub fn requests(&self) -> u64 {
        self.counts.iter().flatten().copied().map(u64::from).sum()
    }
}

/// All paths of a log.
#[derive(Default)]
pub(crate) struct PathTable {
    text: String,
    entries: Vec<PathEntry>,
    by_hash: HashKeyed<u32>,
    hasher: RandomState,
}

impl PathTable {
    /// Number of a path; `None` if there is no room for another one.
    pub fn insert(&mut self, path: &str) -> Option<PathId> {
        let hash = self.hasher.hash_one(path);
        if let Some(id) = self.by_hash.get(&hash) {
            return Some(PathId(*id));
        }
        if self.entries.len() >= PATHS_MAX || self.text.len() + path.len() > TEXT_BYTES_MAX {
            return None;
        }
        let id = self.entries.len() as u32;
        let (start, length) = (self.text.len() as u32, path.len() as u32);
        self.text.push_str(path);
        self.entries.push(PathEntry { start, length, ..PathEntry::default() });
        self.by_hash.insert(hash, id);
        Some(PathId(id))
    }

    /// Counts a request of it.
    pub fn count(&mut self, request: &Request) {
        let entry = &mut self.entries[request.path.0 as usize];
        entry.counts[usize::from(request.is_bot)][request.outcome() as usize] += 1;
        if let Some(bytes) = request.whole_bytes().filter(|_| request.outcome() == Outcome::Good) {
            entry.sized += 1;
            entry.bytes += bytes as f64;
            entry.bytes_squared += (bytes as f64).powi(2);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Path and query.
    pub fn text(&self, id: PathId) -> &str {
        let entry = &self.entries[id.0 as usize];
        &self.text[entry.start as usize..(entry.start + entry.length) as usize]
    }

    /// What the log has of it.
    pub fn entry(&self, id: PathId) -> &PathEntry {
        &self.entries[id.0 as usize]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &PathEntry)> {
        self.entries.iter().enumerate().map(|(id, entry)| (PathId(id as u32), entry))
    }

    /// The path of its page, such as `/item/*`.
    pub fn page_text(&self, id: PathId) -> String {
        let any = self.entries[id.0 as usize].any;
        let (segments, query) = segments(self.text(id));
        let mut text = String::new();
        for (depth, segment) in segments.enumerate() {
            text.push('/');
            match any >> depth & 1 {
                0 => text.push_str(segment),
                _ => text.push_str(&format!("*{}", extension(segment))),
            }
        }
        if query { text + "?*" } else { text }
    }

    /// Finds the page of every path: folder by folder, names that are identifiers, and the rare ones
    /// of a folder with many, are one.
    pub fn find_pages(&mut self) {
        let hasher = RandomState::new();
        let mut entries = std::mem::take(&mut self.entries);
        for depth in 0..DEPTH_MAX {
            let mut children: HashKeyed<Child> = HashKeyed::default();
            let mut names = 0;
            for entry in &entries {
                let Some(segment) = self.segment(entry, depth) else { continue };
                if is_identifier(segment) {
                    continue;
                }
                names += 1;
                let key = hasher.hash_one((entry.page_key, segment));
                let child = children.entry(key).or_default();
                child.folder = entry.page_key;
                child.requests += entry.requests();
            }
            if names == 0 && entries.iter().all(|entry| self.segment(entry, depth).is_none()) {
                break;
            }
            let folders = folders(&children);
            for entry in &mut entries {
                let Some(segment) = self.segment(entry, depth) else { continue };
                let key = hasher.hash_one((entry.page_key, segment));
                let is_name = children.get(&key).is_some_and(|child| {
                    let folder = &folders[&child.folder];
                    let share = child.requests as f64 / folder.requests as f64;
                    folder.names <= CHILDREN_MAX || share >= OWN_NAME_SHARE
                });
                entry.page_key = match is_name {
                    true => key,
                    false => {
                        entry.any |= 1 << depth;
                        hasher.hash_one((entry.page_key, "*", extension(segment)))
                    }
                };
            }
        }
        for entry in &mut entries {
            let text = &self.text[entry.start as usize..(entry.start + entry.length) as usize];
            if text.contains('?') {
                entry.page_key = hasher.hash_one((entry.page_key, "?"));
            }
        }
        self.entries = entries;
    }

    fn segment(&self, entry: &PathEntry, depth: usize) -> Option<&str> {
        let text = &self.text[entry.start as usize..(entry.start + entry.length) as usize];
        segments(text).0.nth(depth)
    }
}

/// A name in a folder.
#[derive(Default)]
struct Child {
    folder: u64,
    requests: u64,
}

/// What a folder has.
#[derive(Default)]
struct Folder {
    names: usize,
    requests: u64,
}

fn folders(children: &HashKeyed<Child>) -> HashKeyed<Folder> {
    let mut folders: HashKeyed<Folder> = HashKeyed::default();
    for child in children.values() {
        let folder = folders.entry(child.folder).or_default();
        folder.names += 1;
        folder.requests += child.requests;
    }
    folders
}

/// Names of a path, and whether a query follows.
fn segments(path: &str) -> (impl Iterator<Item = &str>, bool) {
    let (path, query) = path.split_once('?').map_or((path, false), |(path, _)| (path, true));
    (path.strip_prefix('/').unwrap_or(path).splitn(DEPTH_MAX, '/'), query)
}

/// Endings of files that belong to a page: those that browsers request for it by themselves.
const RESOURCES: [&str; 22] = [
    ".css", ".js", ".mjs", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp",
    ".avif", ".woff", ".woff2", ".ttf", ".eot", ".otf", ".mp4", ".webm", ".mp3", ".wasm", ".bmp",
];
/// Endings of pages.
const PAGES: [&str; 10] =
    [".html", ".htm", ".php", ".asp", ".aspx", ".jsp", ".xml", ".txt", ".json", ".pdf"];

/// The ending of a name, where that is a usual one.
pub(crate) fn extension(segment: &str) -> &str {
    let ending = segment.rfind('.').map_or("", |at| &segment[at..]);
    let is_usual = |usual: &&str| usual.eq_ignore_ascii_case(ending);
    if RESOURCES.iter().chain(&PAGES).any(is_usual) { ending } else { "" }
}

/// A style sheet, script, picture or font: part of the page before it.
pub(crate) fn is_resource(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or(path);
    let ending = path.rfind('.').map_or("", |at| &path[at..]);
    RESOURCES.iter().any(|resource| resource.eq_ignore_ascii_case(ending))
}

/// A number, a date, a UUID or another text that names one thing of many.
fn is_identifier(segment: &str) -> bool {
    let name = segment.strip_suffix(extension(segment)).unwrap_or(segment);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_number = digits > 0 && name.bytes().all(|b| b.is_ascii_digit() || b"-_.:,".contains(&b));
    let is_hex =
        name.len() >= 8 && digits > 0 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_token = name.len() >= 20
        && digits >= 4
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=".contains(&b));
    is_number || is_hex || is_token
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::units::Nanos;

    fn pages(requests: &[(&str, u32)]) -> Vec<(String, u64)> {
        let mut table = PathTable::default();
        for (path, count) in requests {
            let path = table.insert(path).unwrap();
            let request = Request {
                begin: Nanos::ZERO,
                duration: Nanos::ZERO,
                path,
                client: 0,
                bytes: Some(5),
                status: 200,
                method: 0,
                is_bot: false,
            };
            (0..*count).for_each(|_| table.count(&request));
        }
        table.find_pages();
        let mut pages = std::collections::BTreeMap::new();
        for (id, entry) in table.iter() {
            let page = pages.entry(entry.page_key).or_insert((table.page_text(id), 0));
            assert_eq!(page.0, table.page_text(id));
            page.1 += entry.requests();
        }
        let mut pages: Vec<_> = pages.into_values().collect();
        pages.sort();
        pages
    }

    #[test]
    fn paths_that_differ_in_an_identifier_are_one_page() {
        let requests = [
            ("/", 5),
            ("/item/17", 1),
            ("/item/18", 2),
            ("/item/18/edit", 1),
            ("/blog/2024-05-01/x", 1),
            ("/u/0190a6c2-7b9e-7cc3-98c4-dc0c0c07398f", 1),
            ("/about", 3),
        ];
        let expected = [
            ("/", 5),
            ("/about", 3),
            ("/blog/*/x", 1),
            ("/item/*", 3),
            ("/item/*/edit", 1),
            ("/u/*", 1),
        ];
        assert_eq!(pages(&requests), expected.map(|(path, count)| (path.to_owned(), count)));
    }

    #[test]
    fn rare_names_of_a_folder_with_many_are_one_page_and_frequent_ones_stay() {
        let names: Vec<String> =
            (0..300).map(|n| format!("/wiki/Page{}x.html", "q".repeat(n))).collect();
        let mut requests: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        requests.push(("/wiki/Main_Page", 500));
        requests.push(("/index.html", 5));
        let expected = [("/index.html", 5), ("/wiki/*.html", 300), ("/wiki/Main_Page", 500)];
        assert_eq!(pages(&requests), expected.map(|(path, count)| (path.to_owned(), count)));
    }

    #[test]
    fn a_query_is_a_page_of_its_own_but_not_its_values() {
        let requests = [("/search?q=a", 1), ("/search?q=b", 1)];
        assert_eq!(pages(&requests), [("/search?*".to_owned(), 2)]);
        assert!(is_resource("/a/b.CSS?v=3"));
        assert!(!is_resource("/a.css/b"));
    }
}
