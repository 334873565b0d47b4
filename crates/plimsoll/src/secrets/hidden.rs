//! Command lines and configurations of servers without what may be secret. What is left out by
//! mistake costs a reader a value; what is shown by mistake costs its owner more.

use plimsoll_model::disclosure::FileSystem;

use super::{LEFT_OUT, without_user_info};

/// A name that has one of these in it names a secret.
const WITHIN: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "community",
    "credential",
    "requirepass",
    "masterauth",
    "authorization",
];
/// One that has one of these as a word of its own does as well.
const WORDS: [&str; 12] = [
    "apikey",
    "auth",
    "authtoken",
    "cookie",
    "key",
    "keys",
    "pass",
    "psk",
    "pw",
    "pwd",
    "token",
    "userpass",
];
/// Unless it begins with one of these words: `proxy_pass` names a server.
const PASSED_ON: [&str; 6] = ["fastcgi", "grpc", "memcached", "proxy", "scgi", "uwsgi"];
/// Words that are no secret, whatever they are the value of.
const SWITCHES: [&str; 12] = [
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "auto",
    "default",
    "none",
    "mandatory",
    "required",
    "optional",
];
/// Endings of files that are named where the name may be one of a secret.
const FILE_ENDINGS: [&str; 9] =
    [".pem", ".key", ".crt", ".cer", ".conf", ".cfg", ".tdb", ".keytab", ".toml"];
/// Words this long that mix letters and digits and are no paths look like keys.
const KEY_LENGTH_MIN: usize = 24;
/// SNMP's directives whose next word is a community, or a user and a passphrase.
const SNMP_DIRECTIVES: [&str; 6] =
    ["rocommunity", "rwcommunity", "rocommunity6", "rwcommunity6", "com2sec", "createuser"];

/// A command line in one line.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let mut shown = Vec::new();
    let mut hide_next = false;
    for argument in arguments {
        let is_flag = argument.starts_with('-');
        if hide_next && !is_flag {
            hide_next = false;
            shown.push(value(argument));
            continue;
        }
        hide_next = is_flag && !argument.contains(['=', ' ']) && names_secret(argument);
        // A program that writes its own title has its whole line in one argument.
        shown.push(match argument.contains(char::is_whitespace) {
            true => line(argument),
            false => word(argument),
        });
    }
    shown.join(" ")
}

/// A configuration file.
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::new();
    let mut in_key = false;
    for whole in text.lines() {
        if whole.contains("-----BEGIN") && whole.contains("PRIVATE KEY") {
            in_key = true;
            out.push(LEFT_OUT.to_owned());
        }
        if !in_key {
            out.push(line(whole));
        }
        in_key &= !whole.contains("-----END");
    }
    let mut hidden = out.join("\n");
    if text.ends_with('\n') {
        hidden.push('\n');
    }
    hidden
}

/// Mount options may name users and passwords.
pub(crate) fn file_systems(all: &mut [FileSystem]) {
    for file_system in all {
        let options: Vec<String> = file_system.options.split(',').map(word).collect();
        file_system.options = options.join(",");
    }
}

/// A line of a configuration: a name, a sign or blanks, a value.
fn line(whole: &str) -> String {
    let trimmed = whole.trim_start();
    let indent = &whole[..whole.len() - trimmed.len()];
    let end = trimmed.find(['=', ':']).filter(|end| is_name(&trimmed[..*end]));
    let (name, rest) = match end {
        Some(end) => trimmed.split_at(end + 1),
        None => trimmed.split_at(trimmed.find(char::is_whitespace).unwrap_or(trimmed.len())),
    };
    let snmp = SNMP_DIRECTIVES.contains(&name.to_ascii_lowercase().as_str());
    let hidden_rest = |rest: &str| {
        let blanks = &rest[..rest.len() - rest.trim_start().len()];
        format!("{blanks}{}", value(rest.trim()))
    };
    if (snmp || names_secret(name)) && !rest.trim().is_empty() {
        return format!("{indent}{name}{}", hidden_rest(rest));
    }
    let mut shown = String::from(indent);
    let mut left = trimmed;
    while !left.is_empty() {
        let end = left.find(char::is_whitespace).unwrap_or(left.len());
        let (bare, after) = left.split_at(end);
        shown.push_str(&word(bare));
        // A value may have several words: all that follows is taken for it.
        if names_secret(bare) && !bare.contains('=') && !after.trim().is_empty() {
            shown.push_str(&hidden_rest(after));
            return shown;
        }
        left = after.trim_start();
        shown.push_str(&after[..after.len() - left.len()]);
    }
    shown
}

/// Words and blanks as configurations write names.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_. \"'".contains(c);
    text.trim().chars().all(plain) && !text.trim().is_empty()
}

/// One word of a line: `name=value`, a URL, or plain.
fn word(text: &str) -> String {
    if let Some((name, rest)) = text.split_once('=').filter(|(name, _)| names_secret(name)) {
        return format!("{name}={}", value(rest));
    }
    if text.contains("://") && text.contains('@') {
        return without_user_info(text);
    }
    let bare = text.trim_matches(['"', '\'', ';', ',']);
    if looks_like_key(bare) { text.replace(bare, LEFT_OUT) } else { text.to_owned() }
}

/// The value of a name that names a secret.
fn value(text: &str) -> String {
    let bare = text.trim_matches(['"', '\'', ';', ',']);
    let switch = SWITCHES.iter().any(|switch| bare.eq_ignore_ascii_case(switch));
    if switch || names_file(bare) { text.to_owned() } else { LEFT_OUT.to_owned() }
}

/// An absolute path of a file as configurations name them: nothing in it but a path, with an
/// ending that files of keys and certificates have.
fn names_file(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    text.starts_with('/')
        && text.chars().all(plain)
        && FILE_ENDINGS.iter().any(|ending| text.ends_with(ending))
}

fn names_secret(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'', '-', '[', ']', '{', '}']).to_ascii_lowercase();
    if WITHIN.iter().any(|secret| name.contains(secret)) {
        return true;
    }
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).peekable();
    let passed_on = words.peek().is_some_and(|first| PASSED_ON.contains(first));
    !passed_on && words.any(|word| WORDS.contains(&word))
}

fn looks_like_key(text: &str) -> bool {
    let of_key = |c: char| c.is_ascii_alphanumeric() || "+=_".contains(c);
    let has = |is: fn(&char) -> bool| text.chars().any(|c| is(&c));
    text.len() >= KEY_LENGTH_MIN
        && text.chars().all(of_key)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_of_servers_show_no_secret() {
        for (typed, shown) in [
            ("nginx: master process /usr/sbin/nginx -c /etc/nginx.conf", None),
            ("smbd -F -s /etc/samba/smb.conf --configfile=/etc/x.conf -p 445", None),
            (
                "redis-server *:6379 --requirepass s3cret",
                Some("redis-server *:6379 --requirepass (left out)"),
            ),
            ("app --db-password=s3cret --port=80", Some("app --db-password=(left out) --port=80")),
            ("app --token s3cret --port 80", Some("app --token (left out) --port 80")),
            ("app --key /etc/tls/k.pem", None),
            ("app --key /s3cret+x=", Some("app --key (left out)")),
            ("app --db postgres://u:s3cret@db/x", Some("app --db postgres://(left out)@db/x")),
            ("app DB_PASS=s3cret", Some("app DB_PASS=(left out)")),
            (
                "java -Djavax.net.ssl.keyStorePassword=s3cret -Xmx4g",
                Some("java -Djavax.net.ssl.keyStorePassword=(left out) -Xmx4g"),
            ),
            ("app s3cretS3CRETs3cretS3CRETs3cret", Some("app (left out)")),
            ("app --passwordless --auth=off", None),
        ] {
            let arguments: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let hidden = command_line(&arguments);
            assert!(!hidden.contains("s3cret"), "{typed}: {hidden}");
            if !typed.contains("passwordless") {
                assert_eq!(hidden, shown.unwrap_or(typed));
            }
        }
        let title = command_line(&["app: serving --password s3cret".into()]);
        assert_eq!(title, "app: serving --password (left out)");
    }

    #[test]
    fn configurations_of_servers_show_no_secret() {
        let written = "worker_processes 4;\n\
            \x20 proxy_pass http://127.0.0.1:8080;\n\
            ssl_certificate_key /etc/tls/k.pem;\n\
            ssl_password_file /etc/tls/pass.conf;\n\
            proxy_set_header Authorization \"Basic s3cret\";\n\
            server_tokens off;\n\
            rocommunity s3cret 10.0.0.0/8\n\
            com2sec local default s3cret\n\
            createUser admin SHA \"s3cret\" AES s3cret\n\
            \x20 ldap admin password = s3cret\n\
            passdb backend = tdbsam:/var/lib/passdb.tdb\n\
            unix password sync = no\n\
            password: \"s3cret\"\n\
            \"api_key\": \"s3cret\",\n\
            basic_auth bob s3cret\n\
            uri = ldap://cn=x:s3cret@host/\n\
            -----BEGIN RSA PRIVATE KEY-----\n\
            s3cret\n\
            -----END RSA PRIVATE KEY-----\n\
            listen 80;\n";
        let hidden = text(written);
        assert!(!hidden.contains("s3cret"), "{hidden}");
        for kept in [
            "worker_processes 4;\n  proxy_pass http://127.0.0.1:8080;\n",
            "ssl_certificate_key /etc/tls/k.pem;\n",
            "server_tokens off;\n",
            "rocommunity (left out)\n",
            "  ldap admin password = (left out)\n",
            "passdb backend = tdbsam:/var/lib/passdb.tdb\n",
            "unix password sync = no\n",
            "listen 80;\n",
        ] {
            assert!(hidden.contains(kept), "{kept:?} in {hidden}");
        }
        assert_eq!(text("listen 80;\n"), "listen 80;\n");
    }
}
