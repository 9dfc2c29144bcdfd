//! Whatever bytes come in, every parser answers or refuses in one line; it never panics.

use model::{Bytes, CpuSet, Delay, Duration, input, taskfile};
use proptest::prelude::*;

/// Text that looks like a task set, with everything in it likely to be wrong.
fn toml_like() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("name"),
        Just("wcet"),
        Just("period"),
        Just("deadline"),
        Just("wss"),
        Just("phase"),
        Just("soft"),
        Just("workload"),
        Just("wcett"),
        Just("task"),
        Just("\"\""),
    ];
    let value = prop_oneof![
        Just("\"4ms\"".to_owned()),
        Just("\"0ms\"".to_owned()),
        Just("-3".to_owned()),
        Just("1e400".to_owned()),
        Just("{ kind = \"walk\", write_ratio = nan }".to_owned()),
        Just("[[]]".to_owned()),
        Just("true".to_owned()),
        Just("\"18446744073709551615ns\"".to_owned()),
        "\"[0-9.a-zµ ]{0,12}\"",
        "[ -~]{0,12}",
    ];
    proptest::collection::vec((prop::bool::weighted(0.3), key, value), 0..12).prop_map(|entries| {
        entries
            .into_iter()
            .fold(String::new(), |text, (opens, key, value)| {
                format!(
                    "{text}{}{key} = {value}\n",
                    if opens { "[[task]]\n" } else { "" }
                )
            })
    })
}

fn is_one_line(e: &model::Error) -> bool {
    !e.to_string().contains('\n') && !e.cause().is_empty()
}

proptest! {
    #[test]
    fn task_sets_never_panic(text in toml_like()) {
        match taskfile::from_toml(&text) {
            Ok(set) => prop_assert_eq!(taskfile::from_toml(&taskfile::to_toml(&set)).unwrap(), set),
            Err(e) => prop_assert!(is_one_line(&e), "{}", e),
        }
    }

    #[test]
    fn batch_lines_never_panic(
        text in "(\\{\"id\":1,\"m\":[0-9]{1,2},\"tasks\":\\[\\{)?[ -~]{0,60}",
    ) {
        if let Err(e) = taskfile::from_batch_line(&text) {
            prop_assert!(is_one_line(&e), "{}", e);
        }
    }

    #[test]
    fn bytes_become_text_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(e) = input::text_of(bytes) {
            prop_assert!(is_one_line(&e), "{}", e);
        }
    }

    #[test]
    fn values_never_panic(text in "\\PC{0,24}") {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Delay>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<CpuSet>();
    }

    #[test]
    fn durations_write_what_they_read(ns in any::<u64>()) {
        let d = Duration::from_nanos(ns);
        prop_assert_eq!(d.to_string().parse::<Duration>().unwrap(), d);
    }
}
