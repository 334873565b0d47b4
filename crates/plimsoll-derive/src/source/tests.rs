use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_model::units::NANOS_PER_SECOND;

use super::*;
use crate::order::Ordered;

const NOW: Nanos = Nanos(1_800_000_000 * NANOS_PER_SECOND);

fn line(second: u64, path: &str) -> String {
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!(
        "::1 - - [10/Oct/2020:{hour:02}:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \
         \"-\" \"x\"\n"
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Seconds of the day and path of each request, in order; and what was counted.
fn read(files: &[(&str, Vec<u8>)]) -> Result<(Vec<(u64, String)>, Ordered), DeriveError> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, bytes)| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        })
        .collect();
    let mut ordered = Ordered::new(&paths, None, Reading::new(false, NOW))?;
    let mut read = Vec::new();
    let mut last = Nanos::ZERO;
    while let Some(request) = ordered.next()? {
        assert!(request.begin >= last);
        last = request.begin;
        let path = ordered.reading.paths.text(request.path).to_owned();
        read.push((request.begin.0 / NANOS_PER_SECOND % 86_400, path));
    }
    Ok((read, ordered))
}

#[test]
fn files_in_any_order_some_compressed_are_one_log() {
    let first: String = (0..300).map(|second| line(second, "/a")).collect();
    let second: String = (300..500).map(|second| line(second, "/b?secret=1")).collect();
    // A second server's, at the same time.
    let other: String = (100..400).map(|second| line(second, "/c")).collect();
    let files = [
        ("access.log", second.into_bytes()),
        ("empty.log", Vec::new()),
        (
            "access.log.1.gz",
            [
                gzip(&first.as_bytes()[..first.len() / 2]),
                gzip(&first.as_bytes()[first.len() / 2..]),
            ]
            .concat(),
        ),
        ("other.log", other.into_bytes()),
    ];
    let (read, ordered) = read(&files).unwrap();
    let count = |path: &str| read.iter().filter(|(_, it)| it == path).count();
    assert_eq!((count("/a"), count("/b"), count("/c"), read.len()), (300, 200, 300, 800));
    assert_eq!((ordered.late.requests, ordered.empty_files.len()), (0, 1));
}

#[test]
fn disorder_of_a_minute_is_sorted_and_later_lines_are_counted() {
    let seconds = [100, 159, 101, 400, 100, 399];
    let text: String = seconds.iter().map(|second| line(*second, "/a")).collect();
    let (read, ordered) = read(&[("a.log", text.into_bytes())]).unwrap();
    let seconds: Vec<u64> = read.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, [100, 101, 159, 159, 399, 400]);
    assert_eq!(ordered.late.requests, 1);
    assert!(ordered.late.moved_max > Nanos::from_secs(57));
}

#[test]
fn requests_of_one_second_keep_their_order_and_fill_the_second() {
    let text: String = (0..1_000).map(|n| line(7, &format!("/p{n:04}"))).collect();
    let (read, ordered) = read(&[("a.log", text.into_bytes())]).unwrap();
    assert!(read.iter().all(|(second, _)| *second == 7));
    assert!(read.is_sorted_by_key(|(_, path)| path.clone()));
    assert_eq!(ordered.reading.resolution, Nanos::from_secs(1));
}

#[test]
fn lines_that_cannot_be_read_are_counted_by_reason() {
    let text = format!(
        "{}{}\n{}{}\0\n{}",
        line(1, "/a"),
        "x".repeat(70_000),
        line(2, "/b").replace("2020", "2999"),
        line(3, "/c").trim_end(),
        &line(4, "/d")[..60]
    );
    let (requests, ordered) = read(&[("a.log", text.into_bytes())]).unwrap();
    assert_eq!(requests.len(), 1);
    let counted: Vec<_> = ordered
        .reading
        .unreadable
        .iter()
        .map(|(reason, it)| (*reason, it.lines, it.first_line))
        .collect();
    use UnreadableLine::{Future, Half, NotText, TooLong};
    // A year is read until 2500.
    assert_eq!(
        counted,
        [(Half, 1, 5), (UnreadableLine::Stamp, 1, 3), (NotText, 1, 4), (TooLong, 1, 2)]
    );
    let soon = line(2, "/b").replace("2020", "2040");
    let (_, ordered) = read(&[("a.log", (line(1, "/a") + &soon).into_bytes())]).unwrap();
    assert_eq!(ordered.reading.unreadable[&Future].lines, 1);
}

#[test]
fn a_file_that_is_no_log_is_refused_with_what_to_do() {
    let refusal = |name: &str, bytes: Vec<u8>| {
        let refused = read(&[(name, bytes)]);
        refused.map(|(read, _)| panic!("{name}: {} requests", read.len())).unwrap_err().to_string()
    };
    let good: String = (0..200).map(|second| line(second, "/a")).collect();
    assert!(refusal("a.log", vec![0; 5_000]).contains("--log-format"));
    assert!(refusal("a.zst", b"\x28\xb5\x2f\xfd....".to_vec()).contains("with zstd; decompress"));
    assert!(refusal("a.gz", gzip(&gzip(good.as_bytes()))).contains("compressed twice"));
    let many: String = (0..9_000).map(|n| line(n, &format!("/{}", n * n))).collect();
    let cut = gzip(many.as_bytes());
    let message = refusal("a.gz", cut[..cut.len() / 2].to_vec());
    assert!(message.contains("cannot read it"), "{message}");
    let two = good
        + &"{\"ts\":1.5,\"request\":{\"method\":\"GET\",\"uri\":\"/\"},\"status\":200}\n"
            .repeat(1_001);
    let message = refusal("a.log", two.into_bytes());
    assert!(message.contains("a.log:1200: 1000 lines in a row cannot be read"), "{message}");
}
