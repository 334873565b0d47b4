//! Manual pages and completions, checked by the programs that read them.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::peers::require_peer;

use plimsoll_testkit::program::plimsoll;

#[test]
fn every_verb_has_a_manual_page_that_man_takes() {
    let temp_dir = tempfile::tempdir().unwrap();
    plimsoll(&["generate", "man", "--output", temp_dir.path().to_str().unwrap()]).check(0, &[]);
    let pages: Vec<_> =
        temp_dir.path().read_dir().unwrap().map(|page| page.unwrap().path()).collect();
    for name in ["plimsoll.1", "plimsoll-run.1", "plimsoll-serve-web.1"] {
        assert!(pages.contains(&temp_dir.path().join(name)), "{name} is not among {pages:?}");
    }
    let run = plimsoll(&["generate", "man"]);
    run.check(0, &[".TH plimsoll", "Exit codes"]);
    let Some(man) = require_peer("man") else { return };
    for page in &pages {
        let read = Command::new(&man).args(["--warnings", "-l"]).arg(page).output().unwrap();
        let warnings = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && warnings.is_empty(), "{}: {warnings}", page.display());
    }
}

/// A shell's answer to a script that ends by asking for completions.
fn shell_output(shell: &str, script: &str) -> Option<String> {
    let shell = require_peer(shell)?;
    let output = Command::new(shell).args(["-c", script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn completions(shell: &str, folder: &Path) -> String {
    let dir = folder.to_str().unwrap();
    plimsoll(&["generate", "completions", shell, "--output", dir]).check(0, &[]);
    let file = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    file.to_str().unwrap().to_owned()
}

#[test]
fn bash_completes_verbs() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = completions("bash", temp_dir.path());
    let script = format!(
        "source {file}; COMP_WORDS=(plimsoll ca); COMP_CWORD=1; _plimsoll plimsoll ca plimsoll; \
         echo \"${{COMPREPLY[*]}}\""
    );
    let Some(output) = shell_output("bash", &script) else { return };
    assert_eq!(output.trim(), "capacity calibrate");
}

#[test]
fn zsh_and_fish_load_theirs() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = completions("zsh", temp_dir.path());
    let script = format!("autoload -U compinit; compinit -D -u; source {file}; whence _plimsoll");
    if let Some(output) = shell_output("zsh", &script) {
        assert_eq!(output.trim(), "_plimsoll");
    }
    let temp_dir = tempfile::tempdir().unwrap();
    let file = completions("fish", temp_dir.path());
    if let Some(output) = shell_output("fish", &format!("source {file}; complete -C 'plimsoll ca'"))
    {
        assert!(output.contains("capacity") && output.contains("calibrate"), "{output}");
    }
}
