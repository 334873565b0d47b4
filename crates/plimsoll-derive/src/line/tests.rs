use super::*;
use plimsoll_model::units::NANOS_PER_SECOND;
use proptest::prelude::*;

const SECOND: Nanos = Nanos(NANOS_PER_SECOND);
const STAMP: Nanos = Nanos(971_211_336 * NANOS_PER_SECOND);

fn read<'l>(format: &str, line: &'l str) -> Result<LogLine<'l>, UnreadableLine> {
    // The line outlives the format.
    LogFormat::parse(format).unwrap().read(line.as_bytes())
}

fn expected(instant: StampedInstant, resolution: Nanos) -> LogLine<'static> {
    LogLine {
        stamp: STAMP,
        stamped: Stamped { instant, resolution },
        duration: None,
        method: "GET".into(),
        target: "/a?b=1".into(),
        status: 200,
        bytes: Some(2326),
        client: "127.0.0.1".into(),
        agent: "Mozilla/5.0 (\\\"X\\\")".into(),
    }
}

#[test]
fn lines_of_nginx_and_apache_are_read() {
    let line = r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/5.0 (\"X\")""#;
    assert_eq!(read("apache-combined", line), Ok(expected(StampedInstant::Begin, SECOND)));
    assert_eq!(read("combined", line), Ok(expected(StampedInstant::End, SECOND)));
    let common = line.split(" \"http").next().unwrap();
    let read = read("common", common).unwrap();
    assert_eq!((read.bytes, read.agent), (Some(2326), "".into()));
}

#[test]
fn formats_that_an_administrator_wrote_are_read() {
    let nginx = r#"$msec $request_time $remote_addr ${request_method} $request_uri s=$status $body_bytes_sent "$http_user_agent" $upstream_addr"#;
    let line = r#"971211336.000 0.012 127.0.0.1 GET /a?b=1 s=200 2326 "Mozilla/5.0 (\"X\")" 10.0.0.1:80, 10.0.0.2:80"#;
    let duration = Some(Nanos::from_millis(12));
    let end = expected(StampedInstant::End, Nanos::from_millis(1));
    assert_eq!(read(nginx, line), Ok(LogLine { duration, ..end }));
    let apache = r#"%a %{%d}t %{end:msec}t %>s %D %m %U%q %b "%{User-Agent}i""#;
    let line = r#"127.0.0.1 10 971211336000 200 12000 GET /a?b=1 2326 "Mozilla/5.0 (\"X\")""#;
    let end = expected(StampedInstant::End, Nanos::from_millis(1));
    assert_eq!(
        read(apache, line).map(|read| (read.stamp, read.stamped, read.duration, read.status)),
        Ok((end.stamp, end.stamped, duration, 200))
    );
    // A user, or the cookie of a session, says more than an address.
    let read = read(
        "$remote_addr $cookie_sid [$time_local] \"$request\" $status",
        "::1 s7 [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/2.0\" 404",
    );
    assert_eq!(read.map(|read| (read.client, read.status)), Ok(("s7".into(), 404)));
}

#[test]
fn what_a_server_escaped_is_percent_encoded() {
    let line =
        r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /\xC3\xA4/\x22\x5C HTTP/1.1" 200 5 "-" "x""#;
    assert_eq!(read("combined", line).map(|read| read.target), Ok("/%C3%A4/%22%5C".into()));
    let json = r#"{"ts":1.5,"request":{"method":"GET","uri":"/\u00e4"},"status":200}"#;
    assert_eq!(read("json", json).map(|read| read.target), Ok("/%C3%A4".into()));
}

#[test]
fn lines_of_json_are_read() {
    let caddy = r#"{"level":"info","ts":971211336.0,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=1","headers":{"User-Agent":["curl/7"],"Accept":["*/*"]}},"bytes_read":0,"user_id":"","duration":0.012,"size":2326,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;
    let traefik = r#"{"ClientAddr":"127.0.0.1:57","ClientHost":"127.0.0.1","DownstreamContentSize":2326,"DownstreamStatus":200,"Duration":12000000,"RequestMethod":"GET","RequestPath":"/a?b=1","StartLocal":"2000-10-10T20:55:36Z","StartUTC":"2000-10-10T20:55:36.000000000Z","request_User-Agent":"curl/7","level":"info","msg":"","time":"2000-10-10T20:55:37Z"}"#;
    let envoy = r#"{"start_time":"2000-10-10T20:55:36.000Z","method":"GET","path":"/a?b=1","response_code":200,"bytes_sent":2326,"duration":12,"downstream_remote_address":"127.0.0.1:57","user_agent":"curl/7","bytes_received":0,"protocol":"HTTP/1.1"}"#;
    let of = |instant, resolution| LogLine {
        duration: Some(Nanos::from_millis(12)),
        agent: "curl/7".into(),
        ..expected(instant, resolution)
    };
    assert_eq!(read("json", caddy), Ok(of(StampedInstant::End, Nanos(1_000))));
    assert_eq!(read("json", traefik), Ok(of(StampedInstant::Begin, Nanos(1))));
    assert_eq!(read("json", envoy), Ok(of(StampedInstant::Begin, Nanos::from_millis(1))));
    let other = r#"{"level":"info","ts":971211336.0,"msg":"serving initial configuration"}"#;
    assert_eq!(read("json", other), Err(UnreadableLine::NoRequest));
    assert_eq!(read("json", &caddy[..200]), Err(UnreadableLine::Half));
}

#[test]
fn formats_are_recognised_by_their_lines() {
    let name = |line: &str| LogFormat::recognise(&[line.as_bytes()]).map(|(_, name)| name);
    let combined = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 304 0 "-" "x""#;
    assert_eq!(name(combined), Some("combined"));
    assert_eq!(name(&combined.replace(" 0 ", " - ")), Some("apache-combined"));
    assert_eq!(name(combined.strip_suffix(r#" "-" "x""#).unwrap()), Some("common"));
    assert_eq!(
        name(r#"{"ts":1.5,"request":{"method":"GET","uri":"/"},"status":200}"#),
        Some("json")
    );
    assert_eq!(name("Nov 30 12:00:00 host systemd[1]: Started"), None);
}

#[test]
fn a_line_that_is_none_has_its_reason() {
    use UnreadableLine::{Half, NoRequest, NotText, OtherFormat, Stamp};
    let line = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "x""#;
    let cases = [
        (line[..50].to_owned(), Half),
        (line.replace("Oct", "Oki"), Stamp),
        (line.replace("GET / HTTP/1.1", "-"), NoRequest),
        (line.replace("GET / HTTP/1.1", r"\x16\x03\x01 \x02"), NoRequest),
        (line.replace(" 200 ", " 20x "), OtherFormat),
        (line.replace("::1", "\0"), NotText),
        (format!("{line} more"), OtherFormat),
    ];
    for (line, expected) in cases {
        assert_eq!(read("combined", &line), Err(expected), "{line}");
    }
}

#[test]
fn a_format_without_what_a_load_needs_is_refused() {
    let refusal = |format: &str| LogFormat::parse(format).unwrap_err().to_string();
    assert!(refusal("main").contains("no format of a log"));
    assert!(refusal("$remote_addr $request $status").contains("no stamp of time"));
    assert!(refusal("%t %>s").contains("no request"));
    assert!(refusal("%t%h %r %>s").contains("without text between"));
}

proptest! {
    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..300), text in ".{0,300}") {
        for format in ["combined", "common", "json", "%{msec}t %r %s %D", "$msec $request $status"] {
            let format = LogFormat::parse(format).unwrap();
            let _ = format.read(&line);
            let _ = format.read(text.as_bytes());
        }
        let _ = LogFormat::parse(&text);
    }

    #[test]
    fn a_damaged_line_is_read_or_refused(at in 0usize..200, with in any::<u8>()) {
        let lines = [
            (r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "-" "x""#, "combined"),
            (r#"{"ts":1.5,"duration":0.1,"request":{"method":"GET","uri":"/"},"status":200}"#, "json"),
        ];
        for (line, format) in lines {
            let mut bytes = line.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = with;
            let _ = LogFormat::parse(format).unwrap().read(&bytes);
            let _ = LogFormat::parse(format).unwrap().read(&bytes[..at]);
        }
    }
}
