//! Files of replays: what is read, and what is refused with its line.

use super::*;

fn read_text(text: &str) -> Result<Replay, String> {
    read(&mut text.as_bytes(), "r.csv").map_err(|error| error.to_string())
}

#[test]
fn lines_become_due_times_and_different_requests() {
    let replay = read_text(
        "at_us,method,path,status,bytes\r\n500,GET,/a,304,0\n700,head,/a,200,9\n\
         1500,GET,\"/b?x=1,2\",404,12\n1500,GET,/b?x=1,2,404,12\n2000,GET,/a,200,77",
    )
    .unwrap();
    let offsets: Vec<u64> = replay.offsets.iter().map(|due| due.0).collect();
    assert_eq!(offsets, [0, 200_000, 1_000_000, 1_000_000, 1_500_000]);
    let paths = |index: usize| (&*replay.requests[index].path, replay.requests[index].bytes);
    assert_eq!((replay.requests.len(), paths(0), paths(2)), (3, ("/a", 77), ("/b?x=1,2", 12)));
    let lines: Vec<u32> = replay.lines.iter().map(|line| line.request).collect();
    assert_eq!(lines, [0, 1, 2, 2, 0]);
    let served = |method, path| replay.find(method, path).map(|one| (one.status, one.bytes));
    assert_eq!(served("GET", "/a"), Some((200, 77)));
    assert_eq!((served("HEAD", "/a"), served("HEAD", "/b")), (Some((200, 9)), None));
}

#[test]
fn a_server_gives_the_statuses_of_a_path_in_the_order_of_its_lines() {
    let statuses = [304, 200, 302, 206, 302];
    let lines = statuses.iter().zip(0..).map(|(status, at)| format!("{at},GET,/,{status},9\n"));
    let replay = read_text(&format!("{HEADER}\n{}", lines.collect::<String>())).unwrap();
    let request = replay.find("GET", "/").unwrap();
    let given: Vec<u16> = (0..6).map(|_| request.next_status()).collect();
    assert_eq!(given, [200, 200, 302, 200, 302, 200]);
}

#[test]
fn a_bad_line_is_refused_with_its_number() {
    for (line, expected) in [
        ("", "it has no five values"),
        ("9,GET,/a,200", "it has no five values"),
        ("x,GET,/a,200,1", "at_us \"x\" is no whole number"),
        ("4,GET,/a,200,1", "at_us is less than in the line before"),
        ("40000000000000,GET,/a,200,1", "more than a year"),
        ("9,G T,/a,200,1", "method \"G T\" is not one word"),
        ("9,GET,a,200,1", "\"a\" is no path"),
        ("9,GET,/a b,200,1", "\"/a b\" is no path"),
        ("9,GET,/ü,200,1", "is no path"),
        ("9,GET,/a,600,1", "status \"600\" is no whole number up to 599"),
        ("9,GET,/a,99,1", "status 99 is none of HTTP"),
        ("9,GET,/a,200,-", "bytes \"-\" is no whole number"),
        ("9,GET,/a,x,1", "status \"x\""),
    ] {
        let refused = read_text(&format!("{HEADER}\n5,GET,/,200,1\n{line}\n")).unwrap_err();
        assert!(refused.starts_with("r.csv:3: "), "{refused}");
        assert!(refused.contains(expected), "{refused}");
    }
    let methods: String = (0..9).map(|n| format!("5,M{n},/,200,1\n")).collect();
    let refused = read_text(&format!("{HEADER}\n{methods}")).unwrap_err();
    assert!(refused.starts_with("r.csv:10: method \"M8\" is one more"), "{refused}");
    for (text, expected) in [
        ("", "r.csv: it has no two requests"),
        ("at,method\n", "r.csv:1: the header line is not at_us"),
        (&format!("{HEADER}\n5,GET,/,200,1\n5,GET,/,200,1\n"), "r.csv: it has no two requests"),
        (&format!("{HEADER}\n5,GET,/{},200,1\n", "a".repeat(70_000)), "r.csv:2: the line has more"),
    ] {
        let refused = read_text(text).unwrap_err();
        assert!(refused.starts_with(expected), "{refused}");
    }
    assert!(read(&mut &b"\xff\xfe\n"[..], "r.csv").is_err());
}

proptest::proptest! {
    #[test]
    fn no_file_is_too_strange(text in "[0-9a-zGET/,\"\n -]{0,200}", bytes: Vec<u8>) {
        drop(read_text(&format!("{HEADER}\n{text}")));
        drop(read(&mut &bytes[..], "r.csv"));
    }
}
