//! Lines of access logs, and their formats.

use plimsoll_derive::line::LogFormat;

/// Formats of which a line may be.
const FORMATS: [&str; 6] = [
    "combined",
    "apache-combined",
    "common",
    "json",
    r#"$msec $request_time "$request" $status $cookie_sid"#,
    "%{end:msec}t %m %U%q %>s %D %u",
];

/// Reads any bytes as a line of every format, and as a format.
pub fn log_line(bytes: &[u8]) {
    for format in FORMATS {
        if let Ok(format) = LogFormat::parse(format) {
            let _ = format.read(bytes);
        }
    }
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    if let (Some(Ok(format)), Some(line)) = (parts.next().map(str::from_utf8), parts.next())
        && let Ok(format) = LogFormat::parse(format)
    {
        let _ = format.read(line);
    }
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let _ = LogFormat::recognise(&lines);
}
