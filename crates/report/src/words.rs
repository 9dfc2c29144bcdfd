//! Numbers as people write them: at most three digits that count, with a unit.

use model::{Bytes, Delay, Duration};

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

/// A number with three digits that count, and never fewer than its whole part: `1.03`, `26.2`, `7559`.
pub fn three(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 0.0005 => 0,
        v if v < 0.9995 => 3 - (v.log10() + 1e-9).floor() as i32 - 1,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.*}", usize::try_from(decimals.clamp(0, 6)).unwrap_or(0));
    match text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        true => "0".to_owned(),
        false => text.replace('-', "−"),
    }
}

/// The unit in which a time of so many nanoseconds is written, and its length.
fn unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        v if v >= 999.5e6 => (1e9, "s"),
        v if v >= 999.5e3 => (1e6, "ms"),
        v if v >= 99.95 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// A delay: `17.5 µs`, `1.03 ms`, `−0.170 µs`.
pub fn time(delay: Delay) -> String {
    time_f64(delay.nanos() as f64)
}

/// A time of so many nanoseconds.
pub fn time_f64(ns: f64) -> String {
    if ns == 0.0 {
        return "0 µs".to_owned();
    }
    let (scale, name) = unit(ns);
    format!("{} {name}", three(ns / scale))
}

/// A duration: `33 ms`, `725 µs`.
pub fn duration(d: Duration) -> String {
    time_rounded(Delay::from(d))
}

/// A time that a person chose, such as a tick or a period, without idle zeros: `100 ns`, `10 µs`, `33 ms`.
pub fn time_rounded(delay: Delay) -> String {
    let ns = delay.nanos() as f64;
    let (scale, name) = match ns.abs() {
        0.0 => (1e3, "µs"),
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {name}", plain(ns / scale))
}

/// A size: `256 KiB`.
pub fn size(bytes: Bytes) -> String {
    let text = bytes.to_string();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    format!("{} {}", &text[..digits], &text[digits..])
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
            (-170, "−0.170 µs"),
            (130, "0.130 µs"),
            (12, "12.0 ns"),
            (999_600, "1.00 ms"),
            (37_139_300, "37.1 ms"),
            (0, "0 µs"),
            (1_500_000_000, "1.50 s"),
        ] {
            assert_eq!(time(Delay::from_nanos(ns)), text, "{ns}");
        }
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
}
