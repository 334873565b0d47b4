//! Facts about hosts in a run: inventories, statements, servers that the program did not start.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::peers;
use serde_json::{Value, json};

use crate::listening::Listening;
use plimsoll_testkit::program::{plimsoll, result, short};

fn disclosure(bundle: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(bundle.join("disclosure.json")).unwrap()).unwrap()
}

fn written(temp_dir: &Path, name: &str, text: &str) -> String {
    let file = temp_dir.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The output of `plimsoll inventory --json` here, as if it were of another host.
fn inventory() -> Value {
    let ended = plimsoll(&["inventory", "--json"]);
    ended.check(0, &[]);
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn the_inventory_tells_kernel_settings_beside_their_defaults() {
    let printed = inventory();
    assert_eq!((&printed["kind"], &printed["format"]), (&json!("plimsoll inventory"), &json!(1)));
    let host = &printed["host"];
    let evaluated = host["kernel_settings_judged"].as_u64().unwrap();
    assert!(evaluated >= 40, "{evaluated}");
    for setting in host["kernel_settings"].as_array().unwrap() {
        assert_ne!(setting["value"], setting["default"], "{setting}");
        assert!(!setting["meaning"].as_str().unwrap().is_empty(), "{setting}");
        assert_ne!(setting["default"].is_null(), setting["depends_on"].is_null(), "{setting}");
    }
    assert!(host["name"].is_string() && host["kernel"].is_string(), "{host}");
    let text = plimsoll(&["inventory"]);
    text.check(0, &["kernel settings: ", "differ from the kernel's defaults", "clocks:"]);
}

#[test]
fn inventories_and_statements_go_into_disclosure_and_report() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut other = inventory();
    other["host"]["name"] = json!("server-under-test");
    other["made"] = json!("2026-01-02T03:04:05Z");
    let server = written(temp_dir.path(), "server.json", &other.to_string());
    let system = written(
        temp_dir.path(),
        "what we know",
        "tester = \"Ada\"\nprice = \"EUR 12345.00\"\n[[system]]\nname = \"server\"\n\
         hardware_available = \"2026-11\"\nnotes = [\"borrowed\"]\n",
    );
    let listening = Listening::start();
    let bundle = temp_dir.path().join("b");
    let more = ["--rate", "100", "--system", &server, "--system", &system];
    let ended = plimsoll(&short("web-url", &listening.url, &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let disclosed = disclosure(&bundle);
    let given = &disclosed["systems"][0];
    assert_eq!(given["inventory"]["host"]["name"], "server-under-test");
    assert!(given["age_s"].as_u64().unwrap() > 86_400, "{}", given["age_s"]);
    assert_eq!(disclosed["stated"]["tester"], "Ada");
    assert_eq!(disclosed["topology"].as_array().unwrap().len(), 2);
    let open = disclosed["not_verified"].to_string();
    assert!(open.contains("no target lies on one of its addresses"), "{open}");
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    for part in ["server-under-test", "before the run", "not stated", "Ada", "2026-11", "borrowed"]
    {
        assert!(report.contains(part), "{part}");
    }
    assert_eq!(result(&bundle)["disclosure"], disclosed);
}

#[test]
fn a_wrong_file_is_refused_before_anything_is_started() {
    let temp_dir = tempfile::tempdir().unwrap();
    let whole = inventory();
    let with = |name: &str, value: Value| {
        let mut other = whole.clone();
        other[name] = value;
        other.to_string()
    };
    let price = "price = \"12345\"\n";
    let date = "[[system]]\nname = \"s\"\nhardware_available = \"soon\"\n";
    for (text, part) in [
        (whole.to_string()[..200].to_owned(), "is not JSON"),
        ("{}".to_owned(), "no inventory of a host"),
        (with("kind", json!("something else")), "no inventory of a host"),
        (with("format", json!(2)), "format 2, this program reads 1"),
        (with("made", json!("yesterday")), "at which it was made"),
        (with("more", json!(1)), "unknown field `more`"),
        ("sponser = \"x\"\n".to_owned(), "unknown field `sponser`"),
        (price.to_owned(), "is no price"),
        ("price_file = \"prices.toml\"\n".to_owned(), "is not there"),
        (date.to_owned(), "is no date of availability"),
        ("[[system]]\nrole = \"server\"\n".to_owned(), "has no name"),
    ] {
        let file = written(temp_dir.path(), "file", &text);
        let bundle = temp_dir.path().join("b");
        let run = short("web-url", "http://127.0.0.1:1/", &bundle, &["--system", &file]);
        plimsoll(&run).check(2, &["--system", part]);
        assert!(!bundle.exists());
    }
    let bundle = temp_dir.path().join("b");
    let twice = written(temp_dir.path(), "one.json", &whole.to_string());
    for (files, part) in [
        (["/nowhere", "/nowhere"], "cannot read it"),
        ([twice.as_str(), twice.as_str()], "the same host"),
    ] {
        let more = ["--system", files[0], "--system", files[1]];
        plimsoll(&short("web-url", "builtin:", &bundle, &more)).check(2, &["--system", part]);
    }
}

#[test]
fn a_server_that_somebody_else_started_tells_version_command_line_and_configuration_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    std::fs::write(temp_dir.path().join("index.html"), "hello").unwrap();
    let Some(nginx) = peers::nginx(temp_dir.path(), &[]) else { return };
    let printed = inventory();
    let servers = printed["servers"].as_array().unwrap();
    let address = nginx.address.to_string();
    let listens = |server: &&Value| server["listens"].to_string().contains(&address);
    let entry = servers.iter().find(listens).unwrap();
    assert!(entry["version"].as_str().unwrap().contains("nginx/"), "{entry}");
    assert!(entry["command_line"].as_str().unwrap().contains("nginx"), "{entry}");
    let file = &entry["configuration_file"];
    let path = file["path"].as_str().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().contains("listen 127.0.0.1"), "{entry}");
    assert_eq!(file["sha256"].as_str().unwrap().len(), 64, "{entry}");
    assert!(entry["configuration"].is_null(), "{entry}");

    let bundle = temp_dir.path().join("b");
    let url = format!("http://{address}/index.html");
    let ended = plimsoll(&short("web-url", &url, &bundle, &["--rate", "100", "--no-check"]));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let target = &disclosure(&bundle)["targets"][0];
    assert!(target["software"].as_str().unwrap().contains("nginx"), "{target}");
    let facts = target["facts"].to_string();
    assert!(facts.contains("command line") && facts.contains("/nginx"), "{facts}");
    assert_eq!(&target["configuration_file"], file);
    assert!(target["configuration"].is_null(), "{target}");
}

/// Listens, and ends with its standard input; its arguments are for tests that read them.
const LISTENER: &str = "import socket, sys\n\
    s = socket.create_server(('127.0.0.1', 0))\n\
    print(s.getsockname()[1], flush=True)\n\
    sys.stdin.read()\n";

#[test]
fn secrets_on_a_servers_command_line_are_in_no_inventory() {
    let Some(python) = peers::require_peer("python3") else { return };
    let mut child = Command::new(python)
        .args(["-c", LISTENER, "--db-password=s3cret-a", "--token", "s3cret-b"])
        .args(["postgres://u:s3cret-c@db/x", "--port", "5432"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let json = plimsoll(&["inventory", "--json"]).out;
    let text = plimsoll(&["inventory"]).out;
    drop(child.stdin.take());
    child.wait().unwrap();
    let address = format!("127.0.0.1:{}", port.trim());
    for output in [json, text] {
        assert!(output.contains(&address), "{output}");
        assert!(output.contains("--db-password=(left out) --token (left out)"), "{output}");
        assert!(output.contains("--port 5432") && !output.contains("s3cret"), "{output}");
    }
}
