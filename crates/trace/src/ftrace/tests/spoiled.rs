//! Texts with anything wrong in them are read or refused, and never panic.

use super::*;
use proptest::prelude::*;

/// Texts of two rounds with some pieces cut out or replaced.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(String::new()),
        Just("18446744073709551615".to_owned()),
        Just("18446744073.5".to_owned()),
        Just("-1".to_owned()),
        Just(" ==> ".to_owned()),
        Just("CPU:0 [LOST 3 EVENTS]\n".to_owned()),
        "[ -~µ]{1,3}",
    ];
    let change = (any::<prop::sample::Index>(), 0_usize..90, piece);
    proptest::collection::vec(change, 0..6).prop_map(|changes| {
        let good = text_of(&[round(0, 1_000), round(20_000, 1_000)]);
        changes.into_iter().fold(good, |text, (at, length, piece)| {
            let all: Vec<char> = text.chars().collect();
            let at = at.index(all.len().max(1)).min(all.len());
            let end = (at + length).min(all.len());
            let (before, behind) = (all[..at].iter(), all[end..].iter());
            before
                .copied()
                .chain(piece.chars())
                .chain(behind.copied())
                .collect()
        })
    })
}

proptest! {
    /// What is made of such a text can be checked, whatever the answer is.
    #[test]
    fn texts_are_read_or_refused(text in texts(), periodic: bool) {
        let made = read(&text)
            .and_then(|records| Schedule::of(&records, &set(), &names(), periodic));
        match made {
            Ok(schedule) => {
                let rule = if periodic { Releases::Periodic } else { Releases::Given };
                if schedule.events.iter().filter_map(Event::cpu).all(|cpu| cpu.0 == 0) {
                    verdict(&schedule, rule);
                }
                prop_assert_eq!(schedule.events.last().map(|e| e.kind), Some(EventKind::End));
            }
            Err(e) => prop_assert!(!e.to_string().contains('\n'), "{}", e),
        }
    }
}

#[test]
fn deadlines_beyond_all_times_are_refused() {
    let text = text_of(&[round(0, 1_000)]);
    let far = Timing::implicit(Duration::from_millis(1), Duration::from_nanos(u64::MAX));
    let set = TaskSet::new(vec![(far, Details::named("hi"))]).unwrap();
    let records = read(&text).unwrap();
    let e = Schedule::of(&records, &set, &[Named::comm("hi")], false).unwrap_err();
    assert!(e.to_string().contains("lies beyond 584 years"), "{e}");
}
