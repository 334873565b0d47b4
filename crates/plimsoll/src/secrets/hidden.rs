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
const WORDS: [&str; 16] = [
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
/// The same of parts of words written together, `accessKey`. Apache's `AuthType` names no secret.
const NO_PART: &str = "auth";
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
const FILE_ENDINGS: [&str; 13] = [
    ".pem", ".key", ".crt", ".cer", ".conf", ".cfg", ".tdb", ".keytab", ".toml", ".jks", ".p12",
    ".pfx", ".so",
];
/// Words this long that mix letters and digits and are no paths look like keys.
const KEY_LENGTH_MIN: usize = 24;
/// One in so many of their characters, or more, is of another kind than the one before: of random
/// ones more than half are, of words one in ten.
const KEY_CHANGES_APART_MAX: usize = 4;
/// What hashes of passwords begin with (crypt(5)), and nothing else does.
const HASHES: [&str; 8] =
    ["$2a$", "$2b$", "$2x$", "$2y$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2"];
/// The same, but these may be variables: what stands behind the last sign of a hash is long.
const SHORT_HASHES: [&str; 7] = ["$1$", "$2$", "$5$", "$6$", "$7$", "$y$", "$gy$"];
const HASH_LENGTH_MIN: usize = 22;
/// What every token begins with that carries its own signature (RFC 7519): `{"` in Base64.
const WEB_TOKEN: &str = "eyJ";
/// Where the signs of a UUID are, and how long it is (RFC 9562, section 4).
const UUID_SIGNS: [usize; 4] = [8, 13, 18, 23];
const UUID_LENGTH: usize = 36;
/// Directives of which all that follows is hidden: SNMP's with a community, or a user and a
/// passphrase, and nginx's with a secret among variables.
const HIDING_DIRECTIVES: [&str; 7] = [
    "rocommunity",
    "rwcommunity",
    "rocommunity6",
    "rwcommunity6",
    "com2sec",
    "createuser",
    "secure_link_md5",
];

/// A line as it is shown.
struct Shown {
    text: String,
    /// A secret reaches its end, or would begin there.
    to_end: bool,
}

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
            true => line(argument).text,
            false => word(argument),
        });
    }
    shown.join(" ")
}

/// A configuration file.
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::new();
    let mut in_key = false;
    let mut goes_on = false;
    for whole in text.lines() {
        if whole.contains("-----BEGIN") && whole.contains("PRIVATE KEY") {
            in_key = true;
            out.push(LEFT_OUT.to_owned());
        }
        if !in_key {
            let shown = if goes_on { behind_secret(whole) } else { line(whole) };
            // What stands there belongs to the next line as well.
            goes_on = shown.to_end && whole.trim_end().ends_with('\\');
            out.push(shown.text);
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
fn line(whole: &str) -> Shown {
    if let Some(shown) = assignment(whole) {
        return shown;
    }
    let mut left = whole.trim_start();
    let mut text = whole[..whole.len() - left.len()].to_owned();
    let mut to_end = false;
    while !left.is_empty() {
        let (bare, after) = left.split_at(left.find(char::is_whitespace).unwrap_or(left.len()));
        let is_first = text.trim().is_empty();
        text.push_str(&word(bare));
        // A value may have several words: all that follows is taken for it.
        let so_far = &whole[..whole.len() - after.len()];
        if hides_rest(bare, so_far) || (is_first && names_secret(bare)) {
            let rest = behind_secret(after);
            return Shown { text: text + &rest.text, ..rest };
        }
        to_end = secret_begins(bare).is_some() || (to_end && bare == "\\");
        left = after.trim_start();
        text.push_str(&after[..after.len() - left.len()]);
    }
    Shown { text, to_end }
}

/// A line that gives a secret to a name, which may have several words: `ldap admin password = x`.
fn assignment(whole: &str) -> Option<Shown> {
    let (name, value) = whole.split_at(whole.find(['=', ':'])? + 1);
    let words = || name[..name.len() - 1].split_whitespace();
    // Quotes may end a value that stands before the sign.
    let plain = words().count() == 1 || !name.contains(['"', '\'']);
    let first = words().position(names_secret)?;
    let is_last = first + 1 == words().count();
    let directive = words().take(first).any(is_directive);
    if !is_name(&name[..name.len() - 1]) || !plain || !is_last || directive {
        return None;
    }
    let rest = behind_secret(value);
    Some(Shown { text: format!("{name}{}", rest.text), ..rest })
}

/// Whether all that follows a word is to be hidden; `so_far` is the line up to its end.
fn hides_rest(bare: &str, so_far: &str) -> bool {
    let Some(begin) = secret_begins(bare) else {
        return is_directive(bare) || bare.rsplit('=').next().is_some_and(names_secret);
    };
    let is_open = |quote: char| so_far.matches(quote).count() % 2 == 1;
    let is_empty = without_signs(&bare[begin..]).is_empty();
    bare[..begin].ends_with(':') || is_empty || is_open('"') || is_open('\'')
}

fn is_directive(word: &str) -> bool {
    HIDING_DIRECTIVES.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// What follows the name of a secret: blanks, perhaps a sign, the secret.
fn behind_secret(text: &str) -> Shown {
    let bare = text.trim();
    // Where the name goes on, as in `password sync = no`, its value says that it is none.
    let goes_on = |name: &str| name.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    if bare.split_once(" = ").is_some_and(|(name, said)| goes_on(name) && value(said) == said) {
        return Shown { text: text.to_owned(), to_end: true };
    }
    let secret = bare.trim_start_matches(|c: char| "=:>".contains(c) || c.is_whitespace());
    // More than one sign may be part of it.
    let signs = &bare[..bare.len() - secret.len()];
    let secret = if ["", "=", ":", "=>"].contains(&signs.trim()) { secret } else { bare };
    let before = text.trim_end().len() - secret.len();
    Shown { text: format!("{}{}", &text[..before], value(secret)), to_end: true }
}

/// Words and blanks as configurations write names.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_. \"'".contains(c);
    text.trim().chars().all(plain) && !text.trim().is_empty()
}

/// One word of a line: `name=value`, a URL, or plain.
fn word(text: &str) -> String {
    let text = match text.contains("://") && text.contains('@') {
        true => without_user_info(text),
        false => text.to_owned(),
    };
    let hash = hash_begins(&text);
    match secret_begins(&text).into_iter().chain(hash).min() {
        Some(begin) => format!("{}{}", without_keys(&text[..begin]), value(&text[begin..])),
        None => without_keys(&text),
    }
}

/// Where the value of a secret begins in a word: behind the first sign whose name, or all that is
/// before it, names one.
fn secret_begins(text: &str) -> Option<usize> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "_-.\"'[]%".contains(c);
    text.match_indices(['=', ':']).find_map(|(at, sign)| {
        let before = &text[..at];
        let name = &before[before.trim_end_matches(of_name).len()..];
        let names = names_secret(name) || (sign == "=" && names_secret(before));
        (names && !(sign == ":" && is_address(before, name, &text[at + 1..]))).then_some(at + 1)
    })
}

/// Whether a colon stands between host and port, or behind the scheme of a URL.
fn is_address(before: &str, name: &str, after: &str) -> bool {
    let host = before[..before.len() - name.len()].ends_with("//");
    let port = after.split(|c: char| "/\"';,?".contains(c)).next().unwrap_or_default();
    after.starts_with("//") || (host && port.parse::<u16>().is_ok())
}

/// Where the hash of a password begins.
fn hash_begins(text: &str) -> Option<usize> {
    let is_long = |rest: &str| {
        let last = rest.rsplit('$').next().unwrap_or_default();
        without_signs(last).len() >= HASH_LENGTH_MIN
    };
    let short = SHORT_HASHES.iter().filter_map(|sign| text.find(sign));
    let short = short.filter(|begin| is_long(&text[*begin..]));
    HASHES.iter().filter_map(|sign| text.find(sign)).chain(short).min()
}

/// A text whose parts that look like keys are left out.
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

/// The value of a name that names a secret.
fn value(text: &str) -> String {
    let bare = without_signs(text);
    let switch = SWITCHES.iter().any(|switch| bare.eq_ignore_ascii_case(switch));
    match switch || bare.is_empty() || names_file(bare) {
        true => text.to_owned(),
        false => LEFT_OUT.to_owned(),
    }
}

/// A value without what configurations put around values.
fn without_signs(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "\"';,{}[]()\\".contains(c))
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
    let name = name.trim().trim_matches(['"', '\'', '-', '[', ']', '{', '}']);
    let lower = name.to_ascii_lowercase();
    if WITHIN.iter().any(|secret| lower.contains(secret)) {
        return true;
    }
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).peekable();
    let first = words.peek().and_then(|first| parts(first).into_iter().next());
    let passed_on = first.is_some_and(|first| PASSED_ON.contains(&first.as_str()));
    !passed_on && words.any(is_secret_word)
}

/// Whether a word, or a part of one that is written together, names a secret. They may be numbered.
fn is_secret_word(word: &str) -> bool {
    let is_known =
        |word: &str| WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let whole = word.to_ascii_lowercase();
    is_known(&whole) || parts(word).iter().any(|part| part != NO_PART && is_known(part))
}

/// The parts of a word that capitals begin, `APIKey2` as `api` and `key2`; in lower case.
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

/// Whether a text with signs that paths and names have as well is as mixed as chance makes it.
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

/// Names of hosts, and of directories with a hash in them, are in one.
fn has_both_cases(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests;
