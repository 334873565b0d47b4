//! `cargo lab embednfsd`: a server of NFSv4.1 that nobody here wrote, and which no distribution
//! ships, is measured by both suites of that version.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use xtask::command;
use xtask::verb::Result;

use crate::process::{self, Running, now};
use crate::program;

/// Release of the crate that docs/nfs-server.md names.
const RELEASE: &str = "0.4.1";
/// It listens nowhere else.
const PORT: u16 = 2049;
const SUITES: [&str; 2] = ["nfs-v4.1", "nfs-v4.1-open"];
/// How long the server may take to start …
const START_MAX: Duration = Duration::from_secs(10);
/// … and a suite to end.
const SUITE_MAX: Duration = Duration::from_secs(300);

/// Installs the server if it is missing, and prints what each suite measures. An error where a run
/// is not valid, has fewer than ten points, or met an error or a nonconformity.
pub fn embednfsd() -> Result<()> {
    let plimsoll = program::plimsoll()?;
    let server = command::installed("embednfsd", &["--version", RELEASE])?;
    TcpListener::bind(("127.0.0.1", PORT))
        .map_err(|e| format!("embednfsd listens on port {PORT} alone: {e}; end what has it"))?;
    let mut faults = Vec::new();
    for suite in SUITES {
        let _server = start(Command::new(&server))?;
        let folder = program::temporary()?;
        let bundle = folder.path().join("run");
        let mut run = Command::new(&plimsoll);
        run.args(["run", suite, &format!("nfs://127.0.0.1:{PORT}/"), "--profile", "quick"]);
        run.args(["--peak", "auto", "--progress", "none", "--out"]).arg(&bundle);
        let finished = process::run(&mut run, SUITE_MAX, |_, _| {})?;
        println!("{}", finished.output);
        let result = program::result(&bundle, &finished)?;
        faults.extend(faults_of(&result).into_iter().map(|fault| format!("{suite}: {fault}")));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn start(mut server: Command) -> Result<Running> {
    let child = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Running(child.map_err(|e| format!("embednfsd: {e}"))?);
    let begin = now();
    while TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], PORT))).is_err() {
        if begin.elapsed() > START_MAX {
            return Err(format!("embednfsd did not listen on port {PORT}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

/// What is wrong with a run of ten points.
fn faults_of(result: &Value) -> Vec<String> {
    let points = result["points"].as_array().map_or(&[][..], Vec::as_slice);
    let mut faults = Vec::new();
    if result["verdict"]["valid"] != true {
        faults.push(format!("the run is not valid: {}", result["verdict"]));
    }
    if points.len() != 10 {
        faults.push(format!("{} points", points.len()));
    }
    let with_errors =
        points.iter().filter(|it| it["errors"].as_object().is_some_and(|e| !e.is_empty()));
    faults.extend(with_errors.map(|point| format!("errors: {}", point["errors"])));
    if result["nonconformities"].as_array().is_some_and(|it| !it.is_empty()) {
        faults.push(format!("nonconformities: {}", result["nonconformities"]));
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_right_with_ten_points_no_error_and_no_nonconformity() {
        let right =
            json!({ "verdict": { "valid": true }, "points": vec![json!({ "errors": {} }); 10] });
        assert!(faults_of(&right).is_empty());
        let wrong = json!({
            "verdict": { "valid": false }, "points": [{ "errors": { "status": 3 } }],
            "nonconformities": [{ "what": "a short reply" }],
        });
        assert_eq!(faults_of(&wrong).len(), 4, "{:?}", faults_of(&wrong));
    }
}
