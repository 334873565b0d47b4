use std::os::unix::fs::{PermissionsExt as _, symlink};
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

fn known(program: &str) -> &'static Known {
    KNOWN.iter().find(|known| known.program == program).unwrap()
}

/// Writes a file that only this user can write, whatever the umask.
fn write(place: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = place.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for directory in path.ancestors().skip(1).take_while(|directory| *directory != place) {
        mode(directory, 0o755);
    }
    fs::write(&path, text).unwrap();
    mode(&path, 0o644);
    path
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What is shown of a server that was started in `place` with a command line.
fn shown(line: &str, place: &Path) -> Option<String> {
    let words = arguments(line);
    read(known(&words[0]), &words, place).map(|read| read.text)
}

/// The same, with names under `place` alone.
fn shown_briefly(line: &str, place: &Path) -> String {
    shown(line, place).unwrap().replace(&format!("{}/", place.display()), "")
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
        let values = flag_values(&arguments(line), flag);
        assert_eq!(values.last().map(String::as_str), value, "{line}");
    }
    let title = ["nginx: master process nginx -c /x/nginx.conf".to_owned()];
    assert_eq!(flag_values(&words(&title), "-c"), ["/x/nginx.conf"]);
}

#[test]
fn a_command_line_names_files_as_its_program_does() {
    for (line, files) in [
        ("nginx", &["/etc/nginx/nginx.conf"][..]),
        ("nginx -p . -c x.conf", &["/cwd/x.conf"]),
        ("nginx -p run -c x.conf", &["/cwd/run/x.conf"]),
        ("nginx -c x.conf", &["/usr/share/nginx/x.conf"]),
        ("nginx -c a -c /b", &["/b"]),
        ("apache2 -k start", &["/etc/apache2/apache2.conf"]),
        ("apache2 -d /srv -f x.conf", &["/srv/x.conf"]),
        ("httpd -f x.conf", &["/etc/httpd/x.conf"]),
        ("caddy run", &["/cwd/Caddyfile"]),
        ("caddy run --config /etc/caddy/Caddyfile", &["/etc/caddy/Caddyfile"]),
        ("caddy run --resume", &[]),
        ("caddy file-server --listen :80", &[]),
        ("haproxy -Ws -f a.cfg -p pid -f /b.cfg -- c.cfg", &["/cwd/a.cfg", "/b.cfg", "/cwd/c.cfg"]),
        ("haproxy -D", &["/etc/haproxy/haproxy.cfg"]),
        ("smbd -F", &["/etc/samba/smb.conf"]),
    ] {
        let words = arguments(line);
        let named = known(&words[0]).files(&words, Path::new("/cwd"));
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let plain = |path: &PathBuf| path.components().collect::<PathBuf>();
        assert_eq!(named.iter().map(plain).collect::<Vec<_>>(), files, "{line}");
    }
}

#[test]
fn caddy_is_given_no_file_that_it_does_not_read() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(shown("caddy run", place.path()), None);
    write(place.path(), "Caddyfile", "(tls) {\n}\nimport tls\nimport sites/a.caddy\n");
    write(place.path(), "sites/a.caddy", "import b.caddy one\n");
    write(place.path(), "sites/b.caddy", "respond ok\n");
    assert_eq!(
        shown_briefly("caddy run", place.path()),
        "# Caddyfile\n(tls) {\n}\nimport tls\nimport sites/a.caddy\n\
         # sites/a.caddy\nimport b.caddy one\n# sites/b.caddy\nrespond ok\n"
    );
}

#[test]
fn haproxy_reads_all_its_files_and_directories() {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "a.cfg", "global\n");
    write(place.path(), "more/b.cfg", "defaults\n");
    write(place.path(), "more/c.txt", "nothing\n");
    let text = shown_briefly("haproxy -f a.cfg -f more -f gone.cfg", place.path());
    assert_eq!(text, "# a.cfg\nglobal\n# more/b.cfg\ndefaults\n# gone.cfg: not read\n");
}

#[test]
fn lines_that_include_are_told_from_others() {
    for (line, name) in [
        ("    include /etc/nginx/conf.d/*.conf;", Some("/etc/nginx/conf.d/*.conf")),
        ("include /etc/nginx/conf.d/*.conf; # sites", Some("/etc/nginx/conf.d/*.conf")),
        ("include \"a;b.conf\"; # 'x", Some("a;b.conf")),
        ("location / { include proxy_params; root /srv; }", Some("proxy_params")),
        ("root /srv; include more.conf;", Some("more.conf")),
        ("IncludeOptional mods-enabled/*.load", Some("mods-enabled/*.load")),
        ("include = /etc/samba/more of it.conf", Some("/etc/samba/more of it.conf")),
        ("%include \"exports.conf\" # all", Some("exports.conf")),
        ("import site.caddy one two", Some("site.caddy")),
        ("includes nothing", None),
        ("# include x", None),
        ("root /srv; # include x;", None),
        ("include", None),
    ] {
        let names: Vec<&str> = statements(line).into_iter().filter_map(included).collect();
        assert_eq!(names, name.into_iter().collect::<Vec<_>>(), "{line}");
    }
}

#[test]
fn included_files_stand_behind_the_first_and_remarks_are_left_out() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(place.path(), name, text);
    file("nginx.conf", "# a remark\n\nworkers 2;\ninclude sites/*.conf;\n");
    file("sites/b.conf", "listen 81;\ninclude nginx.conf;\n");
    file("sites/a.conf", "listen 80;\n");
    file("sites/a.conf.old", "listen 79;\n");
    file("sites/c.conf", &"x".repeat(BYTES_MAX));
    let text = shown("nginx -p . -c nginx.conf", place.path()).unwrap();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
    assert!(at("workers 2;") < at("listen 80;") && at("listen 80;") < at("listen 81;"));
    assert!(!text.contains("a remark") && !text.contains("listen 79"), "{text}");
    assert_eq!(text.matches("workers 2;").count(), 1, "a circle ends: {text}");
    assert!(text.ends_with("c.conf: not shown, too long\n"), "{text}");
}

#[test]
fn no_include_is_lost_in_silence() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| write(place.path(), name, text);
    file("n.conf", b"include latin.conf;\ninclude */x.conf;\ninclude gone.conf;\ninclude no/*;\n");
    file("latin.conf", b"listen 80; # caf\xe9\n");
    assert_eq!(
        shown_briefly("nginx -p . -c n.conf", place.path()).lines().skip(5).collect::<Vec<_>>(),
        [
            "# latin.conf",
            "listen 80; # caf\u{fffd}",
            "# */x.conf: not read",
            "# gone.conf: not read",
            "# no/*: not read",
        ]
    );
}

#[test]
fn apache_takes_directories_and_starts_at_its_server_root() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    write(&root, "sites/a.conf", "Listen 80\n");
    write(&root, "sites/deep/b.conf", "Listen 81\n");
    let expected = "# root/sites/a.conf\nListen 80\n# root/sites/deep/b.conf\nListen 81\n";
    let first = place.path().join("conf/httpd.conf");
    for (line, text) in [
        (format!("httpd -f {}", first.display()), "ServerRoot \"../root\"\nInclude sites/\n"),
        (format!("httpd -d root -f {}", first.display()), "Include sites/\n"),
        (
            format!("httpd -d /nowhere -f {}", first.display()),
            &format!("ServerRoot {}\nInclude sites\n", root.display()),
        ),
        (format!("httpd -f {}", first.display()), "Include ../root/sites/\n"),
    ] {
        write(place.path(), "conf/httpd.conf", text);
        let shown = shown_briefly(&line, place.path()).replace("conf/../", "");
        assert!(shown.ends_with(expected), "{line}: {shown}");
    }
}

#[test]
fn a_file_that_others_can_choose_is_not_shown() {
    let place = tempfile::tempdir().unwrap();
    let text = "include open.conf;\ninclude theirs/*;\ninclude link.conf;\ninclude ours.conf;\n";
    write(place.path(), "n.conf", text);
    let open = write(place.path(), "open.conf", "hidden\n");
    write(place.path(), "theirs/a.conf", "hidden\n");
    mode(&open, 0o664);
    mode(&place.path().join("theirs"), 0o777);
    symlink("theirs/a.conf", place.path().join("link.conf")).unwrap();
    write(place.path(), "sites/kept.conf", "kept\n");
    symlink("sites/kept.conf", place.path().join("ours.conf")).unwrap();
    let text = shown_briefly("nginx -p . -c n.conf", place.path());
    assert!(!text.contains("hidden"), "{text}");
    for name in ["open.conf", "theirs/a.conf", "link.conf"] {
        let line = format!("# {name}: not shown, others can write it\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
    assert!(text.ends_with("# ours.conf\nkept\n"), "{text}");
    assert!(!is_our_choice(Path::new("/proc/self/status"), &mut { LINKS_MAX }));
    symlink("round.conf", place.path().join("round.conf")).unwrap();
    assert!(!is_our_choice(&place.path().join("round.conf"), &mut { LINKS_MAX }));
}

#[test]
fn too_many_files_are_said_once() {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "n.conf", "include sites/*;\ninclude gone/*;\n");
    for number in 0..FILES_MAX + 5 {
        write(place.path(), &format!("sites/{number:03}"), format!("listen {number};\n"));
    }
    let text = shown_briefly("nginx -p . -c n.conf", place.path());
    let end = "listen 198;\n# too many files: not shown from sites/199 on\n";
    assert!(text.ends_with(end), "{text}");
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
