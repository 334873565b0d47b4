//! What the end of a launcher means, and what to do about it.

use std::os::unix::process::ExitStatusExt as _;

use super::child::End;
use super::spec::Launcher;

/// Messages of a launcher, and what they mean.
type Meanings = &'static [(&'static str, &'static str)];

const PROGRAM_MISSING: &str = "the program is not there: install it, name its path (`program` in a file \
                         of --agents), or let --deploy send this one";
const NOT_SHARED: &str = "--deploy has sent the program, and this node does not have it: the \
                          nodes share no home directory. Install it, or name a directory that \
                          they share in XDG_CACHE_HOME";

const SSH: Meanings = &[
    (
        "Permission denied",
        "this user is not let in without a password: make a key, with ssh-copy-id; `ssh -o \
         BatchMode=yes` to this host must work",
    ),
    (
        "Host key verification failed",
        "the host's key is unknown or has changed: log on once by hand and compare it",
    ),
    ("Could not resolve hostname", "the host's name is unknown here: look for a wrong letter"),
    ("Connection refused", "no sshd listens there: start it, or name its port"),
    ("Connection timed out", "the host does not answer: does it run, and is a firewall between?"),
    ("No route to host", "the host does not answer: does it run, and is a firewall between?"),
    ("Timeout, server", "the host fell silent: the network was cut, or the host has stopped"),
    (
        "kex_exchange_identification",
        "sshd turned the connection away before the log-on: does MaxStartups there allow for eight \
         at once?",
    ),
];
const SLURM: Meanings = &[
    (
        "Requested nodes are busy",
        "no processor is free: ask for fewer agents, or wait for the other jobs (squeue)",
    ),
    (
        "More processors requested than permitted",
        "the allocation is too small: ask for fewer agents or for a larger allocation",
    ),
    ("Unable to contact slurm controller", "slurmctld does not answer: try sinfo"),
    ("Invalid partition", "there is no such partition: give it as options = [\"-pNAME\"]"),
    ("Job credential", "munge does not agree between the hosts: try munge -n | unmunge"),
    ("CANCELLED", "the job was cancelled or ran out of its time (scontrol show job)"),
];
const POD: Meanings = &[
    ("(NotFound)", "there is no such pod or container any more: kubectl get pods"),
    ("container not found", "there is no such container: give it as options = [\"-c\", \"NAME\"]"),
    (
        "(Forbidden)",
        "this user needs the verbs get and list of pods, and create of pods/exec (kubectl auth \
         can-i create pods/exec)",
    ),
    ("Unable to connect to the server", "the API server does not answer: try kubectl version"),
    ("connection refused", "the API server does not answer: try kubectl version"),
];
const COMMAND: Meanings = &[
    ("Cannot open network namespace", "there is no such network namespace: ip netns list"),
    ("No such container", "there is no such container, or it does not run"),
    ("no such container", "there is no such container, or it does not run"),
];

/// Longest part of the launcher's own output.
const OUTPUT_CHARS_MAX: usize = 400;

/// For a person: how the launcher ended, what that means, and what to do next.
pub fn explain(launcher: &Launcher, end: &End) -> String {
    explained(launcher, end, PROGRAM_MISSING)
}

/// The same for an agent whose program `--deploy` has sent.
pub fn explain_sent(launcher: &Launcher, end: &End) -> String {
    explained(launcher, end, NOT_SHARED)
}

/// Whether the launcher did not find the program that it should start.
pub(super) fn is_missing(launcher: &Launcher, end: &End) -> bool {
    let patterns: &[&str] = match launcher {
        Launcher::Ssh { .. } => &[],
        Launcher::Slurm { .. } => &["execve()"],
        Launcher::Pod { .. } => {
            &["executable file not found", "no such file or directory", "command not found"]
        }
        Launcher::Local | Launcher::Exec { .. } => &["No such file or directory", "not found"],
    };
    match end.status.code() {
        Some(0) => false,
        // Of shells, which launchers pass on.
        Some(127) => true,
        _ => patterns.iter().any(|pattern| output_contains(end, pattern)),
    }
}

fn output_contains(end: &End, pattern: &str) -> bool {
    end.last_lines.iter().any(|line| line.contains(pattern))
}

fn explained(launcher: &Launcher, end: &End, program_missing: &'static str) -> String {
    let name = match launcher {
        Launcher::Ssh { .. } => "ssh",
        Launcher::Slurm { .. } => "srun",
        Launcher::Pod { .. } => "kubectl",
        Launcher::Local => "the agent",
        Launcher::Exec { command } => command.first().map_or("the command", String::as_str),
    };
    let how = match (end.status.code(), end.status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    };
    let mut text = format!("{name} ended with {how}");
    if !end.last_lines.is_empty() {
        let output = end.last_lines.join(" / ");
        // The last lines give the reason.
        let skipped = output.chars().count().saturating_sub(OUTPUT_CHARS_MAX);
        text.extend([": ", if skipped > 0 { "…" } else { "" }]);
        text.extend(output.chars().skip(skipped));
    }
    if let Some(meaning) = meaning(launcher, end, program_missing) {
        text.extend(["; ", meaning]);
    }
    text
}

fn meaning(launcher: &Launcher, end: &End, program_missing: &'static str) -> Option<&'static str> {
    let meanings = match launcher {
        Launcher::Ssh { .. } => SSH,
        Launcher::Slurm { .. } => SLURM,
        Launcher::Pod { .. } => POD,
        Launcher::Local | Launcher::Exec { .. } => COMMAND,
    };
    // With status 0, an old warning in the lines is not the reason.
    let is_fault = end.status.code() != Some(0);
    let matched = meanings.iter().find(|(pattern, _)| is_fault && output_contains(end, pattern));
    match matched {
        Some((_, meaning)) => Some(meaning),
        None if is_missing(launcher, end) => Some(program_missing),
        None => by_status(launcher, end),
    }
}

/// Statuses of shells, which launchers pass on: 126 where a program cannot run, 128 + n where a
/// signal ended it.
fn by_status(launcher: &Launcher, end: &End) -> Option<&'static str> {
    const KILLED: &str = "something killed the agent: a person, a limit, or a lack of memory \
                          (journalctl -k there)";
    match (launcher, end.status.code()) {
        (_, Some(126)) => Some(
            "the program cannot run there: is it executable, and built for that \
                                machine?",
        ),
        (Launcher::Ssh { .. }, Some(255)) => Some(
            "the connection failed or broke, or the agent was killed there: ssh has one status for \
             all",
        ),
        (Launcher::Pod { .. }, Some(1)) => {
            Some("the connection to the pod broke: kubectl get pods")
        }
        (Launcher::Pod { .. }, Some(0)) => Some(
            "kubectl also ends so when the kubelet dies or the pod goes: kubectl get nodes,pods",
        ),
        (Launcher::Pod { .. }, Some(137 | 143)) => Some(
            "the pod was deleted or evicted, or something killed the agent, for example its limit \
             of memory: kubectl get events",
        ),
        (_, Some(137 | 143)) => Some(KILLED),
        (_, Some(4)) => Some("something sent the agent a signal to end"),
        (Launcher::Local | Launcher::Exec { .. }, None) => Some(KILLED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::ExitStatus;

    use super::super::spec;
    use super::*;

    /// Launcher and end.
    fn ended(value: &str, status: i32, lines: &[&str]) -> (Launcher, End) {
        let nothing = |_: &Path| Err(std::io::Error::other("no file"));
        let launcher = match value {
            "k8s" => Launcher::Pod { namespace: None, pod: "p".to_owned() },
            value => {
                let mut requested = spec::parse(&[value.to_owned()], &nothing).unwrap();
                requested.agents.remove(0).launcher
            }
        };
        let last_lines = lines.iter().map(|line| (*line).to_owned()).collect();
        (launcher, End { status: ExitStatus::from_raw(status), last_lines })
    }

    fn explanation(value: &str, status: i32, lines: &[&str]) -> String {
        let (launcher, end) = ended(value, status, lines);
        explain(&launcher, &end)
    }

    #[test]
    fn every_end_says_what_it_means() {
        let code = |code: i32| code << 8;
        for (launcher, status, lines, parts) in [
            ("ssh://a", code(255), &[][..], &["ssh ended with status 255", "one status for"][..]),
            ("ssh://a", code(255), &["a: Permission denied (publickey)."], &["ssh-copy-id"]),
            ("ssh://a", code(4), &[][..], &["ssh ended with status 4; something sent"][..]),
            ("ssh://a", code(127), &["sh: 1: exec: plimsoll: not found"], &["--deploy", "install"]),
            ("slurm:1", code(1), &["srun: error: x: Requested nodes are busy"], &["fewer agents"]),
            (
                "slurm:1",
                code(2),
                &["slurmstepd: error: execve(): plimsoll: No such file or directory"],
                &["--deploy"],
            ),
            ("slurm:1", code(137), &[], &["lack of memory"]),
            ("k8s", code(1), &[], &["connection to the pod broke"]),
            ("k8s", code(0), &["old warning: connection refused"], &["kubelet dies"]),
            ("k8s", code(137), &["command terminated with exit code 137"], &["pod was deleted"]),
            (
                "k8s",
                code(1),
                &["Error from server (Forbidden): pods \"p\" is forbidden"],
                &["verbs get and list of pods"],
            ),
            ("k8s", code(126), &["exec: \"plimsoll\": executable file not found"], &["--deploy"]),
            ("local", 9, &[], &["the agent ended with signal 9", "lack of memory"]),
            ("exec:env", code(127), &["env: 'x': No such file or directory"], &["--deploy"]),
            ("exec:env", code(0), &[], &["env ended with status 0"]),
            (
                "exec:ip netns exec A",
                code(255),
                &["Cannot open network namespace \"A\": No such file or directory"],
                &["no such network namespace"],
            ),
            (
                "exec:docker exec -i A",
                code(1),
                &["Error response from daemon: No such container: A"],
                &["no such container"],
            ),
        ] {
            let text = explanation(launcher, status, lines);
            for part in parts {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
        }
    }

    #[test]
    fn a_node_without_the_program_that_was_sent_shares_no_directory() {
        let lines = ["slurmstepd: error: execve(): /root/.cache/p: No such file or directory"];
        let (launcher, end) = ended("slurm:1", 2 << 8, &lines);
        let text = explain_sent(&launcher, &end);
        assert!(
            text.contains("share no home directory") && !text.contains("let --deploy"),
            "{text}"
        );
    }

    #[test]
    fn of_many_words_the_last_are_shown() {
        let long = "x".repeat(1_000);
        let text = explanation("local", 9, &[&long, "why"]);
        assert!(text.contains(": …xxx") && text.contains("x / why;"), "{text}");
        assert!(text.chars().count() < 600);
    }
}
