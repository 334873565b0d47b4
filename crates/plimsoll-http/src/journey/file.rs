//! The file of a journey: TOML with pages, data and journeys.
//!
//! ```toml
//! [[data]]
//! name = "user"
//! file = "users.csv"                # header line: name,password
//! order = "in_turn"                 # each_once | in_turn | random | each_request
//!
//! [[page]]
//! name = "login"
//! method = "POST"
//! path = "/login"
//! body = "name={{user.name}}&password={{urlencode user.password}}"
//! take.token = { json = "/token" }  # or header, cookie, regex, field
//! expect.status = [200]
//! think = "exponential 200ms"
//!
//! [[page]]
//! name = "account"
//! path = "/account"
//! headers.Authorization = "Bearer {{token}}"
//! next = { account = 0.5, end = 0.5 }
//! ```

mod served;
mod sources;
mod variables;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use plimsoll_model::event::PageLimits;
use plimsoll_model::suite::{SuiteError, TableReader, nearest, read_document};
use plimsoll_model::units::{Nanos, parse_span};

use self::sources::{TAKE_HELP, take_source};
use self::written::{WrittenFile, WrittenJourney, WrittenPage, WrittenRequest, WrittenTake};
use super::check::{GraphFault, PageNode, RequestNode, find_fault};
use super::law::{COUNTS, CountLaw, PAGE_COUNTS, SPANS, SpanLaw};
use super::take::Take;
use super::{Journey, Journeys, Page, PageRequest, Variable};
use crate::wire::request::{Method, RequestText, is_field};
use crate::wire::template::{Encoding, Piece, Template};

/// Pages of all journeys: an op each.
const PAGES_MAX: usize = 200;
/// Requests of a page.
const REQUESTS_MAX: usize = 100;
/// Further requests of a page that are in flight together.
pub(super) const PARALLEL_MAX: u32 = 64;
/// Probabilities of a page that sum to 1 within this do.
const SUM_TOLERANCE: f64 = 1e-6;
/// Statuses that end a request.
const STATUSES: RangeInclusive<u16> = 200..=599;
const STATUSES_HELP: &str = "write statuses from 200 to 599";
/// Ends a journey.
const END: &str = "end";
/// Name of a journey whose pages stand alone.
const ONLY: &str = "journey";

/// Reads the file of a journey; `read` gets the files of its data.
///
/// # Errors
/// With file, line and what to do next.
pub fn parse(
    file: &Path,
    text: &str,
    read: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Journeys, SuiteError> {
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    read_document(&file.display().to_string(), text, |written: WrittenFile, root| {
        Builder { root, folder, read, all: Journeys::default() }.build(written)
    })
}

/// What a journey has apart from its pages.
struct JourneyHead<'w> {
    name: &'w str,
    weight: f64,
    start: Option<&'w BTreeMap<String, f64>>,
}

/// A set of journeys in the making.
struct Builder<'a> {
    root: &'a TableReader<'a>,
    folder: PathBuf,
    read: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    all: Journeys,
}

impl Builder<'_> {
    fn build(mut self, written: WrittenFile) -> Result<Journeys, SuiteError> {
        self.all.variables = Variable::BUILT_IN.to_vec();
        for (at, data) in written.data.into_iter().enumerate() {
            self.add_data(&format!("data.{at}"), data)?;
        }
        match (written.page.is_empty(), written.journey.is_empty()) {
            (true, true) => {
                let help = "write [[page]] with a name and a path for each page";
                return Err(self.root.error_at("", "the journey has no page").with_help(help));
            }
            (false, false) => {
                let help = "write [[journey.page]] for the pages of a journey";
                let message = "pages stand beside journeys";
                return Err(self.root.error_at("page", message).with_help(help));
            }
            (false, true) => {
                let only = JourneyHead { name: ONLY, weight: 1.0, start: written.start.as_ref() };
                self.add_journey("", &only, written.page)?;
            }
            (true, false) => {
                for (at, journey) in written.journey.into_iter().enumerate() {
                    let path = format!("journey.{at}");
                    self.check_name(&format!("{path}.name"), &journey.name)?;
                    if self.all.journeys.iter().any(|other| other.name == journey.name) {
                        let message = format!("a second journey is called {:?}", journey.name);
                        return Err(self.root.error_at(&format!("{path}.name"), message));
                    }
                    let WrittenJourney { name, weight, ref start, page } = journey;
                    let head = JourneyHead { name: &name, weight, start: start.as_ref() };
                    self.add_journey(&format!("{path}."), &head, page)?;
                }
            }
        }
        Ok(self.all)
    }

    fn check_name(&self, path: &str, name: &str) -> Result<(), SuiteError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.is_empty() && name.chars().all(is_name) && name != END {
            return Ok(());
        }
        let message = format!("{name:?} is no name");
        let help = "write letters, digits, _ and -; \"end\" is the end of a journey";
        Err(self.root.error_at(path, message).with_help(help))
    }

    fn add_journey(
        &mut self,
        prefix: &str,
        head: &JourneyHead<'_>,
        pages: Vec<WrittenPage>,
    ) -> Result<(), SuiteError> {
        let name = head.name;
        let first = self.all.pages.len();
        if first + pages.len() > PAGES_MAX || pages.is_empty() {
            let message = format!("journey {name:?} has {} pages", pages.len());
            let help = format!("write from 1 to {PAGES_MAX} of them in all");
            return Err(self.root.error_at(&format!("{prefix}page"), message).with_help(help));
        }
        let names: Vec<String> = pages.iter().map(|page| page.name.clone()).collect();
        let mut nodes = Vec::new();
        for (at, page) in pages.into_iter().enumerate() {
            let path = format!("{prefix}page.{at}");
            self.check_name(&format!("{path}.name"), &page.name)?;
            if names[..at].contains(&page.name) {
                let message = format!("a second page is called {:?}", page.name);
                return Err(self.root.error_at(&format!("{path}.name"), message));
            }
            nodes.push(self.add_page(&path, (first, at), &names, page)?);
        }
        let starts = match head.start {
            None => vec![(1.0, Some(first))],
            Some(start) => {
                self.drawn_pages(&format!("{prefix}start"), first, &names, start, None)?
            }
        };
        let starts: Vec<_> =
            starts.iter().filter_map(|(sum, page)| Some((*sum, (*page)?))).collect();
        let indices: Vec<usize> = starts.iter().map(|(_, page)| page - first).collect();
        self.check_graph(prefix, &names, &nodes, &indices)?;
        let (name, weight) = (name.to_owned(), head.weight);
        self.all.journeys.push(Journey { name, weight, first, starts });
        Ok(())
    }

    fn check_graph(
        &self,
        prefix: &str,
        names: &[String],
        nodes: &[PageNode],
        starts: &[usize],
    ) -> Result<(), SuiteError> {
        let (path, message, help) = match find_fault(nodes, starts) {
            None => return Ok(()),
            Some(GraphFault::Unreachable { page }) => (
                format!("{prefix}page.{page}"),
                format!("no page leads to {:?}", names[page]),
                "name it in the `next` of another page or in `start`, or leave it out".to_owned(),
            ),
            Some(GraphFault::NotTaken { page, request, variable }) => {
                let name = match &self.all.variables[usize::from(variable)] {
                    Variable::Taken(name) => name.as_str(),
                    _ => "",
                };
                let path = match request {
                    0 => format!("{prefix}page.{page}"),
                    further => format!("{prefix}page.{page}.request.{}", further - 1),
                };
                let help = format!("take.{name} must come before it on every way to this page");
                let help = match nodes[page].is_parallel {
                    true => format!("{help}; requests sent in parallel do not wait for each other"),
                    false => help,
                };
                let message =
                    format!("page {:?} uses {{{{{name}}}}} before it is taken", names[page]);
                (path, message, help)
            }
        };
        Err(self.root.error_at(&path, message).with_help(help))
    }

    fn add_page(
        &mut self,
        path: &str,
        (first, at): (usize, usize),
        names: &[String],
        page: WrittenPage,
    ) -> Result<PageNode, SuiteError> {
        let law = |key: &str, text: &str, expected: &str| {
            let message = format!("`{key}` is {text:?}");
            let error = self.root.error_at(&format!("{path}.{key}"), message);
            error.with_help(format!("write {expected}"))
        };
        let think = page.think.as_deref().map_or(Ok(SpanLaw::NONE), |text| {
            SpanLaw::parse(text).ok_or_else(|| law("think", text, SPANS))
        })?;
        let repeat = self.repeat(path, page.repeat.as_deref(), PAGE_COUNTS)?;
        if repeat.may_be_none() {
            let text = page.repeat.as_deref().unwrap_or_default();
            return Err(law("repeat", text, PAGE_COUNTS));
        }
        let span = |key: &str, text: &Option<String>| {
            let read = |text: &String| {
                let span = parse_span(text).filter(|span| *span > Nanos::ZERO);
                span.ok_or_else(|| law(key, text, "a time such as \"5s\""))
            };
            text.as_ref().map(read).transpose()
        };
        let abandon_after = span("abandon_after", &page.abandon_after)?;
        let limits = PageLimits {
            good: span("good", &page.good)?,
            tolerable: span("tolerable", &page.tolerable)?,
        };
        let next = self.next_pages(path, (first, at), names, page.next.as_ref())?;
        let own = WrittenRequest {
            path: page.path,
            method: page.method,
            headers: page.headers,
            body: page.body,
            take: page.take,
            expect: page.expect,
            serve: page.serve,
            repeat: None,
        };
        if page.request.len() >= REQUESTS_MAX {
            let message = format!("page {:?} has {} requests", page.name, page.request.len() + 1);
            let help = format!("write {REQUESTS_MAX} at most");
            return Err(self.root.error_at(&format!("{path}.request"), message).with_help(help));
        }
        let start = self.all.requests.len();
        let mut node = PageNode { is_parallel: page.parallel > 1, ..PageNode::default() };
        node.requests.push(self.add_request(path, first + at, own)?);
        for (number, request) in page.request.into_iter().enumerate() {
            let path = format!("{path}.request.{number}");
            node.requests.push(self.add_request(&path, first + at, request)?);
        }
        node.next = next.iter().filter_map(|(_, page)| Some((*page)? - first)).collect();
        let requests = start..self.all.requests.len();
        let WrittenPage { name, parallel, .. } = page;
        self.all.pages.push(Page {
            name,
            requests,
            parallel,
            think,
            limits,
            abandon_after,
            repeat,
            next,
        });
        Ok(node)
    }

    fn repeat(&self, path: &str, text: Option<&str>, counts: &str) -> Result<CountLaw, SuiteError> {
        let Some(text) = text else { return Ok(CountLaw::Constant(1)) };
        CountLaw::parse(text).ok_or_else(|| {
            let error =
                self.root.error_at(&format!("{path}.repeat"), format!("`repeat` is {text:?}"));
            error.with_help(format!("write {counts}"))
        })
    }

    /// The pages that follow, with the sums of their probabilities.
    fn next_pages(
        &self,
        path: &str,
        (first, at): (usize, usize),
        names: &[String],
        next: Option<&BTreeMap<String, f64>>,
    ) -> Result<Vec<(f64, Option<usize>)>, SuiteError> {
        let Some(next) = next else {
            let following = at + 1;
            return Ok(vec![(1.0, (following < names.len()).then_some(first + following))]);
        };
        self.drawn_pages(&format!("{path}.next"), first, names, next, Some(END))
    }

    /// The pages of a table of probabilities, with the sums of those; `end` may be among them.
    fn drawn_pages(
        &self,
        path: &str,
        first: usize,
        names: &[String],
        pages: &BTreeMap<String, f64>,
        end: Option<&str>,
    ) -> Result<Vec<(f64, Option<usize>)>, SuiteError> {
        let mut sum = 0.0;
        let mut sums = Vec::new();
        for (name, probability) in pages {
            let key = format!("{path}.{name}");
            let page = match names.iter().position(|page| page == name) {
                Some(page) => Some(first + page),
                None if end == Some(name) => None,
                None => {
                    let near = nearest(name, names.iter().map(String::as_str).chain(end));
                    let help = match (near, end) {
                        (Some(near), _) => format!("did you mean {near:?}?"),
                        (None, Some(_)) => "write the name of a page, or end".to_owned(),
                        (None, None) => "write the name of a page".to_owned(),
                    };
                    let message = format!("no page of this journey is called {name:?}");
                    return Err(self.root.error_at(&key, message).with_help(help));
                }
            };
            if !(*probability > 0.0 && *probability <= 1.0) {
                let message = format!("{name} = {probability} is no probability");
                let help = "write a number above 0, up to 1";
                return Err(self.root.error_at(&key, message).with_help(help));
            }
            sum += probability;
            sums.push((sum, page));
        }
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            let message = format!("the probabilities of `{path}` sum to {sum}, not to 1");
            let help = match end {
                Some(_) => "name every page that may follow, and end",
                None => "name every page with which a session may begin",
            };
            return Err(self.root.error_at(path, message).with_help(help));
        }
        Ok(sums)
    }

    fn add_request(
        &mut self,
        path: &str,
        page: usize,
        written: WrittenRequest,
    ) -> Result<RequestNode, SuiteError> {
        let key = |name: &str| format!("{path}.{name}");
        let default = if written.body.is_some() { "POST" } else { "GET" };
        let method = written.method.as_deref().unwrap_or(default);
        let method = Method::parse(method).ok_or_else(|| {
            let message = format!("method {method:?} is not one word such as GET, POST or PURGE");
            self.root.error_at(&key("method"), message)
        })?;
        if !written.path.starts_with('/') {
            let message = format!("path {:?} does not begin with a slash", written.path);
            let help = "write it from the root of the server, such as \"/login\"";
            return Err(self.root.error_at(&key("path"), message).with_help(help));
        }
        let mut uses = BTreeSet::new();
        let target = self.template(&key("path"), &written.path, Encoding::Target, &mut uses)?;
        let mut drawn_headers = Vec::new();
        for (name, value) in &written.headers {
            let key = format!("{path}.headers.{name}");
            if !is_field(&format!("{name}: {value}")) || name.eq_ignore_ascii_case("host") {
                let message = format!("{name:?} is no header field that a page may have");
                return Err(self.root.error_at(&key, message));
            }
            let value = self.template(&key, value, Encoding::Field, &mut uses)?;
            drawn_headers.push((name.clone(), value));
        }
        if !written.headers.keys().any(|name| name.eq_ignore_ascii_case("cookie")) {
            let mut cookies = Template::default();
            cookies.push(Piece::Variable { number: Variable::COOKIES, encoding: Encoding::Field });
            drawn_headers.push(("Cookie".to_owned(), cookies));
        }
        let body = written.body.as_deref().unwrap_or_default();
        let body = self.template(&key("body"), body, Encoding::Plain, &mut uses)?;
        let mut sent_path = Template::default();
        sent_path.push(Piece::Variable { number: Variable::PATH, encoding: Encoding::Plain });
        let plain = RequestText::plain(method, "");
        let text = RequestText { target: sent_path, drawn_headers, body, ..plain };
        let takes = self.takes(path, &written.take)?;
        let served = self.served(&key("serve"), &written.serve, &target)?;
        let repeat = self.repeat(path, written.repeat.as_deref(), COUNTS)?;
        let statuses = written.expect.status;
        if let Some(status) = statuses.iter().find(|status| !STATUSES.contains(status)) {
            let message = format!("{status} is no status that ends a request");
            return Err(self
                .root
                .error_at(&key("expect.status"), message)
                .with_help(STATUSES_HELP));
        }
        // A request that may not be made takes nothing for sure.
        let taken = takes.iter().filter(|_| !repeat.may_be_none()).map(|take| take.variable);
        let node = RequestNode { uses, takes: taken.collect() };
        self.all.requests.push(PageRequest {
            page,
            repeat,
            shown: written.path,
            path: target,
            text,
            takes,
            statuses,
            content: written.expect.content,
            served,
        });
        Ok(node)
    }

    fn takes(
        &mut self,
        path: &str,
        written: &BTreeMap<String, WrittenTake>,
    ) -> Result<Vec<Take>, SuiteError> {
        let mut takes = Vec::new();
        for (name, take) in written {
            let key = format!("{path}.take.{name}");
            self.check_name(&key, name)?;
            if Variable::NAMED.iter().any(|(named, _)| named == name) {
                let message =
                    format!("{{{{{name}}}}} has a value already; take under another name");
                return Err(self.root.error_at(&key, message));
            }
            let from = take_source(take)
                .map_err(|message| self.root.error_at(&key, message).with_help(TAKE_HELP))?;
            takes.push(Take { variable: self.taken(name), from });
        }
        Ok(takes)
    }
}

#[cfg(test)]
mod tests;
