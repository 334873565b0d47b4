use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::super::spec;
use super::*;

/// A host with folders of its own, reached by `env`, and a program that is a shell script.
struct Host {
    folder: tempfile::TempDir,
    spec: AgentSpec,
    parcel: Parcel,
}

fn host(program: &str) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own program");
    fs::write(&file, program).unwrap();
    let parcel = Parcel::read(&file, "1.2.3").unwrap();
    let cache = folder.path().join("ca che");
    let value = format!("exec:env 'XDG_CACHE_HOME={}'", cache.display());
    let nothing = |_: &Path| Err(io::Error::other("no file"));
    let spec = spec::parse(&[value], &nothing).unwrap().agents.remove(0);
    Host { folder, spec, parcel }
}

impl Host {
    fn deploy(&self) -> Result<Deployed, DeployError> {
        let patience = Patience { answer: Duration::from_secs(60), stop: &AtomicBool::new(false) };
        deploy(&self.spec, &self.parcel, patience)
    }

    /// Everything in the cache there.
    fn files(&self) -> Vec<PathBuf> {
        let Ok(folders) = fs::read_dir(self.folder.path().join("ca che/plimsoll")) else {
            return Vec::new();
        };
        let inside = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
        folders.flat_map(|folder| inside(folder.unwrap().path())).collect()
    }
}

const GOOD: &str = "#!/bin/sh\necho plimsoll 1.2.3\n";

#[test]
fn the_program_is_sent_once_and_runs() {
    let host = host(GOOD);
    let first = host.deploy().unwrap();
    assert!(first.was_sent);
    assert_eq!(fs::read_to_string(&first.program).unwrap(), GOOD);
    assert_eq!(fs::metadata(&first.program).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(host.files(), [PathBuf::from(&first.program)]);
    let again = host.deploy().unwrap();
    assert_eq!(again, Deployed { was_sent: false, ..first.clone() });
    fs::write(&first.program, "another").unwrap();
    assert_eq!(host.deploy().unwrap(), first);
}

#[test]
fn a_program_for_another_machine_is_not_sent() {
    let mut host = host(GOOD);
    host.parcel.machine = "vax".to_owned();
    let error = host.deploy().unwrap_err();
    assert!(matches!(error, DeployError::Machine { .. }), "{error}");
    assert!(error.to_string().contains("for Linux vax"), "{error}");
    assert!(host.files().is_empty());
}

#[test]
fn what_arrives_broken_is_not_kept() {
    let mut host = host(GOOD);
    host.parcel.sha256 = "0".repeat(64);
    let error = host.deploy().unwrap_err();
    assert!(matches!(&error, DeployError::Hash { actual, .. } if actual.len() == 64), "{error}");
    assert!(host.files().is_empty());
}

#[test]
fn a_program_that_does_not_run_is_told_with_its_words() {
    let host = host("#!/bin/sh\necho no such library\nexit 1\n");
    let error = host.deploy().unwrap_err();
    assert!(matches!(&error, DeployError::DoesNotRun { .. }), "{error}");
    assert!(error.to_string().contains("no such library"), "{error}");
}

#[test]
fn a_host_that_cannot_store_it_says_why() {
    let mut host = host(GOOD);
    fs::write(host.folder.path().join("ca che"), "a file").unwrap();
    let error = host.deploy().unwrap_err();
    assert!(matches!(&error, DeployError::Ended(_)), "{error}");
    assert!(error.to_string().contains("Not a directory"), "{error}");
    host.spec.launcher = exec("false");
    assert!(matches!(host.deploy(), Err(DeployError::Ended(_))));
    host.spec.launcher = exec("no-such-program");
    assert!(matches!(host.deploy(), Err(DeployError::Start(_))));
}

fn exec(command: &str) -> spec::Launcher {
    let nothing = |_: &Path| Err(io::Error::other("no file"));
    let mut requested = spec::parse(&[format!("exec:{command}")], &nothing).unwrap();
    requested.agents.remove(0).launcher
}

#[test]
fn a_host_that_offers_no_shell_is_told_apart() {
    let mut host = host(GOOD);
    host.spec.launcher = exec("env PATH=/nowhere");
    assert!(matches!(host.deploy(), Err(DeployError::NoShell)));
    host.spec.launcher = exec("printf PLMS");
    assert!(matches!(host.deploy(), Err(DeployError::Agent)));
    host.spec.launcher = exec("echo welcome");
    assert!(matches!(host.deploy(), Err(DeployError::Ended(_))));
}

#[test]
fn a_host_is_not_waited_for_without_end() {
    let mut host = host(GOOD);
    host.spec.launcher = exec("sh -c 'exec sleep 1000'");
    let patience = |answer, stop| Patience { answer: Duration::from_millis(answer), stop };
    let no = AtomicBool::new(false);
    let silent = deploy(&host.spec, &host.parcel, patience(200, &no));
    assert!(matches!(silent, Err(DeployError::Silent(_))));
    let stopped = deploy(&host.spec, &host.parcel, patience(60_000, &AtomicBool::new(true)));
    assert!(matches!(stopped, Err(DeployError::Stopped)));
}
