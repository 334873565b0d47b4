//! HTTP Archives, version 1.2, as browsers save them.

use plimsoll_model::units::counted;
use serde::Deserialize;

use super::curl::split_url;
use super::{ImportError, Record, RecordedReply, RecordedRequest};

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    pageref: Option<String>,
    #[serde(default)]
    started_date_time: String,
    #[serde(default)]
    time: f64,
    request: HarRequest,
    response: HarResponse,
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<serde_json::Value>,
    #[serde(default, rename = "_resourceType")]
    resource_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<NameValue>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct PostData {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<NameValue>,
}

#[derive(Deserialize)]
struct NameValue {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct HarResponse {
    #[serde(default)]
    status: i32,
    #[serde(default)]
    headers: Vec<NameValue>,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
}

/// Reads the entries that a server answered.
pub(super) fn read(text: &str) -> Result<Record, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let archive: Archive =
        serde_json::from_str(text).map_err(|e| ImportError::NoHar(e.to_string()))?;
    let mut record = Record::default();
    let (mut cached, mut unanswered, mut foreign) = (0, 0, 0);
    let mut page = 0;
    for entry in archive.log.entries {
        let Some((origin, path)) = split_url(&entry.request.url) else {
            foreign += 1;
            continue;
        };
        if entry.from_cache.is_some() {
            cached += 1;
            continue;
        }
        let Some(status) = u16::try_from(entry.response.status).ok().filter(|code| *code >= 100)
        else {
            unanswered += 1;
            continue;
        };
        // Without pages a document begins one, and what is sent from a page is of it.
        let is_document = entry.resource_type.as_deref() == Some("document") || is_html(&entry);
        if is_document || record.requests.is_empty() || entry.request.method != "GET" {
            page += 1;
        }
        let of_page = entry.pageref.clone().unwrap_or_default();
        let start = start_ms(&entry.started_date_time);
        record.requests.push(RecordedRequest {
            page: format!("{of_page} {page}"),
            method: entry.request.method.to_ascii_uppercase(),
            origin,
            path,
            body: entry.request.post_data.and_then(body),
            headers: pairs(entry.request.headers),
            reply: Some(RecordedReply {
                status,
                headers: pairs(entry.response.headers),
                // Text alone; in base64 are pictures.
                body: match entry.response.content.encoding.as_deref() {
                    Some("base64") => String::new(),
                    _ => entry.response.content.text.unwrap_or_default(),
                },
            }),
            span_ms: start.map(|start| (start, start + entry.time.max(0.0))),
        });
    }
    for (count, noun, what) in [
        (cached, "request", "that the browser's cache answered"),
        (unanswered, "request", "without a reply"),
        (foreign, "other", "that is no http request"),
    ] {
        if count > 0 {
            record.notes.push(format!("left out: {} {what}", counted(count, noun)));
        }
    }
    Ok(record)
}

fn is_html(entry: &Entry) -> bool {
    let kind =
        entry.response.headers.iter().find(|it| it.name.eq_ignore_ascii_case("content-type"));
    entry.resource_type.is_none() && kind.is_some_and(|it| it.value.starts_with("text/html"))
}

fn pairs(list: Vec<NameValue>) -> Vec<(String, String)> {
    list.into_iter().map(|it| (it.name, it.value)).collect()
}

fn body(data: PostData) -> Option<String> {
    let params = || {
        let pairs = data.params.iter().map(|it| format!("{}={}", it.name, it.value));
        pairs.collect::<Vec<_>>().join("&")
    };
    let text = data.text.clone().unwrap_or_else(params);
    (!text.is_empty()).then_some(text)
}

fn start_ms(text: &str) -> Option<f64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_microsecond() as f64 / 1e3)
}
