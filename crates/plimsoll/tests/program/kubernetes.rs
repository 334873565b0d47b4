//! The manifest of the agents' pods, decoded by Kubernetes' own types.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::plimsoll;
use plimsoll_testkit::skips::skip_always;
use serde_json::Value;

/// The version in the module's go.mod.
const GO_MINOR_MIN: u32 = 19;

/// The decoder, or `None` where Go cannot build it. The first build takes some 30 s of a processor;
/// Go keeps the compiled packages.
fn decoder(temp_dir: &Path) -> Option<PathBuf> {
    let go = require_peer("go")?;
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/kubernetes");
    let run = |arguments: &[&str]| {
        let mut go = Command::new(&go);
        go.args(arguments).current_dir(&module).env("GOFLAGS", "-mod=readonly");
        go.env("GOTOOLCHAIN", "local").env("GOWORK", "off").env("CGO_ENABLED", "0");
        go.output().unwrap()
    };
    let version = trimmed_text(&run(&["env", "GOVERSION"]).stdout);
    if minor_of(&version).is_some_and(|minor| minor < GO_MINOR_MIN) {
        skip_always(&format!("{version} is older than go1.{GO_MINOR_MIN}"));
        return None;
    }
    // Without a network, and never fetched before.
    let fetched = run(&["mod", "download"]);
    if !fetched.status.success() {
        skip_always(&format!(
            "Go cannot fetch Kubernetes' types: {}",
            trimmed_text(&fetched.stderr)
        ));
        return None;
    }
    let decoder = temp_dir.join("decoder");
    let built = run(&["build", "-o", decoder.to_str().unwrap(), "."]);
    assert!(built.status.success(), "{}", trimmed_text(&built.stderr));
    Some(decoder)
}

fn trimmed_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// `go1.19.8` is 19.
fn minor_of(version: &str) -> Option<u32> {
    let minor = version.strip_prefix("go1.")?.split('.').next()?;
    minor.parse().ok()
}

fn decode(decoder: &Path, manifest: &str) -> Output {
    let mut command = Command::new(decoder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn kubernetes_decodes_the_manifest_and_knows_every_field_of_it() {
    let temp_dir = tempfile::tempdir().unwrap();
    let Some(decoder) = decoder(temp_dir.path()) else { return };
    let flags = ["--replicas", "3", "--image", "registry.example/plimsoll:1", "--namespace", "n"];
    let printed = plimsoll(&[&["agents", "manifest"], &flags[..]].concat());
    printed.check(0, &[]);
    let decoded = decode(&decoder, &printed.out);
    assert!(decoded.status.success(), "{}\n{}", trimmed_text(&decoded.stderr), printed.out);
    let job: Value = serde_json::from_slice(&decoded.stdout).unwrap();
    for (path, value) in [
        ("/metadata/namespace", Value::from("n")),
        ("/spec/completionMode", "Indexed".into()),
        ("/spec/completions", 3.into()),
        ("/spec/parallelism", 3.into()),
        ("/spec/template/spec/containers/0/image", "registry.example/plimsoll:1".into()),
    ] {
        assert_eq!(job.pointer(path), Some(&value), "{path} of {job}");
    }
    for (field, wrong, reason) in [
        ("completionMode:", "completionmode:", "unknown field \"spec.completionmode\""),
        ("parallelism: 3", "completions: 3", "\"completions\" already set"),
        ("completions: 3", "completions: three", "of type int32"),
    ] {
        let refused = decode(&decoder, &printed.out.replacen(field, wrong, 1));
        let why = trimmed_text(&refused.stderr);
        assert!(!refused.status.success() && why.contains(reason), "{wrong}: {why}");
    }
}
