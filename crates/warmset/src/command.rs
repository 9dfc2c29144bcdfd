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
