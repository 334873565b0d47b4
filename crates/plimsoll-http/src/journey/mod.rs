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
//! | `location` | where a redirect leads |
//! | `reply` | what a reply has brought |
//! | `fetch` | a request of a page on its way |
//! | `user` | one user: where they are, what they have |
//! | `plan` | from the keys of a suite to journeys and sites |
//! | [`import`] | journeys from recorded requests |
//! | `users` | the users of a worker, their requests and their replies |

mod check;
mod cookies;
pub mod data;
mod fetch;
pub mod file;
pub mod import;
pub mod law;
mod location;
pub(crate) mod plan;
mod reply;
pub(crate) mod take;
pub(crate) mod user;
pub(crate) mod users;

use std::ops::Range;

use plimsoll_model::event::PageLimits;
use plimsoll_model::units::Nanos;

use self::data::DataRows;
use self::law::{CountLaw, SizeLaw, SpanLaw};
pub(crate) use self::reply::reads_body;
use self::take::Take;
use crate::tls::ClientIdentity;
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
    /// Certificates of users, if they have any.
    pub certificates: Option<UserCertificates>,
}

/// The certificate of each user.
#[derive(Clone, Debug)]
pub struct UserCertificates {
    /// Index of the data whose rows have them.
    data: usize,
    /// By row.
    by_row: Vec<ClientIdentity>,
}

/// One journey.
#[derive(Clone, Debug, PartialEq)]
pub struct Journey {
    /// What it is called.
    pub name: String,
    /// Its share among the others.
    pub weight: f64,
    /// Its first page in the file; its others follow.
    pub first: usize,
    /// The pages with which sessions begin, each with the sum of the probabilities up to it.
    pub starts: Vec<(f64, usize)>,
}

/// One page of a journey.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What it is called.
    pub name: String,
    /// Its requests: the first, then the further ones.
    pub requests: Range<usize>,
    /// Further requests in flight at a time, at most.
    pub parallel: u32,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Size of the body.
    pub bytes: ServedBytes,
    /// How long it waits before it answers.
    pub time: SpanLaw,
    /// Status; the first that is expected, or 200, where absent.
    pub status: Option<u16>,
}

/// The size of a body; larger where what is taken from it or expected in it needs more.
#[derive(Clone, Debug, PartialEq)]
pub enum ServedBytes {
    /// Whatever it is.
    Any,
    /// Drawn.
    Law(SizeLaw),
    /// By the row whose values are in the path.
    Column {
        /// Index of the rows.
        data: usize,
        /// Index of the column.
        column: usize,
    },
}

impl PageRequest {
    /// The status that a server of ours answers with.
    pub(crate) fn served_status(&self) -> u16 {
        self.served.status.or(self.statuses.first().copied()).unwrap_or(200)
    }
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
    /// Number of the session over all users and agents, from 0.
    SessionNumber,
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
    pub(crate) const BUILT_IN: [Self; 4] =
        [Self::Cookies, Self::Path, Self::Origin, Self::SessionNumber];
    /// Those with a name in a journey's file, with their indexes.
    pub(crate) const NAMED: [(&str, u16); 2] = [("origin", Self::ORIGIN), ("session_number", 3)];
}

impl Journeys {
    /// How long each page may take; empty where none has a limit.
    pub(crate) fn page_limits(&self) -> Vec<PageLimits> {
        let all: Vec<PageLimits> = self.pages.iter().map(|page| page.limits).collect();
        if all.iter().all(|limits| *limits == PageLimits::default()) { Vec::new() } else { all }
    }

    /// The certificate of a user with these rows.
    pub(crate) fn certificate(&self, rows: &[u64]) -> Option<&ClientIdentity> {
        let certificates = self.certificates.as_ref()?;
        let row = *rows.get(certificates.data)?;
        certificates.by_row.get(usize::try_from(row).ok()?)
    }

    /// Requests that a user has in flight at a time, at most.
    pub(crate) fn parallel_max(&self) -> u32 {
        self.pages.iter().map(|page| page.parallel).max().unwrap_or(1)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(name: &str) -> Journeys {
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        file::parse(Path::new(name), published(name).unwrap(), &none).unwrap()
    }

    /// Pages of each kind in a session, by solving the chain.
    fn visits(journeys: &Journeys) -> Vec<f64> {
        let mut all = vec![0.0; journeys.pages.len()];
        let mut now = vec![0.0; all.len()];
        now[journeys.journeys[0].starts[0].1] = 1.0;
        for _ in 0..5_000 {
            let mut next = vec![0.0; all.len()];
            for (at, page) in journeys.pages.iter().enumerate() {
                all[at] += now[at];
                let mut below = 0.0;
                for (sum, follows) in &page.next {
                    next[follows.unwrap_or(at)] += match follows {
                        Some(_) => now[at] * (sum - below),
                        None => 0.0,
                    };
                    below = *sum;
                }
            }
            now = next;
        }
        all
    }

    /// The shares of pages that the design documents of SPECweb2005 state, in percent.
    #[test]
    fn chains_of_published_methods_have_the_published_shares() {
        let banking = [
            21.53, 15.11, 8.45, 13.89, 1.12, 0.80, 6.67, 2.23, 1.22, 0.88, 1.22, 0.88, 1.71, 1.24,
            6.16,
        ];
        let all = visits(&read("web-banking"));
        let sum: f64 = all.iter().sum();
        assert!((sum - 4.65).abs() < 0.01, "{sum} pages a session");
        for (page, published) in all.iter().zip(banking) {
            assert!((100.0 * page / sum - published).abs() < 0.05, "{page} {published}");
        }
        let images: f64 = all[15..].iter().sum();
        assert!((100.0 * images / sum - 16.89).abs() < 0.1, "{images} {sum}");
        let sum: f64 = visits(&read("web-support")).iter().sum();
        assert!((sum - 14.8).abs() < 0.05, "{sum} pages a session");
    }

    #[cfg(feature = "host")]
    #[test]
    fn our_server_has_the_pages_of_every_published_method() {
        for (name, _) in PUBLISHED {
            let site = crate::server::journey::JourneySite::new(read(name), None);
            assert!(site.is_ok(), "{site:?}");
        }
    }
}
