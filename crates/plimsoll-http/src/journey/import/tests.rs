//! Records as browsers make them, and what becomes of them.

use std::io;
use std::path::Path;

use super::*;
use crate::journey::{Journeys, file};

fn parsed(journey: &ImportedJourney) -> Journeys {
    let users = |_: &Path| io::Result::Ok(b"username,password\nann,pw\n".to_vec());
    file::parse(Path::new("j.toml"), &journey.toml, &users)
        .unwrap_or_else(|e| panic!("{e}\n{}", journey.toml))
}

fn curl(text: &str) -> ImportedJourney {
    import(RecordFormat::Curl, text).unwrap()
}

/// curlconverter #207, #250, #258: ANSI-C quoting, and the carets of Windows.
#[test]
fn command_lines_of_every_shell_give_the_same_request() {
    let bash = "curl 'http://shop.example/api/items?x=1' \\\n  -H 'Accept: text/html' \\\n  \
                -H 'Cookie: sid=s3cret' --data-raw $'{\"a\":\"it\\'s \\u0041\"}' --compressed ;\n";
    let windows = "curl ^\"http://shop.example/api/items?x=1^\" ^\n  -H ^\"Accept: text/html^\" ^\n  \
                   -b ^\"sid=s3cret^\" --data-raw ^\"{^\\^\"a^\\^\":^\\^\"it's A^\\^\"}^\" --compressed";
    for text in [bash, windows] {
        let journey = curl(text);
        assert!(!journey.toml.contains("s3cret"), "{}", journey.toml);
        let journeys = parsed(&journey);
        let request = &journeys.requests[0];
        assert_eq!(
            (request.shown.as_str(), request.text.method.as_str()),
            ("/api/items?x=1", "POST")
        );
        let mut body = Vec::new();
        request.text.body.write(0, 0, &mut body);
        assert_eq!(String::from_utf8(body).unwrap(), "{\"a\":\"it's A\"}", "{}", journey.toml);
        assert!(journey.toml.contains("headers.Accept-Encoding = \"gzip\""), "{}", journey.toml);
        assert_eq!(journey.origin, "http://shop.example");
    }
}

#[test]
fn other_hosts_secrets_and_logins_are_left_out_by_name() {
    let journey = curl(
        "curl http://a.example/login -d 'username=ann&password=s3cret'\n\
         curl http://cdn.example/x.js\n\
         curl http://a.example/me -H 'Authorization: Bearer s3cret' -u ann:s3cret\n",
    );
    assert!(!journey.toml.contains("s3cret"), "{}", journey.toml);
    let notes = journey.notes.join("\n");
    assert!(notes.contains("1 request to http://cdn.example"), "{notes}");
    assert!(notes.contains("header line password,username"), "{notes}");
    let names = parsed(&journey).page_names();
    assert_eq!(names, ["login", "me"]);
}

const HAR: &str = r#"{"log": {"version": "1.2", "entries": [
 {"startedDateTime": "2026-11-29T10:00:00.000Z", "time": 100, "_resourceType": "document",
  "request": {"method": "GET", "url": "http://a.example/login", "headers": [{"name": ":path", "value": "/login"}]},
  "response": {"status": 200, "headers": [{"name": "Content-Type", "value": "text/html"}],
   "content": {"text": "<form><input name=\"csrf\" value=\"Zm9vYmFyMTIz\"></form>"}}},
 {"startedDateTime": "2026-11-29T10:00:00.050Z", "time": 10, "_resourceType": "script", "_fromCache": "disk",
  "request": {"method": "GET", "url": "http://a.example/old.js"}, "response": {"status": 200}},
 {"startedDateTime": "2026-11-29T10:00:00.060Z", "time": 10, "_resourceType": "stylesheet",
  "request": {"method": "GET", "url": "http://a.example/style.css"}, "response": {"status": 200}},
 {"startedDateTime": "2026-11-29T10:00:00.065Z", "time": 10, "_resourceType": "script",
  "request": {"method": "GET", "url": "http://a.example/new.js"}, "response": {"status": 200}},
 {"startedDateTime": "2026-11-29T10:00:03.100Z", "time": 50, "_resourceType": "document",
  "request": {"method": "POST", "url": "http://a.example/login", "headers": [{"name": "Referer", "value": "http://a.example/login"}],
   "postData": {"text": "username=ann&password=s3cret&csrf=Zm9vYmFyMTIz"}},
  "response": {"status": 302, "headers": [{"name": "Location", "value": "/account"}]}},
 {"startedDateTime": "2026-11-29T10:00:03.160Z", "time": 40, "_resourceType": "document",
  "request": {"method": "GET", "url": "http://a.example/account"},
  "response": {"status": 200, "content": {"text": "{\"session\": {\"token\": \"tok-1234567890\"}}"}}},
 {"startedDateTime": "2026-11-29T10:00:05.200Z", "time": 40, "_resourceType": "fetch",
  "request": {"method": "GET", "url": "http://a.example/api/orders?page=2",
   "headers": [{"name": "Authorization", "value": "Bearer tok-1234567890"}, {"name": "X-Nonce", "value": "a1b2c3d4e5f6a7b8c9"}]},
  "response": {"status": 200}},
 {"startedDateTime": "2026-11-29T10:00:05.300Z", "time": 0,
  "request": {"method": "GET", "url": "https://tracker.example/p"}, "response": {"status": 0}}
]}}"#;

#[test]
fn a_browser_session_becomes_a_journey_whose_values_come_from_replies() {
    let journey = import(RecordFormat::Har, HAR).unwrap();
    let text = &journey.toml;
    for expected in [
        "take.csrf = { field = \"csrf\" }",
        "csrf={{urlencode csrf}}",
        "password={{urlencode user.password}}",
        "take.token = { json = \"/session/token\" }",
        "headers.Authorization = \"Bearer {{token}}\"",
        "headers.Referer = \"{{origin}}/login\"",
        "parallel = 2",
        "think = \"constant 3000ms\"",
        "path = \"/style.css\"",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(
        !text.contains("s3cret") && !text.contains("old.js") && !text.contains(":path"),
        "{text}"
    );
    let notes = journey.notes.join("\n");
    for expected in [
        "1 request that the browser's cache answered",
        "1 request without a reply",
        "1 request that a redirect led to",
        "guessed: csrf is taken from the reply to GET /login",
        "sends a \"nonce\" that no reply has: is it a secret",
    ] {
        assert!(notes.contains(expected), "{expected} is not in\n{notes}");
    }
    let journeys = parsed(&journey);
    assert_eq!(journeys.pages.len(), 2, "{text}");
    assert_eq!(journeys.pages.iter().map(|page| page.requests.len()).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn a_field_that_is_there_twice_is_written_once() {
    let journey = curl("curl http://a.example/ -H 'X-A: 1' -H 'x-a: 2' -H 'Accept: */*'");
    assert_eq!(journey.toml.matches("headers.X-A = \"1\"").count(), 1, "{}", journey.toml);
    parsed(&journey);
}

proptest::proptest! {
    #[test]
    fn no_command_line_is_too_strange(text in "curl [ -~\n^$'\\\\\"]{0,80}") {
        if let Ok(journey) = import(RecordFormat::Curl, &text) {
            let users = |_: &Path| io::Result::Ok(b"username,password\nann,pw\n".to_vec());
            drop(file::parse(Path::new("j.toml"), &journey.toml, &users));
        }
    }

    #[test]
    fn no_archive_is_too_strange(cut in 0..HAR.len(), text in "[ -~]{0,12}") {
        let Some((before, after)) = HAR.split_at_checked(cut) else { return Ok(()) };
        drop(import(RecordFormat::Har, &format!("{before}{text}{after}")));
        drop(import(RecordFormat::Har, &HAR.replace("Zm9vYmFyMTIz", &text.replace(['"', '\\'], ""))));
    }
}

#[test]
fn what_is_no_record_is_refused_with_the_next_move() {
    let refusal = |format, text| import(format, text).unwrap_err().to_string();
    assert!(refusal(RecordFormat::Curl, "wget x").contains("copy a request as cURL"));
    assert!(refusal(RecordFormat::Har, "{}").contains("save all as HAR"));
    assert!(refusal(RecordFormat::Har, "{\"log\": {}}").contains("none of its requests"));
    assert!(refusal(RecordFormat::Curl, "curl -X POST").contains("names no URL"));
}
