//! Signed bundles, checked by the program minisign.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use minisign::KeyPair;
use plimsoll_testkit::peers::require_peer;

use crate::listening::Listening;
use plimsoll_testkit::program::{command, plimsoll, short, wait_for};

const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "manifest.json.minisig";

fn bundle(temp_dir: &Path) -> PathBuf {
    let bundle = temp_dir.join("b");
    let server = Listening::start();
    let ended = plimsoll(&short("web-url", &server.url, &bundle, &["--rate", "100"]));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    bundle
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// minisign with these arguments; whether it succeeded, and its output.
fn minisign(program: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn minisign_checks_our_signatures_and_we_check_its() {
    let Some(program) = require_peer("minisign") else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = bundle(temp_dir.path());
    let (public, secret) = (temp_dir.path().join("k.pub"), temp_dir.path().join("k.key"));
    let (public, secret) = (path(&public), path(&secret));
    let made = minisign(&program, &["-G", "-W", "-p", public, "-s", secret]);
    assert!(made.0, "{}", made.1);
    let dir = path(&bundle);
    plimsoll(&["verify", dir, "--key", public]).check(1, &["is not signed"]);

    let signed = plimsoll(&["verify", dir, "--sign", secret]);
    let code = signed.code.unwrap();
    signed.check(code, &["Every file is as the run left it.", SIGNATURE, "--key RW"]);
    let (manifest, signature) = (bundle.join(MANIFEST), bundle.join(SIGNATURE));
    let checks = ["-V", "-p", public, "-m", path(&manifest), "-x", path(&signature)];
    let verified = minisign(&program, &checks);
    assert!(verified.0, "{}", verified.1);
    plimsoll(&["verify", dir, "--key", public]).check(code, &["the signature is good"]);
    plimsoll(&["verify", dir]).check(code, &["was not checked"]);

    std::fs::remove_file(&signature).unwrap();
    let theirs = minisign(&program, &["-S", "-s", secret, "-m", path(&manifest)]);
    assert!(theirs.0, "{}", theirs.1);
    plimsoll(&["verify", dir, "--key", public]).check(code, &["the signature is good"]);

    let text = std::fs::read_to_string(&manifest).unwrap();
    let forged = text.replacen('0', "1", 1);
    std::fs::write(&manifest, forged).unwrap();
    plimsoll(&["verify", dir, "--key", public]).check(1, &["is not this key's signature"]);
    assert!(!minisign(&program, &checks).0);
}

#[test]
fn a_key_with_a_password_and_what_is_no_key_are_told_apart() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = bundle(temp_dir.path());
    let dir = path(&bundle);
    let KeyPair { pk, sk } = KeyPair::generate_encrypted_keypair(Some("s3cret".into())).unwrap();
    let key = temp_dir.path().join("minisign.key");
    std::fs::write(&key, sk.to_box(None).unwrap().into_string()).unwrap();
    let sign = |password: &str| {
        let child = command(&["verify", dir, "--sign", path(&key)])
            .env("PLIMSOLL_MINISIGN_PASSWORD", password)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        wait_for(child.unwrap())
    };
    sign("wrong").check(2, &["--sign", "PLIMSOLL_MINISIGN_PASSWORD", "its own?"]);
    let signed = sign("s3cret");
    signed.check(signed.code.unwrap(), &[SIGNATURE]);
    let code = signed.code.unwrap();
    plimsoll(&["verify", dir, "--key", &pk.to_base64()]).check(code, &["the signature is good"]);
    let other = KeyPair::generate_unencrypted_keypair().unwrap().pk.to_base64();
    plimsoll(&["verify", dir, "--key", &other]).check(1, &["is not this key's signature"]);

    plimsoll(&["verify", dir, "--key", path(&key)]).check(2, &["--key", "no public key"]);
    plimsoll(&["verify", dir, "--key", "/nowhere"]).check(2, &["--key /nowhere", "minisign -G"]);
    plimsoll(&["verify", dir, "--sign", "/nowhere"]).check(2, &["--sign /nowhere"]);

    // A changed bundle is not signed.
    std::fs::remove_file(bundle.join(SIGNATURE)).unwrap();
    std::fs::write(bundle.join("suite.toml"), "").unwrap();
    let refused = sign("s3cret");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!bundle.join(SIGNATURE).exists());
}
