//! The stamps of access logs as time since the Unix epoch.

use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

/// `10/Oct/2000:13:55:36 -0700`: nginx's `$time_local`, Apache's `%t`.
pub(super) fn read_common(text: &str) -> Option<Nanos> {
    let bytes = text.as_bytes();
    let separators = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if bytes.len() != 26 || separators.iter().any(|(at, byte)| bytes[*at] != *byte) {
        return None;
    }
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = MONTHS.find(text.get(3..6)?).filter(|at| at % 3 == 0)? as u64 / 3 + 1;
    let date = [number(&bytes[7..11])?, month, number(&bytes[..2])?];
    let time = [number(&bytes[12..14])?, number(&bytes[15..17])?, number(&bytes[18..20])?];
    let zone = [number(&bytes[22..24])?, number(&bytes[24..26])?];
    Some(Nanos(instant(date, time, bytes[21], zone)? * NANOS_PER_SECOND))
}

/// `2024-05-01T12:00:00.123456789Z`, with a fraction or without, with `+02:00` or `Z`; and the digits
/// of its fraction. RFC 3339
pub(super) fn read_rfc3339(text: &str) -> Option<(Nanos, usize)> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if bytes.len() < 20 || separators.iter().any(|(at, byte)| bytes[*at] != *byte) {
        return None;
    }
    let date = [number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..10])?];
    let time = [number(&bytes[11..13])?, number(&bytes[14..16])?, number(&bytes[17..19])?];
    let rest = text.get(19..)?;
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let zone = if digits > 0 { &fraction[digits..] } else { rest };
    let seconds = match zone.as_bytes() {
        b"Z" | b"z" => instant(date, time, b'+', [0, 0])?,
        [sign, hours @ .., m1, m2] if matches!(hours.len(), 2 | 3) => {
            let zone = [number(&hours[..2])?, number(&[*m1, *m2])?];
            instant(date, time, *sign, zone)?
        }
        _ => return None,
    };
    Some((Nanos(seconds * NANOS_PER_SECOND + fraction_ns(&fraction[..digits])?), digits))
}

/// `1700000000.123`: seconds and a fraction; and the digits of it.
pub(super) fn read_seconds(text: &str) -> Option<(Nanos, usize)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = number(whole.as_bytes()).filter(|seconds| *seconds < SECONDS_MAX)?;
    Some((Nanos(seconds * NANOS_PER_SECOND + fraction_ns(fraction)?), fraction.len()))
}

/// The year 2500: Unix times in nanoseconds end in 2554.
const SECONDS_MAX: u64 = 16_725_225_600;

/// Nanoseconds of the digits after the point.
fn fraction_ns(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    let used = &digits.as_bytes()[..digits.len().min(9)];
    Some(number(used)? * 10_u64.pow(9 - used.len() as u32))
}

/// Seconds since the Unix epoch of a local time that is `sign` `zone` from UTC.
fn instant(
    [year, month, day]: [u64; 3],
    [hour, minute, second]: [u64; 3],
    sign: u8,
    zone: [u64; 2],
) -> Option<u64> {
    let is_date =
        (1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // 60: a leap second.
    if !is_date || hour > 23 || minute > 59 || second > 60 || zone[0] > 15 || zone[1] > 59 {
        return None;
    }
    // Years begin in March, so that the day that some lack is the last one.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    let local = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    let offset = zone[0] * 3_600 + zone[1] * 60;
    match sign {
        b'+' => local.checked_sub(offset),
        b'-' => Some(local + offset),
        _ => None,
    }
}

/// A number of digits alone, of up to 18.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_all_formats_name_the_same_instant() {
        let expected = Nanos(971_211_336 * NANOS_PER_SECOND);
        assert_eq!(read_common("10/Oct/2000:13:55:36 -0700"), Some(expected));
        assert_eq!(read_common("11/Oct/2000:02:25:36 +0530"), Some(expected));
        assert_eq!(read_rfc3339("2000-10-10T20:55:36Z"), Some((expected, 0)));
        assert_eq!(read_rfc3339("2000-10-10T13:55:36-07:00"), Some((expected, 0)));
        assert_eq!(read_rfc3339("2000-10-10T13:55:36-0700"), Some((expected, 0)));
        assert_eq!(read_seconds("971211336"), Some((expected, 0)));
        let later = Nanos(expected.0 + 250_000_000);
        assert_eq!(read_rfc3339("2000-10-10T20:55:36.25Z"), Some((later, 2)));
        assert_eq!(read_seconds("971211336.250"), Some((later, 3)));
    }

    #[test]
    fn leap_days_and_the_end_of_a_year_are_days_like_others() {
        let seconds = |text: &str| read_common(text).unwrap().0 / NANOS_PER_SECOND;
        assert_eq!(
            seconds("01/Jan/2025:00:00:00 +0000") - seconds("31/Dec/2024:23:59:59 +0000"),
            1
        );
        assert_eq!(
            seconds("01/Mar/2024:00:00:00 +0000") - seconds("28/Feb/2024:00:00:00 +0000"),
            172_800
        );
        assert_eq!(
            seconds("01/Mar/2100:00:00:00 +0000") - seconds("28/Feb/2100:00:00:00 +0000"),
            86_400
        );
        // Summer time ends: the clock shows an hour twice, the offset tells them apart.
        assert_eq!(
            seconds("27/Oct/2024:02:00:00 +0100") - seconds("27/Oct/2024:02:00:00 +0200"),
            3_600
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000:25:55:36 -0700",
            "99/Oct/2000:13:55:36 -0700",
            "10/Oct/2000:13:55:36",
        ] {
            assert_eq!(read_common(text), None, "{text}");
        }
        for text in
            ["2000-10-10", "2000-10-10T20:55:36", "2000-10-10T20:55:36.Z", "2000-13-10T20:55:36Z"]
        {
            assert_eq!(read_rfc3339(text), None, "{text}");
        }
        assert_eq!(read_seconds("-5"), None);
        assert_eq!(read_seconds("99999999999999"), None);
    }
}
