//! Numbers as people write them: at most three digits that count, with a unit.

use model::{Bytes, Delay, Duration, Instant};

/// A number with as many decimals as it needs, at most four: `0.5`, `725`.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// A number with three digits that count, and never fewer than its whole part: `1.03`, `26.2`,
/// `7559`.
pub fn three(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 0.0005 => 0,
        v if v < 0.9995 => 3 - (v.log10() + 1e-9).floor() as i32 - 1,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!(
        "{value:.*}",
        usize::try_from(decimals.clamp(0, 6)).unwrap_or(0)
    );
    match text
        .trim_start_matches('-')
        .chars()
        .all(|c| c == '0' || c == '.')
    {
        true => "0".to_owned(),
        false => text.replace('-', "−"),
    }
}

/// Length in nanoseconds and name of the unit in which a time of `ns` nanoseconds is written. Every
/// time in a figure, a table and a sentence gets its unit here: the largest one of which it is one
/// at least.
pub fn time_unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// A delay: `17.5 µs`, `1.03 ms`, `−170 ns`.
pub fn time(delay: Delay) -> String {
    time_f64(delay.nanos() as f64)
}

/// A time of `ns` nanoseconds, in three digits.
pub fn time_f64(ns: f64) -> String {
    if ns.abs() < 0.0005 {
        return "0".to_owned();
    }
    // The unit belongs to what is written: 999,600 ns are written as 1.00 ms.
    let digits = 10f64.powf(ns.abs().log10().floor() - 2.0);
    let (scale, name) = time_unit((ns / digits).round() * digits * (1.0 + 1e-12));
    // Whole nanoseconds have no decimals.
    match scale == 1.0 && ns.fract() == 0.0 {
        true => format!("{} {name}", plain(ns).replace('-', "−")),
        false => format!("{} {name}", three(ns / scale)),
    }
}

/// A duration: `33 ms`, `725 µs`.
pub fn duration(d: Duration) -> String {
    time_rounded(Delay::from(d))
}

/// A time that a person chose, such as a tick or a period, without idle zeros: `100 ns`, `10 µs`,
/// `33 ms`.
pub fn time_rounded(delay: Delay) -> String {
    let ns = delay.nanos() as f64;
    if ns == 0.0 {
        return "0".to_owned();
    }
    let (scale, name) = time_unit(ns);
    format!("{} {name}", plain(ns / scale).replace('-', "−"))
}

/// A moment of a schedule to the nanosecond: `16.5 ms`.
pub fn moment(time: Instant) -> String {
    let ns = time.nanos();
    if ns == 0 {
        return "0 ms".to_owned();
    }
    // Integers: a schedule may last for longer than floating point counts nanoseconds.
    let (scale, name) = time_unit(ns as f64);
    let scale = scale as u64;
    let (whole, rest) = (ns / scale, ns % scale);
    let digits = scale.ilog10() as usize;
    let text = format!("{whole}.{rest:0digits$}");
    let text = match rest {
        0 => whole.to_string(),
        _ => text.trim_end_matches('0').to_owned(),
    };
    format!("{text} {name}")
}

/// The units that the page writes after a number and a space.
const UNITS: [&str; 10] = ["%", "ns", "us", "µs", "ms", "s", "B", "KiB", "MiB", "GiB"];

/// The text with every number and its unit written in one way, `gap` between the two: `17.8 ms` for
/// `17.8ms`, `250 µs` for `250us`. What is joined to other letters, such as a name, stays as it is.
pub fn spaced(text: &str, gap: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let joined = rest[..start]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '·'));
        out += &rest[..start];
        rest = &rest[start..];
        let digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
        let length = rest.find(|c| !digit(c)).unwrap_or(rest.len());
        let number = rest[..length].trim_end_matches(['.', ',']);
        out += number;
        rest = &rest[number.len()..];
        if joined {
            // The whole word, so that its later digits are not taken for a number.
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            out += &rest[..end];
            rest = &rest[end..];
            continue;
        }
        let after = rest.strip_prefix([' ', '\u{a0}']).unwrap_or(rest);
        let end = after
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '_')))
            .unwrap_or(after.len());
        let (word, behind) = after.split_at(end);
        let hyphen = behind.starts_with('-') || behind.starts_with('/');
        if let Some(unit) = UNITS.iter().find(|u| **u == word).filter(|_| !hyphen) {
            out.push(gap);
            out += if *unit == "us" { "µs" } else { unit };
            rest = behind;
        } else if after.len() == rest.len() {
            // `0x1f`, `24-core`, `5s1`: one word.
            out += word;
            rest = behind;
        }
    }
    out + rest
}

/// A size: `256 KiB`.
pub fn size(bytes: Bytes) -> String {
    spaced(&bytes.to_string(), ' ')
}

/// A count with its noun: `1 sample`, `12,000 samples`.
pub fn count(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// A number with its thousands apart: `12,000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Things in a row: `a`, `a and b`, `a, b and c`.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", rest.join(", "), last.as_ref())
        }
    }
}

/// A sentence begins with a capital.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        for (ns, text) in [
            (17_520, "17.5 µs"),
            (1_027_770, "1.03 ms"),
            (-170, "−170 ns"),
            (130, "130 ns"),
            (12, "12 ns"),
            (1_000, "1.00 µs"),
            (999_600, "1.00 ms"),
            (999_400, "999 µs"),
            (37_139_300, "37.1 ms"),
            (0, "0"),
            (1_500_000_000, "1.50 s"),
        ] {
            assert_eq!(time(Delay::from_nanos(ns)), text, "{ns}");
        }
        assert_eq!(time_f64(12.34), "12.3 ns");
        assert_eq!(duration(Duration::ZERO), "0");
        assert_eq!(duration(Duration::from_nanos(999_900)), "999.9 µs");
        assert_eq!(duration(Duration::from_micros(725)), "725 µs");
        assert_eq!(duration(Duration::from_millis(33)), "33 ms");
        assert_eq!(size(Bytes::from_kib(256)), "256 KiB");
        assert_eq!(count(12_000, "sample"), "12,000 samples");
        assert_eq!(count(1, "sample"), "1 sample");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(
            (plain(0.5), plain(24.0), plain(-0.0)),
            ("0.5".into(), "24".into(), "0".into())
        );
    }

    #[test]
    fn units_are_written_one_way_wherever_they_come_from() {
        for (text, one_way) in [
            ("a delay of 17.8ms, 32MiB", "a delay of 17.8 ms, 32 MiB"),
            ("from 0ns to 250us.", "from 0 ns to 250 µs."),
            ("at most −4.5us (2s)", "at most −4.5 µs (2 s)"),
            ("12.5 µs and 3 samples", "12.5 µs and 3 samples"),
            ("1,024B; 17 %; 17%", "1,024 B; 17 %; 17 %"),
            (
                "task2ms, g5s, 5s1, 24-core, L2 of 2",
                "task2ms, g5s, 5s1, 24-core, L2 of 2",
            ),
            (
                "c-edf:size=4, 0-3,8 of 0x1f, v1.2.3",
                "c-edf:size=4, 0-3,8 of 0x1f, v1.2.3",
            ),
            (
                "6.1.158-s at 2.50GHz a 5ms-task",
                "6.1.158-s at 2.50GHz a 5ms-task",
            ),
        ] {
            assert_eq!(spaced(text, ' '), one_way);
            assert_eq!(spaced(one_way, ' '), one_way, "written once more it stays");
        }
        for (ns, text) in [
            (0, "0 ms"),
            (999, "999 ns"),
            (16_500_001, "16.500001 ms"),
            (110_000_000, "110 ms"),
            (9_007_199_254_740_993, "9007199.254740993 s"),
        ] {
            assert_eq!(moment(Instant::from_nanos(ns)), text);
        }
    }
}
