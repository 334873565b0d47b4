//! Requests of every method, with fields and bodies, as a server sees them.

use std::collections::BTreeSet;

use crate::listening::Listening;
use plimsoll_testkit::program::{Ended, command, plimsoll, result, short};

/// A run of web-url with these flags, all of whose requests must succeed.
#[track_caller]
fn successful_run(server: &Listening, path: &str, more: &[&str]) -> (Ended, tempfile::TempDir) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = format!("{}{path}", server.url);
    let run = plimsoll(&short("web-url", &url, &bundle, more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    for point in result["points"].as_array().unwrap() {
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
    }
    (run, temp_dir)
}

fn lines(server: &Listening) -> Vec<String> {
    let lines: BTreeSet<String> = server.requests().into_keys().map(|(line, _)| line).collect();
    lines.into_iter().collect()
}

#[test]
fn any_method_is_asked_with() {
    for method in ["HEAD", "DELETE", "OPTIONS", "PURGE"] {
        let server = Listening::start();
        successful_run(&server, "a?b=c", &["--clients", "2", "-m", method]);
        assert_eq!(lines(&server), [format!("{method} /a?b=c")]);
    }
}

#[test]
fn a_body_makes_it_a_post_and_counts_as_written() {
    let server = Listening::start();
    let (_, temp_dir) = successful_run(
        &server,
        "",
        &["--clients", "1", "--data", "name=value", "--set", "metric=bytes"],
    );
    let requests = server.requests();
    let sent = requests[&("POST /".to_owned(), "name=value".to_owned())];
    assert_eq!(requests.len(), 1, "{requests:?}");
    server.saw("Content-Type: application/x-www-form-urlencoded");
    let result = result(&temp_dir.path().join("b"));
    let point = &result["points"][0];
    let measured = point["ops"]["POST"]["count"].as_u64().unwrap();
    assert!(measured > 0 && measured <= sent, "{measured} of {sent}");
    let rate = |key: &str| point[key].as_f64().unwrap();
    let bytes_an_op = rate("achieved_bytes_per_s") / rate("achieved_ops_per_s");
    assert!((bytes_an_op - 12.0).abs() < 0.1, "ten sent and two received, not {bytes_an_op}");
}

#[test]
fn a_body_from_a_file_is_sent_as_it_stands() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let file = temp_dir.path().join("body.json");
    std::fs::write(&file, "{\"a\": \"{{uuid}}\"}").unwrap();
    let data = format!("@{}", file.display());
    let flags =
        ["--clients", "1", "-m", "PUT", "-d", &data, "-H", "Content-Type: application/json"];
    successful_run(&server, "", &flags);
    let sent: Vec<_> = server.requests().into_keys().collect();
    assert_eq!(sent, [("PUT /".to_owned(), "{\"a\": \"{{uuid}}\"}".to_owned())]);
    server.saw("Content-Type: application/json");
    std::fs::remove_file(&file).unwrap();
    plimsoll(&["run", "web-url", &server.url, "--clients", "1", "-d", &data])
        .check(2, &["cannot read the body", "body.json"]);
}

#[test]
fn random_parts_are_drawn_for_each_request_and_again_the_same_in_the_next_run() {
    let rate = ["--rate", "100", "--gaps", "uniform", "-d", "{{uuid}}"];
    let draw = |seed: &str| {
        let server = Listening::start();
        successful_run(&server, "%7B%7D", &[&rate[..], &["--seed", seed]].concat());
        server.requests().into_keys().map(|(_, body)| body).collect::<BTreeSet<String>>()
    };
    let (first, again, other) = (draw("5"), draw("5"), draw("6"));
    assert!(first.len() >= 25, "{}", first.len());
    assert!(first.intersection(&again).count() >= 25, "the same seed draws the same");
    assert_eq!(first.intersection(&other).count(), 0);
}

#[test]
fn a_list_in_json_has_methods_fields_bodies_and_weights_of_its_own() {
    let server = Listening::start();
    let list = "{\"url\": \"/a\", \"body\": {\"n\": \"{{int 1 3}}\"}, \"weight\": 3}\n\
                {\"url\": \"/b\", \"method\": \"PATCH\", \"headers\": {\"X-Key\": \"c0ffee\"}}\n\
                DELETE /c/{{int 1 2}}\n";
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let arguments = short("web-url", &server.url, &bundle, &["--rate", "200", "--urls", "-"]);
    let mut run = command(&arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), list.as_bytes()).unwrap();
    assert!(matches!(run.wait().unwrap().code(), Some(0 | 1)));
    let expected = ["DELETE /c/1", "DELETE /c/2", "PATCH /b", "POST /a"];
    assert_eq!(lines(&server), expected);
    let posted: u64 =
        server.requests().iter().filter(|((line, _), _)| line == "POST /a").map(|(_, n)| n).sum();
    let all: u64 = server.requests().values().sum();
    // Decks of five: exact but for the last one.
    assert!((posted as f64 - all as f64 * 0.6).abs() < 5.0, "{posted} of {all}");
    server.saw("X-Key: c0ffee");
    let kept = std::fs::read_to_string(bundle.join("suite.toml")).unwrap();
    assert!(!kept.contains("c0ffee") && kept.contains("(left out)"), "{kept}");
}

#[test]
fn users_cookies_and_a_file_of_fields_are_sent_and_not_kept() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let (file, bundle) = (temp_dir.path().join("fields"), temp_dir.path().join("b"));
    std::fs::write(&file, "X-One: c0ffee-1\n\nX-Two: c0ffee-2\n").unwrap();
    let flags = [
        &["--clients", "1", "-a", "ann", "-b", "s=c0ffee-3", "--cookie", "t=1"][..],
        &["--header-file", file.to_str().unwrap(), "-H", "X-Three: c0ffee-4"],
    ]
    .concat();
    let mut run = command(&short("web-url", &server.url, &bundle, &flags));
    let output = run.env("PLIMSOLL_PASSWORD", "c0ffee-5").output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    server.saw("Authorization: Basic YW5uOmMwZmZlZS01");
    server.saw("Cookie: s=c0ffee-3; t=1");
    for field in ["X-One: c0ffee-1", "X-Two: c0ffee-2", "X-Three: c0ffee-4"] {
        server.saw(field);
    }
    for entry in std::fs::read_dir(&bundle).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!text.contains("c0ffee") && !text.contains("YW5uOm"), "{}", path.display());
    }
    plimsoll(&["run", "web-url", &server.url, "-a", "ann"]).check(2, &["PLIMSOLL_PASSWORD"]);
}

#[test]
fn rates_make_a_ladder_and_connections_are_made_anew_where_asked() {
    let server = Listening::start();
    let (_, temp_dir) = successful_run(&server, "", &["--rate", "40,80", "--gaps", "uniform"]);
    let kept = result(&temp_dir.path().join("b"));
    let points = kept["points"].as_array().unwrap().iter();
    assert_eq!(points.map(|point| &point["requested"]).collect::<Vec<_>>(), [40.0, 80.0]);
    let before = server.connections();
    successful_run(&server, "", &["--rate", "200", "--new-connection", "--connections", "3"]);
    assert!(server.connections() - before >= 10);
}

#[test]
fn what_the_flags_get_wrong_is_said_at_once() {
    let run = |flags: &[&str]| {
        plimsoll(
            &[&["run", "web-url", "http://127.0.0.1:9/", "--clients", "1"][..], flags].concat(),
        )
    };
    run(&["-d", "30s"]).check(2, &["--for 30s"]);
    run(&["-m", "G ET"]).check(2, &["workload.method", "a method such as"]);
    run(&["-H", "no field"]).check(2, &["workload.headers", "not a header field"]);
    run(&["-d", "{{uid}}"]).check(2, &["{{uuid}}"]);
    run(&["--cert", "/nowhere.pem"]).check(3, &["127.0.0.1:9"]);
    plimsoll(&["run", "web-static", "builtin:", "-m", "PUT"]).check(2, &["--method", "web-url"]);
}

#[test]
fn a_first_request_that_gets_no_good_answer_ends_the_run_before_any_load() {
    let server = Listening::start();
    for (status, advice) in [
        (301, "redirects are not followed"),
        (401, "--basic-auth USER"),
        (403, "may ask for it"),
        (404, "check the path"),
        (405, "-m METHOD"),
        (415, "Content-Type"),
        (500, "log says"),
    ] {
        let url = format!("{}{status}", server.url);
        let run = plimsoll(&["run", "web-url", &url, "--clients", "1"]);
        run.check(3, &[&format!("status {status}"), "saying \"ok\"", advice, "--no-check"]);
    }
    assert_eq!(server.requests().values().sum::<u64>(), 7, "one request each");
    let (_, temp_dir) = missing(&server);
    assert!(result(&temp_dir.path().join("b"))["points"][0]["errors"]["status:404"].is_u64());
}

/// Requests for a page that does not exist, all the same.
fn missing(server: &Listening) -> (Ended, tempfile::TempDir) {
    let temp_dir = tempfile::tempdir().unwrap();
    let url = format!("{}404", server.url);
    let more = ["--clients", "1", "--no-check"];
    let run = plimsoll(&short("web-url", &url, &temp_dir.path().join("b"), &more));
    assert_eq!(run.code, Some(1), "{run:?}");
    (run, temp_dir)
}

#[test]
fn a_server_that_speaks_something_else_is_told_apart_before_any_load() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A TLS server's answer to plain text: an alert.
            let _ = std::io::Write::write_all(&mut &stream, &[0x15, 3, 3, 0, 2, 2, 10]);
            let _ = std::io::Read::read(&mut &stream, &mut [0; 1024]);
        }
    });
    plimsoll(&["run", "web-url", &url, "--clients", "1"]).check(3, &["write https://", "HTTP"]);
    let plain = Listening::start();
    let https = plain.url.replace("http:", "https:");
    let silent = ["no answer to the TLS handshake within 10 s", "write http:// if"];
    plimsoll(&["run", "web-url", &https, "--clients", "1"]).check(3, &silent);
}

/// Answers each connection with these bytes as soon as it has read a few bytes, and closes it with
/// the rest unread, which resets it.
fn answering(reply: &'static [u8]) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = std::io::Read::read(&mut &stream, &mut [0; 1024]);
            let _ = std::io::Write::write_all(&mut &stream, reply);
        }
    });
    url
}

#[test]
fn a_status_sent_before_the_body_was_read_is_got_by_every_op_whatever_the_server_resets() {
    let temp_dir = tempfile::tempdir().unwrap();
    let body = temp_dir.path().join("body");
    std::fs::write(&body, vec![b'x'; 4 << 20]).unwrap();
    let body = format!("@{}", body.display());
    for (status, advice, reply) in [
        (
            "413",
            "raise its limit",
            &b"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"[..],
        ),
        ("500", "log says", b"HTTP/1.0 500 No\r\n\r\nno"),
    ] {
        let bundle = temp_dir.path().join(status);
        let more = ["-m", "POST", "-d", &body, "--clients", "4", "--no-check"];
        let run = plimsoll(&short("web-url", &answering(reply), &bundle, &more));
        let message = format!("the server answers {status} while the body is still being sent");
        run.check(1, &[&message]);
        let point = &result(&bundle)["points"][0];
        let classes: Vec<&String> = point["errors"].as_object().unwrap().keys().collect();
        assert_eq!(classes, [&format!("status:{status}")], "{point}");
        // The check before the load gets it too.
        let first = format!("the first POST ended with status {status}");
        plimsoll(&["run", "web-url", &answering(reply), "-m", "POST", "-d", &body])
            .check(3, &[&first, "saying \"no\"", advice]);
    }
}

#[test]
fn a_port_that_speaks_http_2_only_is_named_as_that_before_any_load() {
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
    let goaway = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    for frame in [&settings[..], goaway] {
        plimsoll(&["run", "web-url", &answering(frame), "--clients", "1"])
            .check(3, &["the server speaks only HTTP/2", "use --http 2"]);
    }
    let wants = answering(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
    plimsoll(&["run", "web-url", &wants, "--clients", "1"])
        .check(3, &["status 426", "its Upgrade header names it", "use --http 2"]);
}

#[test]
fn a_warm_up_of_zero_is_none() {
    let server = Listening::start();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let mut run = vec!["run", "web-url", &server.url, "--out", bundle.to_str().unwrap()];
    run.extend(["--profile", "quick", "--clients", "1", "--warm-up", "0s", "--for", "300ms"]);
    assert!(matches!(plimsoll(&run).code, Some(0 | 1)));
    let suite = std::fs::read_to_string(bundle.join("suite.toml")).unwrap();
    assert!(suite.contains("warm_up = \"0s\""), "{suite}");
    let point = &result(&bundle)["points"][0];
    assert!(point["achieved_ops_per_s"].as_f64() > Some(0.0), "{point}");
    assert!(bundle.join("report.html").exists());
}
