//! Journeys of users: pages with what is taken from their replies, branches and think times.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`mod@file`] | the file of a journey, checked |
//! | `check` | the graph of its pages: reachable, and no variable used before it is taken |
//! | `data` | rows of users from CSV and JSON lines |
//! | [`law`] | think times and repeats, and how they are drawn |
//! | `take` | what is taken from a reply |
//! | `cookies` | a user's cookies |
//! | `user` | one user: where they are, what they have |
//! | `plan` | from the keys of a suite to journeys and sites |
//! | [`import`] | journeys from recorded requests |
//! | `users` | the users of a worker, their requests and their replies |

mod check;
mod cookies;
pub mod data;
pub mod file;
pub mod import;
pub mod law;
pub(crate) mod plan;
pub(crate) mod take;
pub(crate) mod user;
pub(crate) mod users;

use std::ops::Range;

use plimsoll_model::event::PageLimits;
use plimsoll_model::units::Nanos;

use self::data::DataRows;
use self::law::{CountLaw, SizeLaw, SpanLaw};
use self::take::Take;
use crate::wire::request::RequestText;
use crate::wire::template::Template;

/// Journeys of published methods, by the names of their suites.
const PUBLISHED: [(&str, &str); 3] = [
    ("web-banking", include_str!("../../suites/journeys/web-banking.toml")),
    ("web-shopping", include_str!("../../suites/journeys/web-shopping.toml")),
    ("web-support", include_str!("../../suites/journeys/web-support.toml")),
];

/// The file of a published method's journey.
pub fn published(name: &str) -> Option<&'static str> {
    PUBLISHED.iter().find(|(its, _)| *its == name).map(|(_, text)| *text)
}

/// Everything the users of a load point share.
#[derive(Clone, Debug, Default)]
pub struct Journeys {
    /// The journeys. A user draws one by weight.
    pub journeys: Vec<Journey>,
    /// The pages of all journeys.
    pub pages: Vec<Page>,
    /// The requests of all pages.
    pub requests: Vec<PageRequest>,
    /// Where the values of variables come from; a template has their indexes.
    pub variables: Vec<Variable>,
    /// Rows of values.
    pub data: Vec<DataRows>,
}

/// One journey.
#[derive(Clone, Debug, PartialEq)]
pub struct Journey {
    /// What it is called.
    pub name: String,
    /// Its share among the others.
    pub weight: f64,
    /// Its first page.
    pub first: usize,
}

/// One page of a journey.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What it is called.
    pub name: String,
    /// Its requests, sent one after the other.
    pub requests: Range<usize>,
    /// The pause before the next page.
    pub think: SpanLaw,
    /// How long it may take.
    pub limits: PageLimits,
    /// A user gives up when the page is not complete after this long.
    pub abandon_after: Option<Nanos>,
    /// How often it is requested before the next page.
    pub repeat: CountLaw,
    /// The page that follows, `None` for the end, each with the sum of the probabilities up to it.
    pub next: Vec<(f64, Option<usize>)>,
}

/// One request of a page.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Index of its page.
    pub page: usize,
    /// How often it is sent before the next one of the page.
    pub repeat: CountLaw,
    /// Its path as in the file, for messages.
    pub shown: String,
    /// Its path and query.
    pub path: Template,
    /// What is sent.
    pub text: RequestText,
    /// What is taken from the reply.
    pub takes: Vec<Take>,
    /// Good statuses; empty for 2xx. A redirect that is none of them is followed.
    pub statuses: Vec<u16>,
    /// Text that the reply's body has.
    pub content: Option<String>,
    /// How a server of ours answers it.
    pub served: Served,
}

/// How a server of ours answers a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Size of the body, at least.
    pub bytes: SizeLaw,
    /// How long it waits before it answers.
    pub time: SpanLaw,
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The user's cookies for this request.
    Cookies,
    /// Path and query of the request, which a redirect may have changed.
    Path,
    /// Scheme, host and port of the server.
    Origin,
    /// A reply; the name is that in the file.
    Taken(String),
    /// A column of the user's row.
    Column {
        /// Index of the rows.
        data: usize,
        /// Index of the column.
        column: usize,
    },
}

impl Variable {
    /// Index of the cookies.
    pub(crate) const COOKIES: u16 = 0;
    /// Index of the path.
    pub(crate) const PATH: u16 = 1;
    /// Index of the server.
    pub(crate) const ORIGIN: u16 = 2;
    /// Those that every journey has.
    pub(crate) const BUILT_IN: [Self; 3] = [Self::Cookies, Self::Path, Self::Origin];
}

impl Journeys {
    /// How long each page may take; empty where none has a limit.
    pub(crate) fn page_limits(&self) -> Vec<PageLimits> {
        let all: Vec<PageLimits> = self.pages.iter().map(|page| page.limits).collect();
        if all.iter().all(|limits| *limits == PageLimits::default()) { Vec::new() } else { all }
    }

    /// Names of the pages. Those of several journeys have the name of their journey before them.
    pub fn page_names(&self) -> Vec<String> {
        let starts: Vec<usize> = self.journeys.iter().map(|journey| journey.first).collect();
        let named = |(at, page): (usize, &Page)| match starts.iter().rposition(|start| *start <= at)
        {
            Some(journey) if starts.len() > 1 => {
                format!("{}.{}", self.journeys[journey].name, page.name)
            }
            _ => page.name.clone(),
        };
        self.pages.iter().enumerate().map(named).collect()
    }
}
