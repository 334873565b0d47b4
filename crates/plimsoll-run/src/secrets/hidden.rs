//! Command lines of servers and mount options without possible secrets. Hiding a harmless value
//! costs a reader that value; showing a secret costs its owner more.

use plimsoll_model::disclosure::FileSystem;

use super::{LEFT_OUT, without_user_info};

/// A name that contains one of these names a secret.
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
/// So does a name that has one of these as a separate word.
const SECRET_NAMES: [&str; 16] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "auth",
    "authtoken",
    "cookie",
    "dbpass",
    "key",
    "keys",
    "pass",
    "psk",
    "pw",
    "pwd",
    "token",
    "userpass",
];
/// Values that are no secret, whatever their name.
const SWITCHES: [&str; 9] = ["yes", "no", "on", "off", "true", "false", "auto", "default", "none"];
/// Endings of file paths that may be shown, even if the name may be one of a secret.
const FILE_ENDINGS: [&str; 13] = [
    ".pem", ".key", ".crt", ".cer", ".conf", ".cfg", ".tdb", ".keytab", ".toml", ".jks", ".p12",
    ".pfx", ".so",
];
/// Tokens of at least this length that mix letters and digits and are no paths look like keys.
const KEY_LENGTH_MIN: usize = 24;
/// At least one of this many of their characters differs in kind from the one before: in random
/// text more than half do, in words one in ten.
const KEY_CHANGES_APART_MAX: usize = 4;
/// Prefixes of password hashes (crypt(5)).
const HASHES: [&str; 13] = [
    "$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$apr1$", "$argon2",
    "$scrypt$", "$pbkdf2",
];
/// Prefix of every token that carries its own signature (RFC 7519): `{"` in Base64.
const WEB_TOKEN: &str = "eyJ";
/// Positions of the hyphens in a UUID, and its length (RFC 9562, section 4).
const UUID_SIGNS: [usize; 4] = [8, 13, 18, 23];
const UUID_LENGTH: usize = 36;
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
        shown.push(match argument.contains(char::is_whitespace) {
            true => redact_text(argument),
            false => word(argument),
        });
    }
    shown.join(" ")
}

/// An argument with blanks: a title that a program set itself, or a script. Everything after the
/// name of a secret is left out.
fn redact_text(argument: &str) -> String {
    let mut shown = Vec::new();
    let mut tokens = argument.split_whitespace();
    for bare in tokens.by_ref() {
        shown.push(word(bare));
        if names_secret(bare) || secret_begins(bare).is_some() {
            break;
        }
    }
    shown.extend(tokens.next().map(|_| LEFT_OUT.to_owned()));
    shown.join(" ")
}

/// Mount options may name users and passwords.
pub(crate) fn file_systems(all: &mut [FileSystem]) {
    for file_system in all {
        let options: Vec<String> = file_system.options.split(',').map(word).collect();
        file_system.options = options.join(",");
    }
}

/// One token: `name=value`, a URL, or plain text.
fn word(text: &str) -> String {
    let text = match text.contains("://") && text.contains('@') {
        true => without_user_info(text),
        false => text.to_owned(),
    };
    let hash = HASHES.iter().filter_map(|sign| text.find(sign)).min();
    match secret_begins(&text).into_iter().chain(hash).min() {
        Some(begin) => format!("{}{}", without_keys(&text[..begin]), value(&text[begin..])),
        None => without_keys(&text),
    }
}

/// Offset of a secret's value in a token: after the first sign that follows the name of a secret,
/// or any text that contains one.
fn secret_begins(text: &str) -> Option<usize> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "_-.\"'[]%".contains(c);
    text.match_indices(['=', ':']).find_map(|(at, sign)| {
        let before = &text[..at];
        let name = &before[before.trim_end_matches(of_name).len()..];
        let names = names_secret(name) || (sign == "=" && names_secret(before));
        (names && !(sign == ":" && is_address(before, name, &text[at + 1..]))).then_some(at + 1)
    })
}

/// Whether a colon separates host and port, or ends the scheme of a URL.
fn is_address(before: &str, name: &str, after: &str) -> bool {
    let host = before[..before.len() - name.len()].ends_with("//");
    let port = after.split(|c: char| "/\"';,?".contains(c)).next().unwrap_or_default();
    after.starts_with("//") || (host && port.parse::<u16>().is_ok())
}

/// A text without the parts that look like keys.
fn without_keys(text: &str) -> String {
    let between = |c: char| "=:,;\"'()[]{}<>&?|`\\".contains(c);
    let mut shown = String::new();
    for piece in text.split_inclusive(between) {
        let bare = piece.trim_end_matches(between);
        shown.push_str(if looks_like_key(bare) { LEFT_OUT } else { bare });
        shown.push_str(&piece[bare.len()..]);
    }
    shown
}

/// The value of a secret's name, left out unless it is harmless.
fn value(text: &str) -> String {
    let bare = without_signs(text);
    let switch = SWITCHES.iter().any(|switch| bare.eq_ignore_ascii_case(switch));
    match switch || bare.is_empty() || names_file(bare) {
        true => text.to_owned(),
        false => LEFT_OUT.to_owned(),
    }
}

/// A value without surrounding quotes, brackets, commas, semicolons and backslashes.
fn without_signs(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "\"';,{}[]()\\".contains(c))
}

/// Whether a text is only an absolute file path, with an ending of key, certificate or
/// configuration files.
fn names_file(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    text.starts_with('/')
        && text.chars().all(plain)
        && FILE_ENDINGS.iter().any(|ending| text.ends_with(ending))
}

fn names_secret(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'', '-', '[', ']', '{', '}']);
    let lower = name.to_ascii_lowercase();
    if WITHIN.iter().any(|secret| lower.contains(secret)) {
        return true;
    }
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_secret_word)
}

/// Whether a word, or a part of a compound one, names a secret. Numbers at its end are ignored.
fn is_secret_word(word: &str) -> bool {
    let is_listed =
        |word: &str| SECRET_NAMES.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    is_listed(&word.to_ascii_lowercase()) || parts(word).iter().any(|part| is_listed(part))
}

/// The parts of a word that begin with capitals, in lower case: `api` and `key2` of `APIKey2`.
fn parts(word: &str) -> Vec<String> {
    let bytes = word.as_bytes();
    let begins = |at: usize| {
        let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        bytes[at].is_ascii_uppercase() && (!bytes[at - 1].is_ascii_uppercase() || next_is_lower)
    };
    let mut parts = vec![String::new()];
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && begins(at) {
            parts.push(String::new());
        }
        parts.last_mut().into_iter().for_each(|part| part.push(byte.to_ascii_lowercase().into()));
    }
    parts
}

fn looks_like_key(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+=".contains(c);
    let has = |is: fn(&char) -> bool| text.chars().any(|c| is(&c));
    let mixes = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    let long = text.len() >= KEY_LENGTH_MIN;
    (long && mixes && (text.chars().all(plain) || text.starts_with(WEB_TOKEN)))
        || is_uuid(text)
        || is_random(text)
        || text.split(['/', '.', '-']).any(|part| is_random(part) && has_both_cases(part))
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_LENGTH
        && text.char_indices().all(|(at, c)| match UUID_SIGNS.contains(&at) {
            true => c == '-',
            false => c.is_ascii_hexdigit(),
        })
}

/// Whether a text is as mixed as a random one. Its signs may be in paths and names as well.
fn is_random(text: &str) -> bool {
    let of_key = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let has = |is: fn(&char) -> bool| text.chars().any(|c| is(&c));
    let mixes = has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && (!text.contains(['/', '-']) || has_both_cases(text));
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'0'..=b'9' => Some(2),
        _ => None,
    };
    let changes = |pair: &&[u8]| matches!((kind(pair[0]), kind(pair[1])), (Some(one), Some(next)) if one != next);
    text.len() >= KEY_LENGTH_MIN
        && text.chars().all(of_key)
        && mixes
        && text.as_bytes().windows(2).filter(changes).count() * KEY_CHANGES_APART_MAX >= text.len()
}

/// Host names, and directory names with a hash, are in one case.
fn has_both_cases(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests;
