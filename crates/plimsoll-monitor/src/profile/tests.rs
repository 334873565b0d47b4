use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A substitute for perf, and a source that runs a shell of this host which finds it.
fn profiler(dir: &Path, perf: &str) -> Profiler {
    let program = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    program("perf", perf);
    let ssh = format!("PATH={}:$PATH TMPDIR={} exec sh", dir.display(), dir.display());
    let options = SourceOptions { ssh: program("ssh", &ssh), ..SourceOptions::default() };
    Profiler::there(&MonitorUrl::parse("ssh://db").unwrap(), &options).unwrap()
}

const SAMPLES: &str = "[ $1 = record ] && exit\n\
    printf 'nginx 8/8 cycles:\\n\\tff main (/usr/sbin/nginx)\\n\\n'";

#[test]
fn another_host_is_profiled_as_a_whole_and_nothing_is_left_there() {
    let temp_dir = TempDir::new().unwrap();
    let profiler = profiler(temp_dir.path(), SAMPLES);
    assert_eq!((profiler.source(), profiler.scope()), (Some("ssh://db"), ProfileScope::Host));
    profiler.check().unwrap();
    let folded = profiler.record(1).unwrap();
    assert_eq!((folded.stacks.as_str(), folded.event.as_str()), ("nginx;main 1\n", "cycles"));
    let left = std::fs::read_dir(temp_dir.path()).unwrap().count();
    assert_eq!(left, 2, "the two programs of this test");
}

#[test]
fn a_perf_that_may_not_is_told_in_its_own_words_with_what_to_do() {
    let temp_dir = TempDir::new().unwrap();
    let script = "echo 'Error:\nAccess to performance monitoring is limited.' >&2; exit 255";
    let message = profiler(temp_dir.path(), script).check().unwrap_err().to_string();
    for part in ["ssh://db: Access to performance", "limited; ", "perf_event_paranoid=-1"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_host_without_perf_or_without_a_shell_is_refused() {
    let temp_dir = TempDir::new().unwrap();
    let of = |text: &str| {
        let profiler = profiler(temp_dir.path(), "");
        std::fs::write(temp_dir.path().join("ssh"), format!("#!/bin/sh\n{text}\n")).unwrap();
        profiler.check().unwrap_err()
    };
    // A shell that finds no program.
    let absent = of("sed 's/^PATH=.*/PATH=/' | exec /bin/sh");
    assert_eq!(absent, ProfileError::Absent { host: "ssh://db".to_owned() });
    let refused = of("echo 'Permission denied (publickey).' >&2; exit 255").to_string();
    assert!(refused.contains("ssh://db: Permission denied (publickey); "), "{refused}");
    assert!(of("head -c 100000 /dev/urandom").to_string().contains("ssh://db"));
}

#[test]
fn processes_of_this_host_are_sampled_with_their_children() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let profiler = Profiler::here(&[std::process::id()]);
    let has_child = profiler.pids.contains(&child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(has_child && profiler.scope() == ProfileScope::Processes);
    assert_eq!(Profiler::here(&[]).scope(), ProfileScope::Host);
}
