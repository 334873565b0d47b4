//! A server for the pages of a journey: logins, tokens, forms, sizes and times as its file says. It
//! refuses what an application would: a token that it did not give, one of another session, or one
//! that has expired, a row that is not in the data, a page without a session.

mod pass;
mod reply;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{COOKIE, HeaderMap};
use hyper::{Request, Response, StatusCode};
use plimsoll_engine::rng;
use plimsoll_protocol::percent_decoded;
use regex::bytes::Regex;
use serde_json::json;

use self::pass::{PassFault, Passes};
use super::padded::Padded;
use crate::journey::data::{DataRows, RowOrder};
use crate::journey::take::TakeSource;
use crate::journey::{Journeys, PageRequest, ServedBytes, Variable, reads_body};
use crate::wire::template::{Encoding, Piece, Template};

/// Counts, for people and tests.
pub const COUNTS_PATH: &str = "/plimsoll-journey.json";
/// The cookie of a session.
const SESSION: &str = "plimsoll_session";
/// No page has the path of a request.
const NO_PAGE: &str = "no page of the journey has this path\n";
/// Largest body of a request.
const BODY_BYTES_MAX: usize = 4 << 20;

/// A server of journeys, which all connections share.
pub struct JourneySite {
    journeys: Journeys,
    routes: Vec<Route>,
    passes: Passes,
    sessions: AtomicU64,
    requests: AtomicU64,
}

/// What one request of a page looks like.
struct Route {
    /// Name of its page.
    page: String,
    begins_session: bool,
    path: Shape,
    headers: Vec<(String, Shape)>,
    body: Shape,
    /// Of the data that it has values of.
    rows: Vec<RouteRows>,
    answered: AtomicU64,
    refused: AtomicU64,
}

/// The rows whose values a request may have.
struct RouteRows {
    /// Index of the data.
    data: usize,
    /// Their columns, by the numbers of the variables.
    columns: Vec<(u16, Encoding)>,
    /// First row with these values. Routes of the same columns share it.
    by_values: Arc<HashMap<Vec<u8>, u64>>,
    /// A path that no row makes is not of this site.
    make_path: bool,
}

/// A request that is answered.
struct Admitted {
    session: u64,
    /// Its rows, each with the index of its data.
    rows: Vec<(usize, u64)>,
}

/// The texts that a template makes.
struct Shape {
    text: Regex,
    /// Variable and encoding of each group.
    groups: Vec<(u16, Encoding)>,
}

/// A request that is refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OtherPath,
    Unlike,
    NoSession,
    Unknown,
    Expired,
    OfOtherSession,
    NoRow,
}

impl Refusal {
    const fn status(self) -> StatusCode {
        match self {
            Self::Unlike => StatusCode::BAD_REQUEST,
            Self::Expired => StatusCode::UNAUTHORIZED,
            Self::OtherPath => StatusCode::NOT_FOUND,
            _ => StatusCode::FORBIDDEN,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::OtherPath => NO_PAGE,
            Self::Unlike => "header fields or body are not those of the journey\n",
            Self::NoSession => "no session: it begins with the first page of a journey\n",
            Self::Unknown => "a value that this server did not give\n",
            Self::Expired => "a value that has expired\n",
            Self::OfOtherSession => "a value of another session\n",
            Self::NoRow => "no row of the data has these values\n",
        }
    }
}

impl From<PassFault> for Refusal {
    fn from(fault: PassFault) -> Self {
        match fault {
            PassFault::Unknown => Self::Unknown,
            PassFault::Expired => Self::Expired,
        }
    }
}

impl Shape {
    fn new(template: &Template) -> Result<Self, String> {
        let (mut text, mut groups) = ("(?s-u)^".to_owned(), Vec::new());
        for piece in template.pieces() {
            match piece {
                Piece::Text(bytes) => {
                    for byte in bytes {
                        text += &format!(r"\x{byte:02X}");
                    }
                }
                Piece::Uuid => text += "[0-9a-f-]{36}",
                Piece::Int { .. } | Piece::BodyBytes => text += "[0-9]+",
                Piece::Variable { number, .. } if *number < Variable::BUILT_IN.len() as u16 => {
                    text += ".*?";
                }
                Piece::Variable { number, encoding } => {
                    text += "(.*?)";
                    groups.push((*number, *encoding));
                }
                Piece::Field { .. } => {}
            }
        }
        let text = Regex::new(&(text + "$")).map_err(|e| e.to_string())?;
        Ok(Self { text, groups })
    }

    /// The values in a text; `None` where it is another one.
    fn values(&self, text: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
        let captures = self.text.captures(text)?;
        let values = self.groups.iter().zip(1..).map(|((variable, encoding), group)| {
            let value = captures.get(group).map_or(&[][..], |value| value.as_bytes());
            // What a path has of its own escapes stays: `a%20b` may be the value.
            let value = match encoding {
                Encoding::Component => percent_decoded(&String::from_utf8_lossy(value)),
                Encoding::Target | Encoding::Plain | Encoding::Field => value.to_vec(),
            };
            (*variable, value)
        });
        Some(values.collect())
    }
}

impl JourneySite {
    /// A server of these journeys, whose values hold for `lifetime`.
    ///
    /// # Errors
    /// Where no reply can be made from which a value is taken.
    pub fn new(journeys: Journeys, lifetime: Option<Duration>) -> Result<Self, String> {
        let firsts: Vec<usize> = journeys
            .journeys
            .iter()
            .flat_map(|journey| &journey.starts)
            .map(|(_, page)| *page)
            .collect();
        let names = journeys.page_names();
        let mut routes: Vec<Route> = Vec::new();
        for (number, request) in journeys.requests.iter().enumerate() {
            let page = &journeys.pages[request.page];
            let is_first = firsts.contains(&request.page) && page.requests.start == number;
            let name = names[request.page].clone();
            check_takes(request, &name)?;
            let before = routes.iter().flat_map(|route| &route.rows);
            let route = Route::new(&journeys, request, (name, is_first), before)?;
            routes.push(route);
        }
        let passes = Passes::new(lifetime);
        let (sessions, requests) = Default::default();
        Ok(Self { journeys, routes, passes, sessions, requests })
    }

    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Padded> {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "a longer body than any page has\n");
        };
        let body = body.to_bytes();
        if target == COUNTS_PATH {
            return self.counts();
        }
        let mut refused = None;
        for (route, its) in self.routes.iter().zip(&self.journeys.requests) {
            if head.method.as_str() != its.text.method.as_str() {
                continue;
            }
            let Some(values) = route.path.values(target.as_bytes()) else { continue };
            match self.admit(route, values, &head.headers, &body) {
                Ok(admitted) => {
                    route.answered.fetch_add(1, Ordering::Relaxed);
                    return self.reply(route, its, admitted).await;
                }
                Err(Refusal::OtherPath) => {}
                Err(refusal) => refused = Some((route, refusal)),
            }
        }
        match refused {
            Some((route, refusal)) => {
                route.refused.fetch_add(1, Ordering::Relaxed);
                text(refusal.status(), refusal.text())
            }
            None => text(StatusCode::NOT_FOUND, NO_PAGE),
        }
    }

    /// The session that a request belongs to, a new one if it begins one; and its rows.
    fn admit(
        &self,
        route: &Route,
        mut values: Vec<(u16, Vec<u8>)>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Admitted, Refusal> {
        let mut rows = Vec::new();
        for its in route.rows.iter().filter(|its| its.make_path) {
            rows.push((its.data, its.row_of(&values).ok_or(Refusal::OtherPath)?));
        }
        for (name, shape) in &route.headers {
            let field = headers.get(name).ok_or(Refusal::Unlike)?;
            values.extend(shape.values(field.as_bytes()).ok_or(Refusal::Unlike)?);
        }
        values.extend(route.body.values(body).ok_or(Refusal::Unlike)?);
        for its in route.rows.iter().filter(|its| !its.make_path) {
            rows.push((its.data, its.row_of(&values).ok_or(Refusal::NoRow)?));
        }
        let of_cookie =
            cookie(headers, SESSION).map(|value| self.passes.session_of(value, SESSION));
        let of_cookie = match of_cookie {
            Some(Ok(session)) => Some(session),
            _ if route.begins_session => None,
            Some(Err(fault)) => return Err(fault.into()),
            None => return Err(Refusal::NoSession),
        };
        for (variable, value) in &values {
            let Variable::Taken(name) = &self.journeys.variables[usize::from(*variable)] else {
                continue;
            };
            let session = self.passes.session_of(value, name)?;
            if of_cookie.is_some_and(|its| its != session) {
                return Err(Refusal::OfOtherSession);
            }
        }
        let new = || self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Admitted { session: of_cookie.unwrap_or_else(new), rows })
    }

    async fn reply(
        &self,
        route: &Route,
        request: &PageRequest,
        Admitted { session, rows }: Admitted,
    ) -> Response<Padded> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let value = |variable: u16| match &self.journeys.variables[usize::from(variable)] {
            Variable::Taken(name) => self.passes.issue(session, name),
            _ => String::new(),
        };
        let values: BTreeMap<u16, String> =
            request.takes.iter().map(|take| (take.variable, value(take.variable))).collect();
        let (body, kind) = reply::body(request, &route.page, |take| &values[&take.variable]);
        let size = match &request.served.bytes {
            ServedBytes::Any => None,
            ServedBytes::Law(law) => Some(law.draw(rng::key(&[number, 1]))),
            ServedBytes::Column { data, column } => {
                let row = rows.iter().find(|(other, _)| other == data).map(|(_, row)| *row);
                row.and_then(|row| self.journeys.data[*data].number(row, *column))
            }
        };
        let status = request.served_status();
        let body = match size {
            _ if matches!(status, 204 | 304) => Padded::default(),
            // Nothing is looked for in it: it has exactly this size.
            Some(size) if !reads_body(request) => Padded::to_size(Bytes::new(), size),
            size => Padded::to_size(body.into(), size.unwrap_or(0)),
        };
        let pause = request.served.time.draw(rng::key(&[number, 2]));
        if pause.0 > 0 {
            tokio::time::sleep(Duration::from_nanos(pause.0)).await;
        }
        let own = self.passes.issue(session, SESSION);
        let mut reply = Response::builder()
            .status(status)
            .header("content-type", kind)
            .header("cache-control", "no-store")
            .header("set-cookie", format!("{SESSION}={own}; Path=/; HttpOnly"));
        for take in &request.takes {
            let value = &values[&take.variable];
            reply = match &take.from {
                TakeSource::Header(name) => reply.header(name, value),
                TakeSource::Cookie(name) => {
                    reply.header("set-cookie", format!("{name}={value}; Path=/"))
                }
                _ => reply,
            };
        }
        reply.body(body).unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, ""))
    }

    /// Sessions that began, and requests by page.
    fn counts(&self) -> Response<Padded> {
        let mut pages = serde_json::Map::new();
        for route in &self.routes {
            let of_page = pages.entry(&route.page).or_insert_with(|| json!({}));
            for (name, count) in [("answered", &route.answered), ("refused", &route.refused)] {
                let so_far = of_page[name].as_u64().unwrap_or_default();
                of_page[name] = json!(so_far + count.load(Ordering::Relaxed));
            }
        }
        let counts = json!({ "sessions": self.sessions.load(Ordering::Relaxed), "pages": pages });
        let mut reply = Response::new(Bytes::from(counts.to_string()).into());
        let kind = hyper::header::HeaderValue::from_static("application/json");
        reply.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
        reply
    }
}

impl Route {
    /// `before`: the rows of other routes.
    fn new<'r>(
        journeys: &Journeys,
        request: &PageRequest,
        (page, begins_session): (String, bool),
        before: impl Iterator<Item = &'r RouteRows> + Clone,
    ) -> Result<Self, String> {
        let path = Shape::new(&request.path)?;
        let body = Shape::new(&request.text.body)?;
        let named = request.text.drawn_headers.iter();
        let is_checked = |(name, _): &&(String, Template)| !name.eq_ignore_ascii_case("cookie");
        let headers = named
            .filter(is_checked)
            .map(|(name, value)| Ok((name.to_ascii_lowercase(), Shape::new(value)?)));
        let headers = headers.collect::<Result<Vec<_>, String>>()?;
        let data_of = |variable: u16| match journeys.variables[usize::from(variable)] {
            Variable::Column { data, .. } => Some(data),
            _ => None,
        };
        // A value is compared as it is written where it is written first.
        let mut used: BTreeMap<usize, BTreeMap<u16, Encoding>> = BTreeMap::new();
        let shapes = [&path].into_iter().chain(headers.iter().map(|(_, shape)| shape));
        for (variable, encoding) in shapes.chain([&body]).flat_map(|shape| &shape.groups) {
            if let Some(data) = data_of(*variable) {
                used.entry(data).or_default().entry(*variable).or_insert(*encoding);
            }
        }
        let rows = used.into_iter().map(|(data, columns)| {
            let columns: Vec<(u16, Encoding)> = columns.into_iter().collect();
            let is_same = |other: &RouteRows| other.data == data && other.columns == columns;
            let shared = before.clone().find(|other| is_same(other));
            let by_values = shared.map_or_else(
                || Arc::new(rows_by_values(journeys, &journeys.data[data], &columns)),
                |other| Arc::clone(&other.by_values),
            );
            let is_of_requests = journeys.data[data].order == RowOrder::EachRequest;
            let is_in_path = path.groups.iter().any(|(it, _)| data_of(*it) == Some(data));
            RouteRows { data, columns, by_values, make_path: is_of_requests && is_in_path }
        });
        let rows = rows.collect();
        let (answered, refused) = Default::default();
        Ok(Self { page, begins_session, path, headers, body, rows, answered, refused })
    }
}

impl RouteRows {
    /// The row that has these values.
    fn row_of(&self, values: &[(u16, Vec<u8>)]) -> Option<u64> {
        let value = |(variable, _): &(u16, Encoding)| value_of(values, *variable);
        let values: Vec<&[u8]> = self.columns.iter().map(value).collect();
        self.by_values.get(&values.join(&0)).copied()
    }
}

/// The first row of each combination of values, as requests write them.
fn rows_by_values(
    journeys: &Journeys,
    data: &DataRows,
    columns: &[(u16, Encoding)],
) -> HashMap<Vec<u8>, u64> {
    let value = |row: u64, (variable, encoding): &(u16, Encoding)| {
        let column = match journeys.variables[usize::from(*variable)] {
            Variable::Column { column, .. } => column,
            _ => 0,
        };
        let mut value = data.value(row, column).to_vec();
        if *encoding == Encoding::Target {
            encoding.apply(0, &mut value);
        }
        value
    };
    let mut rows = HashMap::new();
    for row in 0..data.count() {
        let values: Vec<Vec<u8>> = columns.iter().map(|column| value(row, column)).collect();
        rows.entry(values.join(&0)).or_insert(row);
    }
    rows
}

/// A user finds in a reply of ours what the journey takes.
fn check_takes(request: &PageRequest, page: &str) -> Result<(), String> {
    let example = Passes::new(None).issue(0, SESSION);
    let (body, _) = reply::body(request, page, |_| &example);
    let is_missed = |source: &TakeSource| {
        source.reads_body() && source.value_in(&body).as_deref() != Some(example.as_bytes())
    };
    match request.takes.iter().find(|take| is_missed(&take.from)) {
        None => Ok(()),
        Some(take) => Err(format!(
            "page {page}: no reply can be made in which there is a {} of 60 digits; give a regular \
             expression a group, such as t=(\\w+)",
            take.from
        )),
    }
}

fn value_of(values: &[(u16, Vec<u8>)], variable: u16) -> &[u8] {
    values.iter().find(|(other, _)| *other == variable).map_or(&[], |(_, value)| value)
}

/// A cookie of a request.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let fields = headers.get_all(COOKIE).iter().map(|field| field.as_bytes());
    let mut pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let value = pair.trim_ascii_start().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value.trim_ascii_end())
    })
}

fn text(status: StatusCode, body: &'static str) -> Response<Padded> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()).into());
    *response.status_mut() = status;
    response
}

impl fmt::Debug for JourneySite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JourneySite").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}
