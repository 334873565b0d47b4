//! Manual pages and completions, judged by the programs that read them.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::peers::require_peer;

use plimsoll_testkit::program::plimsoll;

#[test]
fn every_verb_has_a_manual_page_that_man_takes() {
    let place = tempfile::tempdir().unwrap();
    plimsoll(&["generate", "man", "--output", place.path().to_str().unwrap()]).check(0, &[]);
    let pages: Vec<_> = place.path().read_dir().unwrap().map(|page| page.unwrap().path()).collect();
    for name in ["plimsoll.1", "plimsoll-run.1", "plimsoll-serve-web.1"] {
        assert!(pages.contains(&place.path().join(name)), "{name} is not among {pages:?}");
    }
    let run = plimsoll(&["generate", "man"]);
    run.check(0, &[".TH plimsoll", "Exit codes"]);
    let Some(man) = require_peer("man") else { return };
    for page in &pages {
        let read = Command::new(&man).args(["--warnings", "-l"]).arg(page).output().unwrap();
        let told = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && told.is_empty(), "{}: {told}", page.display());
    }
}

/// What a shell answers to a script that ends by asking for completions.
fn asked(shell: &str, script: &str) -> Option<String> {
    let shell = require_peer(shell)?;
    let told = Command::new(shell).args(["-c", script]).output().unwrap();
    assert!(told.stderr.is_empty(), "{}", String::from_utf8_lossy(&told.stderr));
    Some(String::from_utf8_lossy(&told.stdout).into_owned())
}

fn completions(shell: &str, place: &Path) -> String {
    let dir = place.to_str().unwrap();
    plimsoll(&["generate", "completions", shell, "--output", dir]).check(0, &[]);
    let file = place.read_dir().unwrap().next().unwrap().unwrap().path();
    file.to_str().unwrap().to_owned()
}

#[test]
fn bash_completes_verbs() {
    let place = tempfile::tempdir().unwrap();
    let file = completions("bash", place.path());
    let script = format!(
        "source {file}; COMP_WORDS=(plimsoll ca); COMP_CWORD=1; _plimsoll plimsoll ca plimsoll; \
         echo \"${{COMPREPLY[*]}}\""
    );
    let Some(told) = asked("bash", &script) else { return };
    assert_eq!(told.trim(), "capacity calibrate");
}

#[test]
fn zsh_and_fish_load_theirs() {
    let place = tempfile::tempdir().unwrap();
    let file = completions("zsh", place.path());
    let script = format!("autoload -U compinit; compinit -D -u; source {file}; whence _plimsoll");
    if let Some(told) = asked("zsh", &script) {
        assert_eq!(told.trim(), "_plimsoll");
    }
    let place = tempfile::tempdir().unwrap();
    let file = completions("fish", place.path());
    if let Some(told) = asked("fish", &format!("source {file}; complete -C 'plimsoll ca'")) {
        assert!(told.contains("capacity") && told.contains("calibrate"), "{told}");
    }
}
