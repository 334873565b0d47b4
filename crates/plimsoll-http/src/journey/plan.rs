//! From the keys of a suite to journeys, and from a target to the requests of their pages.

use std::path::Path;

use plimsoll_model::bundle::sha256_of;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::{Ladder, SuiteError};
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::{PlanError, PlanRequest};

use super::data::{DataRows, RowOrder};
use super::user::Origin;
use super::{Journeys, PageRequest, UserCertificates, file, published};
use crate::error::HttpPlanError;
use crate::parameters::{HttpWorkload, Statuses};
use crate::site::{Site, SiteFrame};
use crate::wire::request::{Method, RequestText};
use crate::wire::template::Template;

/// Journeys as they were read.
pub(crate) struct JourneyPlan {
    pub(crate) journeys: Journeys,
    /// Names of the ops: the pages.
    pub(crate) names: Vec<String>,
    /// For the disclosure. No body, header field or row is among them: they may hold secrets.
    pub(crate) facts: Vec<Setting>,
}

/// Reads the journey of a suite, and the data that it names.
pub(crate) fn read(
    request: &PlanRequest<'_>,
    workload: &HttpWorkload,
) -> Result<JourneyPlan, PlanError> {
    let path = workload.journey_file.as_deref().ok_or(HttpPlanError::NoJourney)?;
    let unread = |reason: String| HttpPlanError::JourneyFile { file: path.to_owned(), reason };
    let bytes = match published(path) {
        Some(text) => text.as_bytes().to_vec(),
        None => request.files.read(Path::new(path)).map_err(|e| unread(e.to_string()))?,
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| unread("it is not text".to_owned()))?;
    let of_file = |error: SuiteError| HttpPlanError::Journey(Box::new(error));
    let journeys = file::parse(Path::new(path), text, &|file| request.files.read(file));
    let journeys = journeys.map_err(of_file)?;
    if let Ladder::Points { points } = &request.suite.ladder {
        let users = points.iter().copied().fold(0.0, f64::max);
        let is_short =
            |rows: &&DataRows| rows.order == RowOrder::EachOnce && (rows.count() as f64) < users;
        if let Some(rows) = journeys.data.iter().find(is_short) {
            let (data, rows) = (rows.name.clone(), rows.count());
            return Err(HttpPlanError::TooFewRows { data, rows, users }.into());
        }
    }
    if let Some(UserCertificates { data, .. }) = &journeys.certificates {
        let data = &journeys.data[*data].name;
        if workload.tls_certificate_file.is_some() {
            return Err(HttpPlanError::TwoCertificates(data.clone()).into());
        }
        if request.targets.iter().any(|target| target.url.scheme != "https") {
            return Err(HttpPlanError::CertificatesWithoutTls(data.clone()).into());
        }
    }
    let names = journeys.page_names();
    let facts = facts(path, &bytes, &journeys, &names);
    Ok(JourneyPlan { journeys, names, facts })
}

fn facts(path: &str, bytes: &[u8], journeys: &Journeys, names: &[String]) -> Vec<Setting> {
    // Bytes in memory can always be read.
    let digest = sha256_of(&mut &bytes[..]).unwrap_or_default();
    let mut facts = vec![Setting::new("journey", format!("{path}, sha256 {digest}"))];
    if journeys.journeys.len() > 1 {
        for journey in &journeys.journeys {
            let weight = format!("{}, weight {}", journey.name, journey.weight);
            facts.push(Setting::new("journey of several", weight));
        }
    }
    for (page, name) in journeys.pages.iter().zip(names) {
        let requests = &journeys.requests[page.requests.clone()];
        let count = requests.len();
        let requests: Vec<String> = requests.iter().map(shown).collect();
        let parallel = match page.parallel {
            parallel if parallel > 1 && count > 1 => format!("; {parallel} in parallel"),
            _ => String::new(),
        };
        let think = &page.think;
        let value = format!("{name}: {}{parallel}; think {think}", requests.join(", "));
        facts.push(Setting::new("page", value));
    }
    for rows in &journeys.data {
        let order = match rows.order {
            RowOrder::EachOnce => "each for one session",
            RowOrder::InTurn => "one session after the other, then from the first again",
            RowOrder::Random => "drawn for each session",
            RowOrder::EachRequest if rows.is_weighted() => {
                "drawn for each request by their weights"
            }
            RowOrder::EachRequest => "drawn for each request",
        };
        facts.push(Setting::new("data", format!("{}: {} rows, {order}", rows.name, rows.count())));
    }
    if let Some(UserCertificates { data, .. }) = &journeys.certificates {
        let value = format!("of each user, by row of {}", journeys.data[*data].name);
        facts.push(Setting::new("client certificates", value));
    }
    facts.push(Setting::new("redirects", "followed on the same server; each is an op of its page"));
    facts.push(Setting::new("cookies", "those of each user, as RFC 6265 says; none at first"));
    facts
}

fn shown(request: &PageRequest) -> String {
    format!("{} {}", request.text.method.as_str(), request.shown)
}

/// The requests of all pages to a server: each as it is, and as a redirect to GET makes it.
pub(crate) fn site(frame: SiteFrame<'_>, journeys: &Journeys) -> Result<Site, HttpPlanError> {
    let frame = SiteFrame { expected: Statuses::any(), ..frame };
    let texts: Vec<(RequestText, &str)> = journeys
        .requests
        .iter()
        .flat_map(|request| {
            [request.text.clone(), with_get(&request.text)]
                .map(|text| (text, request.shown.as_str()))
        })
        .collect();
    frame.check_fields(texts.iter().map(|(text, _)| text))?;
    Ok(Site::with_urls(frame, texts.iter().map(|(text, shown)| (text, *shown))))
}

/// Without its body and the fields that describe it. RFC 9110 §15.4
fn with_get(text: &RequestText) -> RequestText {
    let describes_body = |name: &str| name.to_ascii_lowercase().starts_with("content-");
    let drawn = text.drawn_headers.iter().filter(|(name, _)| !describes_body(name));
    RequestText {
        method: Method::GET,
        drawn_headers: drawn.cloned().collect(),
        body: Template::default(),
        ..text.clone()
    }
}

/// The server as a user knows it.
pub(crate) fn origin(url: &TargetUrl) -> Origin {
    Origin { scheme: url.scheme.clone(), host: url.host.clone(), host_field: url.host_field() }
}
