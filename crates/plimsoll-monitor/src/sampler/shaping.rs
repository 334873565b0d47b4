//! Rates that an interface is shaped to (tc-tbf(8)). The kernel tells them over netlink alone, so
//! the system's `tc` is asked, once for an interface.

use std::process::{Command, Stdio};

use crate::root::Root;

/// What `tc` said on another host, of the token buckets of all its interfaces.
const SHAPING_FILE: &str = "plimsoll/shaping";
const BITS_PER_BYTE: f64 = 8.0;

/// Bytes per second that an interface may send; `pid` is a process in its network namespace where
/// that is not ours. Nothing where it is not shaped, or that cannot be known.
pub(super) fn shaped_bytes_per_s(root: &Root, pid: Option<u32>, interface: &str) -> Option<f64> {
    if let Some(frame) = root.frame() {
        let text = frame.text(SHAPING_FILE).filter(|_| pid.is_none())?;
        let dev = format!(" dev {interface} ");
        return text.lines().find(|line| line.contains(&dev)).and_then(parse_tbf);
    }
    if !root.is_this_host() {
        return None;
    }
    let mut command = match pid {
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.args(["--net", "--target", &pid.to_string(), "tc"]);
            command
        }
        None => Command::new("tc"),
    };
    command.args(["qdisc", "show", "dev", interface]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    parse_tbf(&String::from_utf8_lossy(&output.stdout))
}

/// The rate of a token bucket at the root, as `tc` writes it: `rate 20Mbit`.
fn parse_tbf(text: &str) -> Option<f64> {
    let line =
        text.lines().find(|line| line.starts_with("qdisc tbf") && line.contains(" root "))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "rate");
    let rate = words.nth(1)?.strip_suffix("bit")?;
    let (number, factor) = match rate.strip_suffix(['K', 'M', 'G']) {
        Some(number) if rate.ends_with('K') => (number, 1e3),
        Some(number) if rate.ends_with('M') => (number, 1e6),
        Some(number) => (number, 1e9),
        None => (rate, 1.0),
    };
    let bits: f64 = number.parse().ok()?;
    Some(bits * factor / BITS_PER_BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    #[test]
    fn the_rate_of_a_token_bucket_is_in_bytes() {
        let line =
            |rate| format!("qdisc tbf 8001: root refcnt 2 rate {rate} burst 4Kb lat 400ms\n");
        assert_eq!(parse_tbf(&line("20Mbit")), Some(2_500_000.0));
        assert_eq!(parse_tbf(&line("800bit")), Some(100.0));
        assert_eq!(parse_tbf(&line("1Gbit")), Some(125_000_000.0));
        assert_eq!(parse_tbf("qdisc noqueue 0: root refcnt 2\n"), None);
        assert_eq!(parse_tbf(&line("fast")), None);
    }

    #[test]
    fn another_hosts_interfaces_are_told_apart() {
        let text = "qdisc tbf 8001: dev eth0 root refcnt 2 rate 20Mbit burst 4Kb lat 400ms\n\
                    qdisc tbf 8002: dev eth01 root refcnt 2 rate 8Mbit burst 4Kb lat 400ms\n";
        let frame = Frame::default();
        frame.replace([(SHAPING_FILE.to_owned(), text.to_owned())].into());
        let root = Root::of_frame(frame);
        let rate = |interface| shaped_bytes_per_s(&root, None, interface);
        assert_eq!(rate("eth0"), Some(2_500_000.0));
        assert_eq!(rate("eth01"), Some(1_000_000.0));
        assert_eq!(rate("eth1"), None);
    }
}
