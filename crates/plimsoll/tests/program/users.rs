//! Users who log in, follow what replies gave them, and leave.

use std::path::Path;

use plimsoll_testkit::program::{Ended, plimsoll, result, short};
use plimsoll_testkit::shop::Shop;
use serde_json::Value;

use crate::secrets::check_nowhere;

const PAGES: &str = r#"
[[page]]
name = "form"
path = "/login"
take.csrf = { field = "csrf" }

[[page]]
name = "login"
path = "/login"
body = "name={{user.name}}&password={{urlencode user.password}}&csrf={{urlencode csrf}}"
take.token = { json = "/token" }
take.sid = { cookie = "sid" }
think = "constant 1ms"

[[page]]
name = "orders"
path = "/orders"
headers.Authorization = "Bearer {{token}}"
headers.X-Session = "{{sid}}"
expect.content = "your orders"
repeat = "2"

[[page]]
name = "logout"
method = "POST"
path = "/logout"
"#;

/// Writes a journey with rows in this order; its path.
fn journey(folder: &Path, order: &str, users: u32) -> String {
    let rows: String = (0..users).map(|user| format!("user{user},pw of user{user}\n")).collect();
    std::fs::write(folder.join("users.csv"), format!("name,password\n{rows}")).unwrap();
    let data = format!("[[data]]\nname = \"user\"\nfile = \"users.csv\"\norder = \"{order}\"\n");
    let path = folder.join("shop.toml");
    std::fs::write(&path, format!("{data}{PAGES}")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn run(shop: &Shop, folder: &Path, journey: &str, more: &[&str]) -> (Ended, Value) {
    let (bundle, url) = (folder.join("b"), shop.url());
    let flags = [&["--journey", journey, "--set", "profiles.quick.drain=5s"], more].concat();
    let ended = plimsoll(&short("web-users", &url, &bundle, &flags));
    let result = if bundle.join("result.json").exists() { result(&bundle) } else { Value::Null };
    (ended, result)
}

#[test]
fn the_server_sees_what_the_report_counts() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let journey = journey(temp_dir.path(), "in_turn", 50);
    // Without a warm-up all requests are in the window.
    let (ended, result) = run(&shop, temp_dir.path(), &journey, &["--users", "2", "-n", "160"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = &result["points"][0];
    assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    let counted = |page: &str| point["ops"][page]["count"].as_u64().unwrap();
    let log = shop.log();
    let logged = |line: &str, status| log.get(&(line.to_owned(), status)).copied().unwrap_or(0);
    assert_eq!(counted("form"), logged("GET /login", 200));
    // A login is its own reply and the page that it leads to.
    assert_eq!(counted("login"), logged("POST /login", 302) + logged("GET /account", 200));
    assert_eq!(counted("orders"), logged("GET /orders", 200));
    assert_eq!(counted("logout"), logged("POST /logout", 302) + logged("GET /bye", 200));
    assert_eq!(log.values().sum::<u64>(), 160, "{log:?}");
    let journeys = &point["journeys"];
    let begun = journeys["begun"].as_u64().unwrap();
    assert_eq!((begun, journeys["failed"].as_u64()), (counted("form"), Some(0)), "{journeys}");
    assert!(journeys["completed"].as_u64().unwrap() + 2 >= begun, "{journeys}");
    assert!(point["ops"]["login"]["page_ns"]["p50"].as_u64() > Some(0), "{point}");
    // Each session has the next row, and a connection of its own.
    let mut logins = shop.logins();
    let all = logins.len();
    logins.sort();
    logins.dedup();
    assert_eq!((logins.len(), shop.connections()), (all, begun));
    for secret in ["pw of user", "csrf-1", "token-1", "sid-1"] {
        check_nowhere(&temp_dir.path().join("b"), secret);
    }
}

#[test]
fn agents_share_the_rows() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let journey = journey(temp_dir.path(), "each_once", 400);
    let flags = ["--users", "4", "--agents", "local,local"];
    let (ended, result) = run(&shop, temp_dir.path(), &journey, &flags);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert_eq!(result["points"][0]["errors"], serde_json::json!({}), "{ended:?}");
    let mut logins = shop.logins();
    let all = logins.len();
    logins.sort();
    logins.dedup();
    assert!(all > 4 && logins.len() == all, "{} of {all}", logins.len());
}

#[test]
fn rows_that_run_out_end_the_users_and_the_load_point_does_not_count() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let journey = journey(temp_dir.path(), "each_once", 3);
    let (ended, result) = run(&shop, temp_dir.path(), &journey, &["--users", "2"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(shop.logins().len(), 3);
    let samples = result["points"][0]["error_samples"].to_string();
    assert!(samples.contains("has no row left for a further session"), "{result}");
    let (ended, _) = run(&shop, &temp_dir.path().join("c"), &journey, &["--users", "4"]);
    ended.check(2, &["has 3 rows, each for one session, and there are 4 users"]);
}

#[test]
fn a_token_that_expires_and_a_value_that_is_missing_are_told_apart() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let path = journey(temp_dir.path(), "in_turn", 9);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("constant 1ms", "constant 150ms")).unwrap();
    let expiring = std::thread::scope(|scope| {
        let expiring = scope.spawn(|| run(&shop, temp_dir.path(), &path, &["--users", "3"]));
        while !expiring.is_finished() {
            shop.expire_tokens();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        expiring.join().unwrap()
    });
    let errors = &expiring.1["points"][0]["errors"];
    assert!(errors["status:401"].as_u64() > Some(0), "{}", expiring.1);
    assert!(expiring.1["points"][0]["journeys"]["failed"].as_u64() > Some(0), "{errors}");
    let missing =
        text.replace("name = \"login\"\npath", "name = \"login\"\nexpect.status = [302]\npath");
    std::fs::write(&path, missing).unwrap();
    let folder = temp_dir.path().join("c");
    std::fs::create_dir(&folder).unwrap();
    let (_, result) = run(&shop, &folder, &path, &["--users", "1"]);
    let samples = result["points"][0]["error_samples"].to_string();
    assert!(samples.contains("no JSON value \\\"/token\\\" in it"), "{result}");
}

#[test]
fn users_who_wait_too_long_give_up() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let path = temp_dir.path().join("j.toml");
    let page = "[[page]]\nname = \"slow\"\npath = \"/slow\"\nabandon_after = \"60ms\"\n";
    std::fs::write(&path, page).unwrap();
    let (_, result) = run(&shop, temp_dir.path(), path.to_str().unwrap(), &["--users", "2"]);
    let point = &result["points"][0];
    assert!(point["errors"]["abandoned"].as_u64() > Some(0), "{point}");
    assert!(point["journeys"]["abandoned"].as_u64() > Some(0), "{point}");
    assert_eq!(point["journeys"]["failed"], 0, "{point}");
}

#[test]
fn mistakes_end_with_2_before_any_request() {
    let (shop, temp_dir) = (Shop::start(), tempfile::tempdir().unwrap());
    let path = journey(temp_dir.path(), "in_turn", 9);
    let text = std::fs::read_to_string(&path).unwrap();
    let refused = |text: &str, more: &[&str], parts: &[&str]| {
        std::fs::write(&path, text).unwrap();
        run(&shop, &temp_dir.path().join("no"), &path, more).0.check(2, parts);
    };
    let unused = text.replace("take.csrf = { field = \"csrf\" }\n", "");
    refused(
        &unused,
        &[],
        &["shop.toml:", "uses {{csrf}} before it is taken", "take.csrf must come"],
    );
    refused(&text, &["--rate", "10"], &["--rate belongs to suite web-url", "--users N"]);
    refused(&text, &["--think", "1s"], &["--think belongs to suite web-url"]);
    refused(&text, &["--http", "2", "--streams", "4"], &["`workload.streams` does not go"]);
    let out = temp_dir.path().join("no");
    let without = plimsoll(&short("web-users", &shop.url(), &out, &[]));
    without.check(2, &["users need a journey: write --journey FILE"]);
    let url = shop.url();
    let other = short("web-url", &url, temp_dir.path(), &["--journey", &path]);
    plimsoll(&other).check(2, &["--journey belongs to suite web-users"]);
    assert!(shop.log().is_empty());
}
