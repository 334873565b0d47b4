//! Files of journeys: what is read, and what is refused with its line.

use std::io;

use super::*;
use crate::journey::ServedBytes;

fn read(path: &Path) -> io::Result<Vec<u8>> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("users.csv") => Ok(b"name,password\nann,s3cret\nbob,other\n".to_vec()),
        Some("items.csv") => Ok(b"path,bytes,n\na%20b,120,3\nc/d.html,9,1\n".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn parsed(text: &str) -> Journeys {
    parse(Path::new("j/journey.toml"), text, &read).unwrap()
}

fn refusal(text: &str) -> String {
    let error = parse(Path::new("j.toml"), text, &read).unwrap_err();
    format!("{error} {}", error.help.as_deref().unwrap_or_default())
}

/// As the issue tracker has it: keys may be added, none of these renamed.
const EXAMPLE: &str = r#"
[[data]]
name = "user"
file = "users.csv"                # header line: name,password
order = "in_turn"                 # each_once | in_turn | random

[[page]]
name = "login"
method = "POST"
path = "/login"
body = "name={{user.name}}&password={{user.password}}"
take.token = { json = "/token" }  # or { header = "X" }, { cookie = "sid" }, { regex = "t=(\\w+)" }, { field = "csrfmiddlewaretoken" }
expect.status = [200]
think = "exponential 200ms"       # before the next page

[[page]]
name = "account"
path = "/account"
headers.Authorization = "Bearer {{token}}"
next = { account = 0.5, end = 0.5 }
"#;

#[test]
fn the_example_is_read() {
    let journeys = parsed(EXAMPLE);
    let [login, account] = &journeys.pages[..] else { panic!("{journeys:?}") };
    assert_eq!(
        (login.next.as_slice(), login.think.to_string()),
        (&[(1.0, Some(1))][..], "exponential 200ms".to_owned())
    );
    assert_eq!(account.next, [(0.5, Some(1)), (1.0, None)]);
    assert_eq!(journeys.page_names(), ["login", "account"]);
    assert_eq!(
        (journeys.data[0].count(), journeys.requests[0].statuses.as_slice()),
        (2, &[200][..])
    );
    assert_eq!(journeys.requests[1].text.method, Method::GET);
}

#[test]
fn several_journeys_have_pages_of_the_same_names() {
    let text = "[[journey]]\nname = \"buy\"\nweight = 3\n[[journey.page]]\nname = \"home\"\npath = \"/\"\n\
                [[journey]]\nname = \"look\"\n[[journey.page]]\nname = \"home\"\npath = \"/\"\nrepeat = \"uniform 1..3\"\n\
                [[journey.page.request]]\npath = \"/style.css\"\n";
    let journeys = parsed(text);
    assert_eq!(journeys.page_names(), ["buy.home", "look.home"]);
    assert_eq!((journeys.journeys[0].weight, journeys.journeys[1].first), (3.0, 1));
    assert_eq!(journeys.pages[1].requests, 1..3);
}

#[test]
fn mistakes_are_refused_with_their_line_and_the_next_move() {
    let page = |more: &str| format!("[[page]]\nname = \"a\"\npath = \"/\"\n{more}");
    for (text, line, expected) in [
        ("", None, "[[page]]"),
        (&page("thnik = \"constant 1s\"\n"), Some(4), "think"),
        (&page("think = \"1s\"\n"), Some(4), "exponential 7s"),
        (&page("repeat = \"0\"\n"), Some(4), "geometric"),
        (&page("next = { b = 1.0 }\n"), Some(4), "no page of this journey is called \"b\""),
        (&page("next = { a = 0.5, end = 0.4 }\n"), Some(4), "sum to 0.9, not to 1"),
        (
            &page("next = { end = 1.0 }\n[[page]]\nname = \"b\"\npath = \"/b\"\n"),
            Some(5),
            "no page leads to \"b\"",
        ),
        (&page("body = \"t={{token}}\"\n"), Some(1), "uses {{token}} before it is taken"),
        (&page("body = \"{{user.name}}\"\n"), Some(4), "no [[data]] is called \"user\""),
        (&page("body = \"{{int x}}\"\n"), Some(4), "neither a variable nor a function"),
        (&page("take.t = { json = \"token\" }\n"), Some(4), "begins with a slash"),
        (&page("take.t = { regex = \"(\" }\n"), Some(4), "regular expression"),
        (&page("take.t = { json = \"/a\", header = \"b\" }\n"), Some(4), "2 sources are named"),
        (&page("expect.status = [99]\n"), Some(4), "from 200 to 599"),
        (&page("headers.Host = \"x\"\n"), Some(4), "no header field"),
        (&page("method = \"A B\"\n"), Some(4), "not one word"),
        ("[[page]]\nname = \"end\"\npath = \"/\"\n", Some(2), "is no name"),
        ("[[page]]\nname = \"a\"\npath = \"login\"\n", Some(3), "does not begin with a slash"),
        ("[[data]]\nname = \"u\"\nfile = \"none.csv\"\n", Some(3), "cannot read the data"),
    ] {
        let text = refusal(text);
        assert!(text.contains(expected), "{text}");
        if let Some(line) = line {
            assert!(text.starts_with(&format!("j.toml:{line}: ")), "{line}: {text}");
        }
    }
    let unknown = refusal(&EXAMPLE.replace("user.password", "user.pass"));
    assert!(unknown.contains("has no column \"pass\"; it has name, password"), "{unknown}");
}

/// A page whose path is a row, drawn for each request; with `more` in its data, and `page`.
fn drawn(more: &str, page: &str) -> String {
    format!(
        "[[data]]\nname = \"item\"\nfile = \"items.csv\"\n{more}\n\
         [[page]]\nname = \"a\"\npath = \"/{{{{item.path}}}}\"\n{page}"
    )
}

#[test]
fn rows_of_requests_have_weights_and_the_sizes_that_a_server_gives() {
    let order = "order = \"each_request\"\nweight = \"n\"";
    let serve = "serve.bytes = \"{{item.bytes}}\"\nserve.status = 404\nexpect.status = [404]\n\
                 [[page.request]]\npath = \"/x\"\nrepeat = \"mean 0.35\"\n";
    let journeys = parsed(&drawn(order, serve));
    assert!(journeys.data[0].is_weighted());
    let served = &journeys.requests[0].served;
    assert_eq!(
        (&served.bytes, served.status),
        (&ServedBytes::Column { data: 0, column: 1 }, Some(404))
    );
    for (data, page, line, expected) in [
        ("order = \"random\"\nweight = \"n\"", "", 5, "drawn for each request"),
        ("order = \"each_request\"\nweight = \"m\"", "", 5, "has no column \"m\""),
        ("order = \"each_request\"\nweight = \"path\"", "", 3, "line 2: its weight"),
        ("order = \"each_request\"\ncertificate = \"path\"", "", 5, "a user has one certificate"),
        ("", "serve.bytes = \"{{item.path}}\"", 8, "row 1 of \"item\" has no number of bytes"),
        ("", "serve.bytes = \"{{item.size}}\"", 8, "has no column \"size\""),
        ("", "serve.status = 99", 8, "99 is no status"),
        ("", "repeat = \"mean 0.5\"", 8, "means from 1"),
        (
            "",
            "[[page.request]]\npath = \"/x\"\nserve.bytes = \"{{item.bytes}}\"",
            10,
            "the path of the request names no row of \"item\"",
        ),
        (
            "",
            "[[page.request]]\npath = \"/x\"\ntake.t = { cookie = \"t\" }\nrepeat = \"mean 0.5\"\n\
             [[page]]\nname = \"b\"\npath = \"/{{t}}\"\n",
            12,
            "uses {{t}} before it is taken",
        ),
    ] {
        let text = refusal(&drawn(data, page));
        assert!(text.contains(expected), "{text}");
        assert!(text.starts_with(&format!("j.toml:{line}: ")), "{line}: {text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_file_is_too_strange(cut in 0..EXAMPLE.len(), text in "[ -~\n]{0,20}") {
        let Some((before, after)) = EXAMPLE.split_at_checked(cut) else { return Ok(()) };
        drop(parse(Path::new("j.toml"), &format!("{before}{text}{after}"), &read));
    }
}
