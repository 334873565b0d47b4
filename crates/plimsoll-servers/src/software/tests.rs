use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_testkit::skips::skip_always;

use super::*;
use crate::clock::Deadline;

/// How long a program may take to start.
const START_WAIT: Duration = Duration::from_secs(10);

fn arguments(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_flag_is_found_however_it_is_written() {
    for (line, flag, value) in [
        ("nginx -p /srv -c conf/nginx.conf", "-c", Some("conf/nginx.conf")),
        ("nginx -cx.conf", "-c", Some("x.conf")),
        ("nginx -c a -c b", "-c", Some("b")),
        ("smbd -F --configfile=/x/smb.conf", "--configfile", Some("/x/smb.conf")),
        ("caddy run --config Caddyfile", "--config", Some("Caddyfile")),
        ("smbd --configfiles /x", "--configfile", None),
        ("nginx -c", "-c", None),
    ] {
        assert_eq!(flag_value(&arguments(line), flag).as_deref(), value, "{line}");
    }
    let title = ["nginx: master process nginx -c /x/nginx.conf".to_owned()];
    assert_eq!(flag_value(&split_title(&title), "-c").as_deref(), Some("/x/nginx.conf"));
}

#[test]
fn a_command_line_names_its_file_as_its_program_does() {
    for (line, file) in [
        ("nginx", Some("/etc/nginx/nginx.conf")),
        ("nginx -p . -c x.conf", Some("/cwd/x.conf")),
        ("nginx -p run -c x.conf", Some("/cwd/run/x.conf")),
        ("nginx -c x.conf", Some("/usr/share/nginx/x.conf")),
        ("nginx -c a -c /b", Some("/b")),
        ("apache2 -k start", Some("/etc/apache2/apache2.conf")),
        ("apache2 -d /srv -f x.conf", Some("/srv/x.conf")),
        ("httpd -f x.conf", Some("/etc/httpd/x.conf")),
        ("caddy run", Some("/cwd/Caddyfile")),
        ("caddy run --config /etc/caddy/Caddyfile", Some("/etc/caddy/Caddyfile")),
        ("caddy run --resume", None),
        ("caddy file-server --listen :80", None),
        ("haproxy -Ws -f a.cfg -p pid", Some("/cwd/a.cfg")),
        ("haproxy -D", Some("/etc/haproxy/haproxy.cfg")),
        ("smbd -F", Some("/etc/samba/smb.conf")),
    ] {
        let tokens = arguments(line);
        let rule = CONFIGURATION_RULES.iter().find(|rule| rule.program == tokens[0]).unwrap();
        let named = rule.file(&tokens, Path::new("/cwd"));
        let plain = named.map(|path| path.components().collect::<PathBuf>());
        assert_eq!(plain, file.map(PathBuf::from), "{line}");
    }
}

#[test]
fn what_is_no_file_or_too_long_has_no_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.conf");
    fs::write(&file, "abc").unwrap();
    // FIPS 180-4, of "abc".
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(checksum(&file).as_deref(), Some(abc));
    assert_eq!(checksum(folder.path()), None);
    assert_eq!(checksum(&folder.path().join("gone")), None);
    File::create(&file).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    assert_eq!(checksum(&file), None);
}

#[test]
fn a_process_that_sees_other_files_is_known() {
    let (passwords, version) = (Path::new("/etc/passwd"), Path::new("/proc/version"));
    assert!(sees_ours(std::process::id(), passwords));
    assert!(!sees_ours(u32::MAX, passwords));
    let other_etc = "mount -t tmpfs none /etc && exec cat";
    let arguments = ["--user", "--map-root-user", "--mount", "sh", "-c", other_etc];
    let mut other = Command::new("unshare")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Deadline::after(START_WAIT);
    let id = other.id();
    let started = || name_of(id).is_some_and(|name| name == "cat");
    while !started() && deadline.wait_a_step() {
        if other.try_wait().unwrap().is_some() {
            return skip_always("this host lets nobody make a mount namespace");
        }
    }
    assert!(!sees_ours(id, passwords) && sees_ours(id, version));
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
fn a_process_tells_program_and_command_line_and_is_not_asked_unless_it_is_known() {
    let own = running(std::process::id());
    assert_eq!(own.program, std::env::current_exe().ok());
    assert!(!own.arguments.is_empty());
    assert_eq!(own.version, None, "a test is none of the servers that are known");
    assert_eq!(running(u32::MAX), Running::default());
}

#[test]
fn only_a_binary_that_nobody_else_can_write_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("nginx");
    let mode = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::write(&program, "#!/bin/sh\necho\necho 'nginx version: nginx/1.2.3' >&2\n").unwrap();
    mode(0o755);
    let printed = version(&program, &program);
    assert_eq!(printed.as_deref(), Some("nginx version: nginx/1.2.3"));
    mode(0o777);
    assert_eq!(version(&program, &program), None);
    mode(0o755);
    let other = folder.path().join("other");
    fs::copy(&program, &other).unwrap();
    assert_eq!(version(&other, &other), None, "not known");
}

#[test]
fn a_program_that_does_not_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("nginx");
    fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(version(&program, &program), None);
}

/// `2.6.2` alone does not name its program.
#[test]
fn a_version_without_a_name_gets_that_of_its_program() {
    let named = |program: &str, line: &str| with_name(program, line.to_owned());
    assert_eq!(named("caddy", "2.6.2"), "Caddy 2.6.2");
    assert_eq!(named("caddy", "v2.7.6 h1:abc="), "Caddy v2.7.6 h1:abc=");
    assert_eq!(named("smbd", "Version 4.17.12-Debian"), "Samba Version 4.17.12-Debian");
    assert_eq!(named("node", "v20.11.1"), "Node.js v20.11.1");
    assert_eq!(named("nginx", "nginx version: nginx/1.22.1"), "nginx version: nginx/1.22.1");
    assert_eq!(named("varnishd", "varnishd (varnish-7.1.1)"), "varnishd (varnish-7.1.1)");
}
