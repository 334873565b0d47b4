//! What the first bytes of a stream suggest, if they are no frame: text of shells, of ssh and of
//! other programs.

/// Text that a stream begins with, in lower case, and what to do about it.
const REMEDIES: [(&[&str], &str); 5] = [
    (
        &["password", "passphrase", "(yes/no", "verification code"],
        "ssh wants an answer, but agents are started without a terminal; make `ssh -o BatchMode=yes HOST true` work first (a key in ssh-agent, the host in known_hosts)",
    ),
    (
        &["not found", "no such file", "cannot execute", "exec format error"],
        "the program is missing on that host or is built for another machine; install the same release there, name its path, or use --deploy",
    ),
    (
        &["permission denied", "account is", "not authorized", "this service allows"],
        "that host refuses to run the program",
    ),
    (
        &["usage:", "unrecognized", "unknown option", "invalid option", "unexpected argument"],
        "another program answered, or a release without `plimsoll agent`; check the path of the program on that host",
    ),
    (&["0: plms"], "srun puts the number of the task before each line; start it without --label"),
];

const SHELL: &str = "does a shell start-up file of that host print? Put `case $- in *i*) ;; *) return;; esac` before whatever prints in it";
const BINARY: &str = "something other than a Plimsoll agent answers there; check the command";
const LATER: &str = "something besides the agent writes to its standard output, or a terminal changes the bytes; start ssh without -t, kubectl without -t, srun with -u and without --pty";
const NOTHING: &str = "check the command";

/// What to do when `first` is not a frame, after `frames` valid ones.
pub(super) fn suggest(first: &[u8], frames: u64) -> &'static str {
    if frames > 0 {
        return LATER;
    }
    let text = String::from_utf8_lossy(first).to_lowercase();
    let is_match =
        |(patterns, _): &&(&[&str], &str)| patterns.iter().any(|word| text.contains(word));
    match REMEDIES.iter().find(is_match) {
        Some((_, remedy)) => remedy,
        None if first.is_empty() => NOTHING,
        None if is_text(first) => SHELL,
        None => BINARY,
    }
}

/// Most of it can be printed: other alphabets and the colours of a prompt may be in it.
fn is_text(first: &[u8]) -> bool {
    let text = String::from_utf8_lossy(first);
    let printed = text.chars().filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER);
    printed.count() * 4 >= text.chars().count() * 3
}
