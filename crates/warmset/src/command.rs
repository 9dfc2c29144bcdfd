//! The command line of this process, as results name it.

/// The command line without the names of trace and output: the same input gives the same trace,
/// byte for byte.
pub fn without_outputs() -> String {
    let mut words = vec!["warmset".to_owned()];
    let mut skip = false;
    for word in std::env::args().skip(1) {
        let output = ["--trace", "-o", "--output"];
        if std::mem::take(&mut skip) || output.iter().any(|o| word.starts_with(&format!("{o}="))) {
            continue;
        }
        if output.contains(&word.as_str()) {
            skip = true;
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}

/// The whole command line, quoted for a shell, without the path of this program.
pub fn whole() -> String {
    let quoted = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    std::iter::once("warmset".to_owned())
        .chain(
            std::env::args_os()
                .skip(1)
                .map(|word| quoted(word.to_string_lossy().into_owned())),
        )
        .collect::<Vec<_>>()
        .join(" ")
}

/// The words that start this program: the path that it was started by, where there was one.
pub fn program() -> String {
    std::env::args()
        .next()
        .filter(|name| name.contains('/'))
        .unwrap_or_else(|| "warmset".to_owned())
}
