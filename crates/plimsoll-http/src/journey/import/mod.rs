//! Journeys from recorded requests: command lines of curl, or a HAR file of a browser. What is left
//! out or guessed is a note, in the file and on the screen.

mod correlation;
mod curl;
mod har;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plimsoll_model::units::counted;

use self::correlation::{Correlation, correlate};
use super::file::PARALLEL_MAX;
use crate::wire::request::is_field;

/// A request as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
struct RecordedRequest {
    /// Requests of one page have the same.
    page: String,
    method: String,
    /// Scheme, host and port.
    origin: String,
    /// With its query.
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    reply: Option<RecordedReply>,
    /// When it was sent and its reply ended, in milliseconds from any instant.
    span_ms: Option<(f64, f64)>,
}

impl RecordedRequest {
    /// It sends the value of this variable.
    fn uses(&self, name: &str) -> bool {
        let of_headers = self.headers.iter().map(|(_, value)| value.as_str());
        let mut texts = of_headers.chain([self.path.as_str()]).chain(self.body.as_deref());
        let written = [format!("{{{{{name}}}}}"), format!("{{{{urlencode {name}}}}}")];
        texts.any(|text| written.iter().any(|written| text.contains(written)))
    }
}

/// A reply as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
struct RecordedReply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// What a record holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    requests: Vec<RecordedRequest>,
    /// What was left out while it was read.
    notes: Vec<String>,
}

/// A journey from a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedJourney {
    /// The file.
    pub toml: String,
    /// What was left out or guessed.
    pub notes: Vec<String>,
    /// Scheme, host and port that the requests went to.
    pub origin: String,
    /// Pages of the journey.
    pub pages: usize,
}

/// Where requests were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// Command lines, as browsers copy them.
    Curl,
    /// HTTP Archive 1.2.
    Har,
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No command line of curl.
    #[error(
        "there is no curl command in it; copy a request as cURL in the browser's network panel"
    )]
    NoCurl,
    /// No HAR.
    #[error("it is no HAR 1.2 ({0}); save all as HAR with content in the browser's network panel")]
    NoHar(String),
    /// Nothing that a journey can have.
    #[error("none of its requests can be sent: {0}")]
    Nothing(String),
}

/// Makes a journey of a record.
pub fn import(format: RecordFormat, text: &str) -> Result<ImportedJourney, ImportError> {
    let Record { requests, mut notes } = match format {
        RecordFormat::Curl => curl::read(text)?,
        RecordFormat::Har => har::read(text)?,
    };
    let Some(origin) = requests.first().map(|first| first.origin.clone()) else {
        return Err(ImportError::Nothing(notes.join("; ")));
    };
    let (requests, others): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|request| request.origin == origin);
    let hosts: BTreeSet<&str> = others.iter().map(|request| request.origin.as_str()).collect();
    for host in hosts {
        let count = others.iter().filter(|request| request.origin == host).count();
        notes.push(format!("left out: {} to {host}, another server", counted(count, "request")));
    }
    let mut requests = without_followed_redirects(requests, &mut notes);
    let secrets = take_out_secrets(&mut requests, &mut notes);
    let taken = correlate(&mut requests, &mut notes);
    let pages = page_names(&requests);
    let count = pages.iter().collect::<BTreeSet<_>>().len();
    let toml = write_journey(&requests, &pages, (&taken, &secrets), &notes);
    Ok(ImportedJourney { toml, notes, origin, pages: count })
}

/// A redirect is followed by the users themselves.
fn without_followed_redirects(
    requests: Vec<RecordedRequest>,
    notes: &mut Vec<String>,
) -> Vec<RecordedRequest> {
    let mut kept: Vec<RecordedRequest> = Vec::new();
    let mut location: Option<String> = None;
    let mut followed = 0;
    // A page that a redirect led to is that of the request before it.
    let mut same_pages: Vec<(String, String)> = Vec::new();
    for mut request in requests {
        if let Some((_, page)) = same_pages.iter().find(|(page, _)| *page == request.page) {
            request.page.clone_from(page);
        }
        let leads_here = location.as_deref().is_some_and(|location| {
            let target = location.strip_prefix(&request.origin).unwrap_or(location);
            target == request.path && request.method == "GET"
        });
        let next = request.reply.as_ref().filter(|reply| (300..400).contains(&reply.status));
        let next = next.and_then(|reply| header(&reply.headers, "location")).map(str::to_owned);
        if leads_here {
            followed += 1;
            // What it brought, it brought to the request that led to it.
            if let Some(last) = kept.last_mut() {
                same_pages.push((request.page, last.page.clone()));
                last.reply = request.reply;
                let end = request.span_ms.map(|(_, end)| end);
                last.span_ms = last.span_ms.zip(end).map(|((start, _), end)| (start, end));
            }
        } else {
            kept.push(request);
        }
        location = next;
    }
    if followed > 0 {
        notes.push(format!(
            "left out: {} that a redirect led to; users follow them",
            counted(followed, "request")
        ));
    }
    kept
}

/// Names of form fields and JSON members that hold secrets, in lower case.
const SECRET_NAMES: [&str; 5] = ["password", "passwd", "pwd", "secret", "passphrase"];
/// Names of form fields and JSON members that identify the user.
const USER_NAMES: [&str; 6] = ["username", "user", "email", "login", "userid", "name"];

/// Values of a login become columns of data. Names of the columns.
fn take_out_secrets(requests: &mut [RecordedRequest], notes: &mut Vec<String>) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    for request in requests {
        let Some(body) = &request.body else { continue };
        let fields = correlation::body_values(body);
        let is_named =
            |name: &str, names: &[&str]| names.contains(&name.to_ascii_lowercase().as_str());
        if !fields.iter().any(|field| is_named(&field.name, &SECRET_NAMES)) {
            continue;
        }
        let mut replaced = body.clone();
        for field in &fields {
            if is_named(&field.name, &SECRET_NAMES) || is_named(&field.name, &USER_NAMES) {
                let column = variable_name(&field.name);
                replaced = field.replaced(&replaced, &format!("user.{column}"));
                columns.insert(column);
            }
        }
        request.body = Some(replaced);
    }
    if !columns.is_empty() {
        let list = columns.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        notes.push(format!(
            "left out: the values of a login; write users.csv with the header line {list} and a row \
             for each user"
        ));
    }
    columns
}

/// A name that a variable may have.
fn variable_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    match name.trim_matches('_') {
        "" | "end" => "value".to_owned(),
        name => name.to_owned(),
    }
}

/// The name, or the first of `name-2`, `name-3` … that is free.
fn first_free(base: &str, separator: &str, is_free: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{base}{separator}{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_else(|| base.to_owned())
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let field = headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    field.map(|(_, value)| value.as_str())
}

/// The page of each request.
fn page_names(requests: &[RecordedRequest]) -> Vec<String> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut all = Vec::new();
    for request in requests {
        if let Some((_, name)) = names.iter().find(|(page, _)| *page == request.page) {
            all.push(name.clone());
            continue;
        }
        let path = request.path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("home");
        let base = variable_name(last.split('.').next().unwrap_or(last));
        let name = first_free(&base, "-", |name| names.iter().all(|(_, other)| other != name));
        names.push((request.page.clone(), name.clone()));
        all.push(name);
    }
    all
}

/// Header fields that clients make themselves, or that are for caches, in lower case.
const OWN_FIELDS: [&str; 11] = [
    "cache-control",
    "pragma",
    "host",
    "content-length",
    "connection",
    "cookie",
    "user-agent",
    "upgrade-insecure-requests",
    "priority",
    "te",
    "dnt",
];

/// Those that the further requests of a page do without.
const OF_PAGES: [&str; 3] = ["accept", "accept-language", "referer"];

fn write_journey(
    requests: &[RecordedRequest],
    pages: &[String],
    (taken, columns): (&[Correlation], &BTreeSet<String>),
    notes: &[String],
) -> String {
    let mut out = String::from(
        "# A journey from recorded requests (docs/users.md). Left out: fields that clients make \
         themselves\n# or that are for caches; of further requests Accept, Accept-Language, Referer.\n",
    );
    for note in notes {
        let _ = writeln!(out, "# {note}");
    }
    if !columns.is_empty() {
        out.push_str("\n[[data]]\nname = \"user\"\nfile = \"users.csv\"\norder = \"in_turn\"\n");
    }
    for (at, (request, page)) in requests.iter().zip(pages).enumerate() {
        let is_first = at == 0 || pages[at - 1] != *page;
        if is_first {
            let _ = write!(out, "\n[[page]]\nname = {}\n", quoted(page));
        } else {
            out.push_str("\n  [[page.request]]\n");
        }
        write_request(request, is_first, &mut out);
        let takes = taken.iter().filter(|it| it.from == at);
        let indent = if is_first { "" } else { "  " };
        for Correlation { name, source, .. } in takes {
            let _ = writeln!(out, "{indent}take.{name} = {source}");
        }
        if let Some(status) = request.reply.as_ref().map(|reply| reply.status)
            && !(200..400).contains(&status)
            && (200..=599).contains(&status)
        {
            let _ = writeln!(out, "{indent}expect.status = [{status}]      # as it was recorded");
        }
        let of_page = pages[at..].iter().take_while(|other| *other == page).count();
        let further = at + 1..at + of_page.max(1);
        if is_first
            && let Some(parallel) = in_parallel(&requests[further.clone()])
            && !taken.iter().any(|it| {
                further.contains(&it.from)
                    && requests[further.clone()].iter().any(|r| r.uses(&it.name))
            })
        {
            let _ = writeln!(out, "parallel = {parallel}      # as it was recorded");
        }
        if is_first && let Some(think) = think_ms(requests, pages, at) {
            let _ = writeln!(out, "think = \"constant {think}ms\"      # as it was recorded");
        }
    }
    out
}

fn write_request(request: &RecordedRequest, is_first: bool, out: &mut String) {
    let indent = if is_first { "" } else { "  " };
    let default = if request.body.is_some() { "POST" } else { "GET" };
    if request.method != default {
        let _ = writeln!(out, "{indent}method = {}", quoted(&request.method));
    }
    let _ = writeln!(out, "{indent}path = {}", quoted(&request.path));
    let mut names = BTreeSet::new();
    for (name, value) in &request.headers {
        let lower = name.to_ascii_lowercase();
        // A record may have a field twice, or one that none can be.
        if !is_field(&format!("{name}: {value}")) || !names.insert(lower.clone()) {
            continue;
        }
        let is_own = OWN_FIELDS.contains(&lower.as_str())
            || lower.starts_with("sec-")
            || name.starts_with(':')
            || (!is_first && OF_PAGES.contains(&lower.as_str()))
            || (lower == "accept-encoding" && !value.contains("gzip"));
        if is_own {
            continue;
        }
        let value = match lower.as_str() {
            "accept-encoding" => "gzip".to_owned(),
            "authorization" if !value.contains("{{") => {
                let _ = writeln!(
                    out,
                    "{indent}# left out: {name}; take its value from a reply or a column of data"
                );
                continue;
            }
            "referer" | "origin" => value.replace(&request.origin, "{{origin}}"),
            _ => value.clone(),
        };
        let key = if lower.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            name.clone()
        } else {
            quoted(name)
        };
        let _ = writeln!(out, "{indent}headers.{key} = {}", quoted(&value));
    }
    if let Some(body) = &request.body {
        let _ = writeln!(out, "{indent}body = {}", quoted(body));
    }
}

/// How many of these requests were in flight at a time, at most; `None` if none were together.
fn in_parallel(requests: &[RecordedRequest]) -> Option<usize> {
    let spans = || requests.iter().filter_map(|request| request.span_ms);
    let at = |instant| spans().filter(|(from, to)| *from <= instant && instant < *to).count();
    let most = spans().map(|(from, _)| at(from)).max()?;
    (most > 1).then_some(most.min(PARALLEL_MAX as usize))
}

/// The pause between the last reply of the page that begins at `at` and the next page.
fn think_ms(requests: &[RecordedRequest], pages: &[String], at: usize) -> Option<u64> {
    let of_page = pages[at..].iter().take_while(|page| **page == pages[at]).count();
    let ends = requests[at..at + of_page].iter().filter_map(|request| Some(request.span_ms?.1));
    let end = ends.reduce(f64::max)?;
    let (next, _) = requests.get(at + of_page)?.span_ms?;
    let pause = (next - end).round();
    (pause >= 1.0).then_some(pause.min(3_600_000.0) as u64)
}

/// As a string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
