//! The journeys of a model: `journey.toml`, and a file of paths for each page that has several.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::Output;
use super::facts::PageFacts;
use super::names::Names;
use crate::error::DeriveError;
use crate::fit::{Sample, ZipfFit};
use crate::pages::{Pages, Target, Visitor};
use crate::request::Outcome;
use crate::sessions::{PageSessions, SessionFinder};
use crate::suite_text::toml_text;

/// Resources of a page; rarer ones are left out.
const PAGE_RESOURCES_MAX: usize = 20;
/// A resource that fewer page views request than this is left out.
const RESOURCE_SHARE_MIN: f64 = 0.005;
/// Connections of a browser to a server. Not in a log.
const PARALLEL: u32 = 6;
/// Share of the variance of sizes that lies within paths up to which each path has one size.
const OWN_SIZE_VARIANCE: f64 = 0.01;
/// So the server's log shows which requests are the load's, and which of one session.
const USER_AGENT: &str = "plimsoll session {{session_number}}";
/// Names of the journeys.
const VISITORS: [&str; 2] = ["users", "bots"];

/// Writes the journeys.
pub(super) struct Writer<'a> {
    output: &'a Output<'a>,
    finder: &'a SessionFinder<'a>,
    pages: &'a Pages,
    data: String,
    /// Data sets so far, by number of the resource.
    resources: BTreeMap<u16, Paths>,
    data_sets: usize,
    left_out_resources: u64,
}

/// What was written.
pub(super) struct Written {
    pub text: String,
    pub pages: Vec<PageFacts>,
    /// Requests of resources that the journeys do not have.
    pub left_out_resources: u64,
}

/// How a request names its path and its size.
#[derive(Clone)]
struct Paths {
    path: String,
    bytes: Option<String>,
}

impl<'a> Writer<'a> {
    pub fn new(output: &'a Output<'a>, finder: &'a SessionFinder<'a>, pages: &'a Pages) -> Self {
        Self {
            output,
            finder,
            pages,
            data: String::new(),
            resources: BTreeMap::new(),
            data_sets: 0,
            left_out_resources: 0,
        }
    }

    pub fn write(mut self) -> Result<Written, DeriveError> {
        let visitors: Vec<Visitor> =
            (0..2).filter(|visitor| self.finder.visitors[*visitor].views > 0).collect();
        let (mut text, mut facts) = (String::new(), Vec::new());
        for &visitor in &visitors {
            let prefix = match visitors.len() {
                1 => "",
                _ => {
                    let sessions = self.finder.visitors[visitor].sessions;
                    let name = VISITORS[visitor];
                    _ = write!(text, "\n[[journey]]\nname = \"{name}\"\nweight = {sessions}\n");
                    "journey."
                }
            };
            self.write_journey(visitor, prefix, &mut text, &mut facts)?;
        }
        let head =
            "# Pages and chains of pages of an access log; derived.md says what is from the log.\n";
        // A key of the whole file comes before its tables.
        let text = match visitors.len() {
            1 => {
                let (start, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
                format!("{head}{start}\n{}\n{rest}", self.data)
            }
            _ => format!("{head}{}{text}", self.data),
        };
        Ok(Written { text, pages: facts, left_out_resources: self.left_out_resources })
    }

    fn write_journey(
        &mut self,
        visitor: Visitor,
        prefix: &str,
        text: &mut String,
        facts: &mut Vec<PageFacts>,
    ) -> Result<(), DeriveError> {
        let (finder, pages) = (self.finder, self.pages);
        let sessions = &finder.visitors[visitor];
        let hashed = !self.output.options.keeps_paths;
        let mut names = Names::default();
        let mut name_of = BTreeMap::new();
        for (number, page) in (0..).zip(&sessions.pages).filter(|(_, page)| page.views > 0) {
            let target = &pages.pages[visitor][usize::from(number)];
            _ = page;
            name_of.insert(number, names.name(target, hashed));
        }
        let starts = sessions.starts.iter().map(|(page, count)| (name_of[page].as_str(), *count));
        _ = writeln!(text, "start = {}", probabilities(starts));
        for (number, name) in &name_of {
            let target = &pages.pages[visitor][usize::from(*number)];
            let page = &sessions.pages[usize::from(*number)];
            let paths = self.paths(target, &page.sizes)?;
            _ = write!(text, "\n[[{prefix}page]]\nname = \"{name}\"\n");
            write_request(text, &paths, target, &page.statuses);
            let think = page.thinks.fit();
            if let Some(think) = &think {
                _ = writeln!(text, "think = \"{}\"", think.law.span_law());
            }
            let next = page.next.iter().map(|(next, count)| {
                (next.as_ref().map_or("end", |next| name_of[next].as_str()), *count)
            });
            _ = writeln!(text, "next = {}", probabilities(next));
            self.write_resources(page, prefix, text)?;
            facts.push(PageFacts {
                name: name.clone(),
                visitor: VISITORS[visitor].to_owned(),
                path: target.text.clone().filter(|_| !hashed),
                views: page.views,
                share: page.views as f64 / sessions.views as f64,
                paths: target.paths.len(),
                zipf: ZipfFit::from_counts(target.paths.iter().map(|(_, count)| u64::from(*count))),
                think_law: think.map(|think| think.law.name().to_owned()),
                think_mean_s: page.thinks.mean().map(|micros| micros / 1e6),
                bytes_mean: page.sizes.mean(),
            });
        }
        Ok(())
    }

    fn write_resources(
        &mut self,
        page: &PageSessions,
        prefix: &str,
        text: &mut String,
    ) -> Result<(), DeriveError> {
        let mut resources: Vec<(u16, u64)> =
            page.resources.iter().map(|(number, count)| (*number, *count)).collect();
        resources.sort_by_key(|(number, count)| (std::cmp::Reverse(*count), *number));
        let views = page.views as f64;
        let is_frequent = |(_, count): &(u16, u64)| *count as f64 / views >= RESOURCE_SHARE_MIN;
        let frequent =
            resources.iter().take(PAGE_RESOURCES_MAX).take_while(|it| is_frequent(it)).count();
        self.left_out_resources +=
            resources[frequent..].iter().map(|(_, count)| count).sum::<u64>();
        resources.truncate(frequent);
        let several = resources.iter().map(|(_, count)| *count as f64 / views).sum::<f64>() > 1.0;
        if several {
            _ = writeln!(text, "parallel = {PARALLEL}");
        }
        for (number, count) in resources {
            let target = &self.pages.resources[usize::from(number)];
            let Some(sizes) = self.finder.resources.get(&number) else { continue };
            let paths = match self.resources.get(&number) {
                Some(paths) => paths.clone(),
                None => {
                    let paths = self.paths(target, &sizes.sizes)?;
                    self.resources.insert(number, paths.clone());
                    paths
                }
            };
            _ = writeln!(text, "\n[[{prefix}page.request]]");
            write_request(text, &paths, target, &sizes.statuses);
            if count != page.views {
                _ = writeln!(text, "repeat = \"mean {:.5}\"", count as f64 / views);
            }
        }
        Ok(())
    }

    /// One path as it is; of several a file of them.
    fn paths(&mut self, target: &Target, sizes: &Sample) -> Result<Paths, DeriveError> {
        let law = sizes.fit().map(|fitted| fitted.law.size_law());
        if let [(path, _)] = target.paths[..] {
            let path = self.output.path(path);
            if !path.contains("{{") {
                return Ok(Paths { path, bytes: law });
            }
        }
        self.data_sets += 1;
        let name = format!("paths{}", self.data_sets);
        let file = format!("{name}.csv");
        self.write_rows(&self.output.file(&file), target)
            .map_err(|source| DeriveError::Unwritable { file: self.output.file(&file), source })?;
        _ = write!(
            self.data,
            "\n[[data]]\nname = \"{name}\"\nfile = \"{file}\"\norder = \"each_request\"\nweight = \
             \"weight\"\n"
        );
        let bytes = match self.has_own_sizes(target) {
            true => Some(format!("{{{{{name}.bytes}}}}")),
            false => law,
        };
        Ok(Paths { path: format!("/{{{{{name}.path}}}}"), bytes })
    }

    /// Each path with its requests and its mean size.
    fn write_rows(&self, file: &Path, target: &Target) -> io::Result<()> {
        let mut rows = csv::Writer::from_path(file)?;
        rows.write_record(["path", "weight", "bytes"])?;
        for (path, requests) in &target.paths {
            let bytes = self.output.reading.paths.entry(*path).mean_bytes().unwrap_or(0.0);
            let path = self.output.path(*path);
            let path = path.strip_prefix('/').unwrap_or(&path);
            rows.write_record([path, &requests.to_string(), &format!("{bytes:.0}")])?;
        }
        rows.flush()
    }

    /// Each of its paths has a size of its own, as files have.
    fn has_own_sizes(&self, target: &Target) -> bool {
        let (mut all, mut between) = ([0.0; 3], 0.0);
        for (path, _) in &target.paths {
            let [n, sum, squares] = self.output.reading.paths.entry(*path).size_sums();
            if n > 0.0 {
                between += sum * sum / n;
            }
            all = [all[0] + n, all[1] + sum, all[2] + squares];
        }
        let [n, sum, squares] = all;
        let (within, total) = (squares - between, squares - sum * sum / n.max(1.0));
        target.outcome == Outcome::Good && within <= OWN_SIZE_VARIANCE * total.max(1.0)
    }
}

fn write_request(text: &mut String, paths: &Paths, target: &Target, statuses: &BTreeMap<u16, u64>) {
    _ = writeln!(text, "path = {}\nheaders.User-Agent = \"{USER_AGENT}\"", toml_text(&paths.path));
    if target.outcome != Outcome::Good {
        let codes: Vec<String> = statuses.keys().map(u16::to_string).collect();
        _ = writeln!(text, "expect.status = [{}]", codes.join(", "));
        let most = statuses.iter().max_by_key(|(_, count)| **count);
        _ = writeln!(text, "serve.status = {}", most.map_or(404, |(status, _)| *status));
    }
    if let Some(bytes) = paths.bytes.as_ref().filter(|_| target.outcome == Outcome::Good) {
        _ = writeln!(text, "serve.bytes = \"{bytes}\"");
    }
}

/// A table of probabilities from counts.
fn probabilities<'n>(counts: impl Iterator<Item = (&'n str, u64)> + Clone) -> String {
    let total: u64 = counts.clone().map(|(_, count)| count).sum();
    let share = |(name, count)| format!("{name} = {:.12}", count as f64 / total as f64);
    format!("{{ {} }}", counts.map(share).collect::<Vec<_>>().join(", "))
}
