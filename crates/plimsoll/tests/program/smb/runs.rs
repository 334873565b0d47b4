//! Runs with a password, and their outcomes.

use std::path::Path;
use std::process::Command;

use plimsoll_servers::Login;
use serde_json::Value;

use plimsoll_testkit::program::{Ended, command, short};
use plimsoll_testkit::shared_files::PASSWORD_VARIABLE;

/// The binary with these arguments, and the password of `login` where the program reads it.
pub fn command_of(login: &Login, arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.env(PASSWORD_VARIABLE, &login.password);
    command
}

/// Arguments of a run with short points that wait for every reply, however busy the machine.
pub fn brief<'a>(suite: &'a str, target: &'a str, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let warm_up = ["--set", "profiles.quick.warm_up=400ms"];
    let window = ["--set", "profiles.quick.measure=800ms", "--set", "profiles.quick.drain=20s"];
    short(suite, target, out, &[&warm_up[..], &window, more].concat())
}

/// It ended, valid or not: a busy machine breaks rules about time.
#[track_caller]
pub fn check_ended(ended: &Ended) {
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
}

/// Every client took part, and every operation ended as expected.
#[track_caller]
pub fn check_as_expected(point: &Value) {
    assert_eq!(point["errors"], serde_json::json!({}), "{}", gist(point));
    assert_eq!(point["unexpected"], serde_json::json!([]), "{}", gist(point));
    assert_eq!(point["clients_requested"], point["clients_participating"], "{}", gist(point));
}

/// What went wrong in a point, for the message of a test.
pub fn gist(point: &Value) -> String {
    let keys = ["clients_participating", "errors", "unexpected", "error_samples", "reasons"];
    let lines: Vec<String> = keys.iter().map(|key| format!("{key}: {}", point[key])).collect();
    lines.join("\n")
}

/// Operations of these points in all. A short point of one client may have none where other
/// programs take the processors for seconds.
pub fn ops_done(points: &[Value]) -> u64 {
    let of = |point: &Value| -> u64 {
        let ops = point["ops"].as_object().unwrap();
        ops.values().map(|op| op["count"].as_u64().unwrap()).sum()
    };
    points.iter().map(of).sum()
}

/// Reasons of a point, each with its rule.
pub fn reasons(point: &Value) -> Vec<(String, String)> {
    findings(&point["reasons"])
}

/// Warnings of a point, each with its rule.
pub fn warnings(point: &Value) -> Vec<(String, String)> {
    findings(&point["warnings"])
}

fn findings(list: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let of = |finding| (text(finding, "rule"), text(finding, "text"));
    list.as_array().unwrap().iter().map(of).collect()
}
