//! The server of a journey, sessions that arrive there, and conditions on their pages.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use plimsoll_testkit::program::{Served, plimsoll, result, short};
use serde_json::Value;

const JOURNEY: &str = r#"
[[data]]
name = "user"
file = "users.csv"
order = "each_once"

[[page]]
name = "form"
path = "/login?next={{int 1 9}}"
take.csrf = { field = "csrf" }
serve.bytes = "3000"
good = "10s"

[[page]]
name = "login"
path = "/login"
body = "csrf={{csrf}}&name={{urlencode user.name}}&password={{urlencode user.password}}"
take.token = { json = "/data/token" }
take.id = { regex = "id: (\\d+)" }

[[page.request]]
path = "/pictures/{{int 1 9}}.png"
repeat = "3"

[[page]]
name = "account"
path = "/account/{{id}}"
headers.Authorization = "Bearer {{token}}"
think = "constant 5ms"
next = { account = 0.5, end = 0.5 }
"#;

/// Writes the journey and its rows; its path.
fn journey(folder: &Path) -> String {
    let rows: String = (0..600).map(|user| format!("user {user},p&w {user}\n")).collect();
    std::fs::write(folder.join("users.csv"), format!("name,password\n{rows}")).unwrap();
    let path = folder.join("shop.toml");
    std::fs::write(&path, JOURNEY).unwrap();
    path.to_str().unwrap().to_owned()
}

/// One request on a connection of its own: status, and all of the reply.
fn ask(server: SocketAddr, request: &str, fields: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).unwrap();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}");
    write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    (reply[9..12].parse().unwrap(), reply)
}

fn counts(server: SocketAddr) -> Value {
    let (_, reply) = ask(server, "GET /plimsoll-journey.json", "", "");
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn sessions_arrive_on_their_schedule_and_the_server_counts_what_the_report_counts() {
    for more in [&["--agents", "local,local"][..], &["--http", "2"]] {
        let temp_dir = tempfile::tempdir().unwrap();
        let (path, bundle) = (journey(temp_dir.path()), temp_dir.path().join("b"));
        let server = Served::with("web", &["--journey", &path]);
        let url = format!("http://{}/", server.address());
        let load = ["--journey", &path, "--sessions", "50", "--arrivals", "uniform"];
        let span = ["--warm-up", "0s", "--for", "2s", "--set", "profiles.quick.drain=5s"];
        let flags = [&load[..], &span, more].concat();
        let ended = plimsoll(&short("web-users", &url, &bundle, &flags));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let (point, counts) = (&result["points"][0], counts(server.address()));
        assert_eq!(result["axis"]["unit"], "sessions/s");
        assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
        for page in ["form", "login", "account"] {
            assert_eq!(counts["pages"][page]["refused"], 0, "{counts}");
            assert_eq!(counts["pages"][page]["answered"], point["ops"][page]["count"], "{page}");
        }
        // Of a hundred that are due; the last may be cut off by the end of the load.
        let begun = point["journeys"]["begun"].as_u64().unwrap();
        assert!((98..=100).contains(&begun), "{begun}");
        assert_eq!(counts["sessions"].as_u64(), Some(begun));
        assert_eq!(point["ops"]["form"]["good_ratio"], 1.0, "{point}");
        // A login has a page of its own and three pictures; the end of the load may cut it off.
        let login = &point["ops"]["login"];
        let [requests, pages] = [&login["count"], &login["page_ns"]["n"]].map(Value::as_u64);
        let complete = 4 * pages.unwrap();
        assert!(requests >= Some(complete) && requests <= Some(4 * begun), "{login}");
    }
}

#[test]
fn what_an_application_would_refuse_is_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = journey(temp_dir.path());
    let server = Served::with("web", &["--journey", &path]);
    let server = server.address();
    let session = || {
        let (status, reply) = ask(server, "GET /login?next=3", "", "");
        assert_eq!(status, 200, "{reply}");
        let between = |from: &str, to: &str| {
            let rest = reply.split_once(from).unwrap().1;
            rest.split_once(to).unwrap().0.to_owned()
        };
        let cookie = between("set-cookie: ", ";");
        (format!("Cookie: {cookie}\r\n"), between("name=\"csrf\" value=\"", "\""))
    };
    let ((cookie, csrf), (_, other)) = (session(), session());
    let login = |cookie: &str, csrf: &str, user: &str| {
        ask(server, "POST /login", cookie, &format!("csrf={csrf}&{user}")).0
    };
    let user = "name=user%207&password=p%26w%207";
    assert_eq!(login(&cookie, &csrf, user), 200);
    assert_eq!(login("", &csrf, user), 403, "without a session");
    assert_eq!(login(&cookie, &other, user), 403, "a value of another session");
    assert_eq!(login(&cookie, &csrf.replace('1', "2"), user), 403, "a value that was changed");
    assert_eq!(login(&cookie, &csrf, "name=user%207&password=p%26w%208"), 403, "a wrong password");
    assert_eq!(login(&cookie, &csrf, "user=7"), 400, "another form");
    assert_eq!(ask(server, "GET /nowhere", &cookie, "").0, 404);
    assert_eq!(counts(server)["pages"]["login"]["refused"], 5);
}

#[test]
fn pages_and_journeys_have_conditions() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (path, bundle) = (journey(temp_dir.path()), temp_dir.path().join("b"));
    let run = |gate: &str| {
        let flags = ["--journey", &path, "--users", "2", "-n", "600", "--fail-if", gate];
        plimsoll(&short("web-users", "builtin:", &bundle, &flags))
    };
    run("page.lgin.p95 > 1s").check(2, &["no page \"lgin\"", "did you mean login?", "account"]);
    run("page.login.p96 > 1s").check(2, &["page.NAME.p95", "journey.completed"]);
    let other = ["--rate", "10", "--fail-if", "journey.p95 > 1s"];
    let other = short("web-url", "builtin:", &bundle, &other);
    plimsoll(&other).check(2, &["web-url has no journeys"]);
    let ended = run("page.login.p50@2 > 1us");
    ended.check(1, &["page.login.p50@2 > 1us"]);
    let gates = &result(&bundle)["gates"];
    assert!(gates[0]["value"].as_f64() > Some(1_000.0), "{gates}");
    let within = ["capacity", "web-users", "builtin:", "--journey", &path, "--within"];
    let ended = plimsoll(&[&within[..], &["page.x.p95<1s,journey.completed>99%"]].concat());
    ended.check(2, &["no page \"x\""]);
    let flags = ["--arrive", "--within", "p95<1s"];
    let url = [&["capacity", "web-url", "builtin:"][..], &flags].concat();
    plimsoll(&url).check(2, &["--arrive: sessions arrive in suite web-users"]);
}

const PICTURES: &str = r#"
[[page]]
name = "album"
path = "/album"
take.token = { field = "token" }
serve.time = "constant 20ms"
parallel = 4

[[page.request]]
path = "/pictures/{{int 1 9}}.png"
repeat = "8"
serve.time = "constant 20ms"
"#;

/// One after the other, a page lasts as long as its nine requests together; with four in parallel,
/// as long as three.
#[test]
fn further_requests_of_a_page_are_in_flight_together() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("album.toml");
    std::fs::write(&path, PICTURES).unwrap();
    let path = path.to_str().unwrap();
    for (number, more) in [&["--http", "1.1"][..], &["--http", "2"]].into_iter().enumerate() {
        let bundle = temp_dir.path().join(number.to_string());
        let server = Served::with("web", &["--journey", path]);
        let url = format!("http://{}/", server.address());
        let flags = [&["--journey", path, "--users", "3", "-n", "270"], more].concat();
        let ended = plimsoll(&short("web-users", &url, &bundle, &flags));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let (point, counts) = (&result(&bundle)["points"][0], counts(server.address()));
        assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
        let album = &point["ops"]["album"];
        assert_eq!(counts["pages"]["album"]["answered"], album["count"], "{counts}");
        assert_eq!(counts["sessions"], point["journeys"]["begun"], "{counts}");
        let mean = |key: &str| album[key]["mean"].as_f64().unwrap();
        let requests = mean("page_ns") / mean("response_ns");
        assert!((2.0..5.0).contains(&requests), "a page is as long as {requests} requests");
    }
}

#[test]
fn a_published_method_runs_as_it_stands() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let load = ["--sessions", "20", "--connections", "200", "--warm-up", "0s", "--for", "3s"];
    let flags = [&load[..], &["--set", "profiles.quick.drain=10s"]].concat();
    let ended = plimsoll(&short("web-banking", "builtin:", &bundle, &flags));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = &result(&bundle)["points"][0];
    assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
    assert!(point["ops"]["login"]["count"].as_u64() >= Some(11), "{point}");
}

const MODEL: &str = r#"
[[data]]
name = "item"
file = "items.csv"
order = "each_request"
weight = "weight"

[[page]]
name = "item"
path = "/{{item.path}}"
serve.bytes = "{{item.bytes}}"
repeat = "5"

[[page]]
name = "gone"
path = "/old"
expect.status = [301]
serve.bytes = "178"
[[page.request]]
path = "/unchanged"
expect.status = [304]
repeat = "mean 0.5"
"#;

/// A suite and its journey in a folder of their own, as a derived model has them.
fn model(folder: &Path) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let items = "path,bytes,weight\na/b%20c.html,4100,3\nx?q=%7B1,100000,1\n";
    std::fs::write(folder.join("items.csv"), items).unwrap();
    std::fs::write(folder.join("journey.toml"), MODEL).unwrap();
    let suite = plimsoll(&["suites", "show", "web-users"]).out;
    let suite = suite.replace("[workload]", "[workload]\njourney_file = \"journey.toml\"");
    let path = folder.join("model.toml");
    std::fs::write(&path, suite).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_suite_finds_its_journey_beside_it_and_rows_have_their_sizes_and_statuses() {
    let temp_dir = tempfile::tempdir().unwrap();
    let suite = model(&temp_dir.path().join("shop"));
    let bundle = temp_dir.path().join("b");
    let span = ["--users", "2", "-n", "400", "--set", "profiles.quick.drain=5s"];
    let ended = plimsoll(&short(&suite, "builtin:", &bundle, &span));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&bundle);
    let point = &result["points"][0];
    assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
    let count = |page: &str| point["ops"][page]["count"].as_u64().unwrap();
    assert!(count("item") > 200 && count("gone") > 50, "{point}");
    // Three of four rows are the small one.
    let bytes = point["bytes_read"].as_u64().unwrap();
    let mean = (bytes - 178 * count("gone")) / count("item");
    assert!((20_000..40_000).contains(&mean), "{mean}");
    let server = Served::with("web", &["--journey", &suite.replace("model", "journey")]);
    for (path, status, length) in
        [("/a/b%20c.html", 200, Some(4_100)), ("/x?q=%7B1", 200, Some(100_000)), ("/x", 404, None)]
    {
        let (got, reply) = ask(server.address(), &format!("GET {path}"), "", "");
        let body = reply.split_once("\r\n\r\n").unwrap().1.len();
        assert_eq!((got, length.unwrap_or(body)), (status, body), "{path}");
    }
}
