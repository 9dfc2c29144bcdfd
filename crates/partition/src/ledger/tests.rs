//! What the books must hold, whatever clients do.

use super::*;
use proptest::prelude::*;

mod quotas;

fn ledger() -> Ledger {
    Ledger::new(8, (0..80).map(|id| (id, Color((id % 8) as u16))))
}
fn colors(text: &str) -> Colors {
    text.parse().unwrap()
}
const PEER: Peer = Peer {
    pid: 7,
    uid: 1000,
    began: 70,
};

/// A full list and an empty one.
#[test]
fn what_the_books_tell_is_as_its_schema_says() {
    let mut books = ledger();
    let hold = |books: &Ledger| {
        let text = model::document::pretty(&books.summary()).unwrap();
        let document = serde_json::from_str(&text).unwrap();
        testing::schemas::hold("color-list", &document);
        document
    };
    let empty: serde_json::Value = hold(&books);
    assert_eq!(empty["pages"][7]["free"], 10 * TILE_PAGES as u64);
    for (holder, own, quota, access) in [
        (Holder::Uid(1000), "0-1", Some(64), Access::Full),
        (Holder::Group("video".to_owned()), "2", None, Access::Full),
        (Holder::Uid(1000), "2", None, Access::ReadOnly),
    ] {
        books.grant(holder, &colors(own), quota, access).unwrap();
    }
    books.name("video".to_owned(), Some(colors("0-2"))).unwrap();
    let client = books.connect(PEER);
    let tiles = books.take(client, Color(0), 32, Access::Full).unwrap();
    books.give_back(client, &tiles).unwrap();
    books.strike(tiles[0], Blame::Certain);
    books.take(client, Color(1), 16, Access::Full).unwrap();
    books.wrote(client, Color(2));
    let full = hold(&books);
    for key in ["grants", "clients", "spoiled", "violations"] {
        assert!(!full[key].as_array().unwrap().is_empty(), "{key}: {full}");
    }
    assert_eq!(full["pages"][1]["held"], 16);
    assert_eq!(full["violations"][0]["owner"], "group:video");
}

#[test]
fn a_color_is_granted_to_one_holder_only() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1), &colors("0-3"), None, Access::Full)
        .unwrap();
    let e = books
        .grant(Holder::Uid(2), &colors("3-4"), None, Access::Full)
        .unwrap_err()
        .to_string();
    assert!(e.contains("colors 3 are granted to uid:1"), "{e}");
    books
        .take_back(&Holder::Uid(1), &colors("3"), Access::Full)
        .unwrap();
    books
        .grant(Holder::Uid(2), &colors("3-4"), None, Access::Full)
        .unwrap();
    assert!(
        books
            .grant(Holder::Uid(2), &colors("8"), None, Access::Full)
            .is_err()
    );
}

#[test]
fn a_client_takes_what_was_granted_within_its_quota() {
    let mut books = ledger();
    let client = books.connect(PEER);
    assert!(
        books
            .take(client, Color(1), 1, Access::Full)
            .unwrap_err()
            .to_string()
            .contains("no colors")
    );
    books
        .grant(Holder::Uid(1000), &colors("1"), Some(32), Access::Full)
        .unwrap();
    assert_eq!(
        books
            .take(client, Color(1), 17, Access::Full)
            .unwrap()
            .len(),
        2
    );
    let e = books
        .take(client, Color(1), 1, Access::Full)
        .unwrap_err()
        .to_string();
    assert!(e.contains("quota of 32"), "{e}");
    assert!(
        books
            .take(client, Color(2), 1, Access::Full)
            .unwrap_err()
            .to_string()
            .contains("colors 1")
    );
    assert!(
        books
            .take(client, Color(9), 1, Access::Full)
            .unwrap_err()
            .to_string()
            .contains("beyond the last")
    );
}

#[test]
fn colors_that_are_in_use_are_not_taken_back() {
    let mut books = ledger();
    let client = books.connect(PEER);
    books.identify(7, 70);
    books.join(7, "video".to_owned());
    let group = Holder::Group("video".to_owned());
    books
        .grant(group.clone(), &colors("0-1"), None, Access::Full)
        .unwrap();
    let tiles = books.take(client, Color(1), 16, Access::Full).unwrap();
    assert!(
        books
            .take_back(&group, &colors("1"), Access::Full)
            .unwrap_err()
            .to_string()
            .contains("process 7")
    );
    books.give_back(client, &tiles).unwrap();
    assert!(
        books
            .take_back(&group, &colors("1"), Access::Full)
            .unwrap_err()
            .to_string()
            .contains("still mapped")
    );
    books.returned(tiles[0]);
    books.take_back(&group, &colors("1"), Access::Full).unwrap();
    assert_eq!(books.colors_of(client, Access::Full), colors("0"));
}

#[test]
fn a_grant_to_a_process_ends_with_it() {
    let mut books = ledger();
    let client = books.connect(PEER);
    books
        .grant(Holder::Pid(7), &colors("2"), None, Access::Full)
        .unwrap();
    books.disconnect(client);
    assert_eq!(books.processes().into_iter().collect::<Vec<_>>(), [7]);
    let e = books.grant(Holder::Uid(5), &colors("2"), None, Access::Full);
    assert!(
        e.is_err(),
        "a connection that ended is not a process that ended"
    );
    books.ended(7);
    books
        .grant(Holder::Uid(5), &colors("2"), None, Access::Full)
        .unwrap();
}

#[test]
fn more_than_there_is_is_refused_with_what_is_free() {
    let mut books = ledger();
    let client = books.connect(PEER);
    books
        .grant(Holder::Uid(1000), &colors("0"), None, Access::Full)
        .unwrap();
    for pages in [161, u64::MAX] {
        assert!(
            books
                .take(client, Color(0), pages, Access::Full)
                .unwrap_err()
                .to_string()
                .contains("160 are free")
        );
    }
    let tiles = books.take(client, Color(0), 160, Access::Full).unwrap();
    assert_eq!(tiles.len(), 10);
    // Where they are that are not free.
    books.give_back(client, &tiles[..3]).unwrap();
    books.strike(tiles[0], Blame::None);
    let e = books
        .take(client, Color(0), 16, Access::Full)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("0 are free, 112 held, 32 given back but still mapped, 16 struck off"),
        "{e}"
    );
    let summary = books.summary();
    assert_eq!(summary.struck.iter().sum::<u64>(), 16);
    let pages = Pages {
        free: 0,
        held: 112,
        returning: 32,
    };
    assert_eq!((summary.pages[0], summary.struck[0]), (pages, 16));
}

/// 001 §5.3.
#[test]
fn others_read_a_protected_color_and_whoever_wants_to_write_is_refused_and_remembered() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1), &colors("0-1"), None, Access::Full)
        .unwrap();
    books
        .grant(Holder::Uid(1000), &colors("1"), Some(16), Access::ReadOnly)
        .unwrap();
    let owner = books.connect(Peer {
        pid: 5,
        uid: 1,
        began: 50,
    });
    let reader = books.connect(PEER);
    assert_eq!(books.colors_of(reader, Access::Full), Colors::new());
    assert_eq!(books.colors_of(reader, Access::ReadOnly), colors("1"));
    assert_eq!(
        books
            .take(reader, Color(1), 1, Access::ReadOnly)
            .unwrap()
            .len(),
        1
    );
    for _ in 0..2 {
        let e = books
            .take(reader, Color(1), 1, Access::Full)
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("color 1 belongs to uid:1: this process may only read it"),
            "{e}"
        );
        assert!(books.may_only_read(reader, Color(1)));
        books.wrote(reader, Color(1));
    }
    let e = books
        .take(reader, Color(0), 1, Access::Full)
        .unwrap_err()
        .to_string();
    assert!(e.contains("not granted"), "{e}");
    // What is only read counts against the reader's quota, not the owner's.
    let e = books
        .take(reader, Color(1), 1, Access::ReadOnly)
        .unwrap_err()
        .to_string();
    assert!(e.contains("quota of 16 of uid:1000"), "{e}");
    assert_eq!(
        books.take(owner, Color(1), 16, Access::Full).unwrap().len(),
        1
    );
    let violations = books.summary().violations;
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].peer, violations[0].count), (PEER, 2));
    assert_eq!(violations[0].owner, Some(Holder::Uid(1)));
    // The owner's grant is taken back apart from the reader's.
    assert!(
        books
            .take_back(&Holder::Uid(1), &colors("1"), Access::Full)
            .is_err()
    );
    books.disconnect(owner);
    for id in books.returning() {
        books.returned(id);
    }
    books
        .take_back(&Holder::Uid(1), &colors("1"), Access::Full)
        .unwrap();
    let e = books
        .take_back(&Holder::Uid(1000), &colors("1"), Access::ReadOnly)
        .unwrap_err()
        .to_string();
    assert!(e.contains("process 7"), "{e}");
}

#[test]
fn rights_and_what_is_out_pass_to_the_next_server() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1000), &colors("1-2"), Some(64), Access::Full)
        .unwrap();
    books
        .grant(Holder::Uid(5), &colors("1"), None, Access::ReadOnly)
        .unwrap();
    books.identify(7, 70);
    books.join(7, "video".to_owned());
    let client = books.connect(PEER);
    let tiles = books.take(client, Color(1), 32, Access::Full).unwrap();
    let mut next = Ledger::new(8, (100..180).map(|id| (id, Color((id % 8) as u16))));
    next.restore(&books.rights()).unwrap();
    assert_eq!(next.rights(), books.rights());
    for id in &tiles {
        next.enter_held(*id, Color(1), PEER, Access::Full);
    }
    // It counts against the quota and is in the way of taking back, before its holder has come back
    // and after.
    assert!(
        next.take_back(&Holder::Uid(1000), &colors("1"), Access::Full)
            .is_err()
    );
    let again = next.connect(PEER);
    let e = next
        .take(again, Color(2), 48, Access::Full)
        .unwrap_err()
        .to_string();
    assert!(e.contains("more than the 32 held"), "{e}");
    // Whoever comes back gives back what he had; another process may not.
    let other = next.connect(Peer {
        pid: 8,
        uid: 1000,
        began: 80,
    });
    assert!(next.give_back(other, &tiles[..1]).is_err());
    next.give_back(again, &tiles[..1]).unwrap();
    assert_eq!(next.returning(), tiles[..1]);
    // Who does not is forgotten when his process ends.
    assert!(next.processes().contains(&7));
    next.ended(7);
    assert_eq!(next.returning().len(), 2);
}

#[test]
fn a_tile_that_was_moved_has_another_color_or_is_struck_off() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1000), &colors("0-1"), None, Access::Full)
        .unwrap();
    let client = books.connect(PEER);
    let held = books.take(client, Color(0), 16, Access::Full).unwrap();
    books.recolor(0, Color(1));
    assert_eq!(books.summary().pages[0].free, 8 * TILE_PAGES as u64);
    assert_eq!(books.summary().pages[1].free, 11 * TILE_PAGES as u64);
    books.strike(0, Blame::None);
    books.strike(held[0], Blame::None);
    assert_eq!(books.summary().pages[1].free, 10 * TILE_PAGES as u64);
    assert_eq!(
        books.holder_of(held[0]),
        Some(PEER),
        "what is held stays on the books"
    );
    books.mark_untrue(held[0]);
    assert_eq!(books.summary().clients[0].untrue, TILE_PAGES as u64);
    assert_eq!(
        books
            .take(client, Color(1), 160, Access::Full)
            .unwrap()
            .len(),
        10
    );
    books.give_back(client, &held).unwrap();
    books.lost(held[0]);
    assert_eq!(books.summary().clients[0].untrue, 0);
}

/// A child goes on speaking over the connection of a process that ended, whose number is another's
/// now.
#[test]
fn a_connection_does_not_speak_for_who_has_the_number_of_its_process_now() {
    let mut books = ledger();
    let before = books.connect(PEER);
    books.identify(7, 70);
    books.join(7, "video".to_owned());
    books
        .grant(
            Holder::Group("video".to_owned()),
            &colors("0"),
            None,
            Access::Full,
        )
        .unwrap();
    books
        .grant(Holder::Pid(7), &colors("1"), None, Access::Full)
        .unwrap();
    assert_eq!(books.colors_of(before, Access::Full), colors("0-1"));
    // The operator means the process that has the number now.
    books.identify(7, 71);
    assert_eq!(books.colors_of(before, Access::Full), Colors::new());
    books.join(7, "video".to_owned());
    books
        .grant(Holder::Pid(7), &colors("2"), None, Access::Full)
        .unwrap();
    let now = books.connect(Peer { began: 71, ..PEER });
    assert_eq!(books.colors_of(before, Access::Full), Colors::new());
    assert_eq!(books.colors_of(now, Access::Full), colors("0,2"));
    // One that had ended before the server looked is nobody in particular.
    let ended = books.connect(Peer { began: 0, ..PEER });
    assert_eq!(books.colors_of(ended, Access::Full), Colors::new());
}

#[test]
fn attempts_of_one_user_do_not_push_out_those_of_another() {
    let mut books = ledger();
    let other = books.connect(Peer {
        pid: 5,
        uid: 1,
        began: 50,
    });
    books.wrote(other, Color(1));
    for pid in 100..100 + 2 * MOST_VIOLATIONS as u32 {
        let client = books.connect(Peer { pid, ..PEER });
        books.wrote(client, Color(0));
    }
    let violations = books.summary().violations;
    assert_eq!(violations.len(), MOST_VIOLATIONS);
    assert!(violations.iter().any(|v| v.peer.uid == 1));
}

#[derive(Clone, Debug)]
enum Step {
    Connect,
    Take(usize, u16, u64),
    GiveBack(usize),
    Kill(usize),
    Return,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Connect),
        (0usize..8, 0u16..9, 0u64..60).prop_map(|(c, color, n)| Step::Take(c, color, n)),
        (0usize..8).prop_map(Step::GiveBack),
        (0usize..8).prop_map(Step::Kill),
        Just(Step::Return),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// No tile is lost and none is held by two, whatever clients do and whenever they die.
    #[test]
    fn no_tile_is_lost_or_held_twice(steps in steps()) {
        let mut books = ledger();
        books.grant(Holder::Uid(1000), &colors("0-7"), Some(600), Access::Full).unwrap();
        let mut clients: Vec<(ClientId, Vec<TileId>)> = Vec::new();
        for step in steps {
            match step {
                Step::Connect => clients.push((books.connect(PEER), Vec::new())),
                Step::Take(c, color, pages) => {
                    let number = clients.len().max(1);
                    if let Some((client, own)) = clients.get_mut(c % number) {
                        let before: Vec<TileId> = own.clone();
                        if let Ok(tiles) = books.take(*client, Color(color), pages, Access::Full) {
                            prop_assert!(tiles.iter().all(|t| !before.contains(t)));
                            own.extend(tiles);
                        }
                    }
                }
                Step::GiveBack(c) => {
                    let number = clients.len().max(1);
                    if let Some((client, own)) = clients.get_mut(c % number) {
                        let tiles = std::mem::take(own);
                        prop_assert!(books.give_back(*client, &tiles).is_ok());
                        prop_assert!(tiles.is_empty() || books.give_back(*client, &tiles).is_err());
                    }
                }
                Step::Kill(c) => {
                    if !clients.is_empty() {
                        let (client, _) = clients.remove(c % clients.len());
                        books.disconnect(client);
                    }
                }
                Step::Return => {
                    for id in books.returning() {
                        books.returned(id);
                    }
                }
            }
            let mut held: Vec<TileId> = clients.iter().flat_map(|c| c.1.clone()).collect();
            let number = held.len();
            held.sort_unstable();
            held.dedup();
            prop_assert_eq!(held.len(), number, "a tile is held twice");
            let pages = books.summary().pages;
            let all: u64 = pages.iter().map(|p| p.all()).sum();
            prop_assert_eq!(all, 80 * TILE_PAGES as u64, "a tile is lost");
            let held: u64 = pages.iter().map(|p| p.held).sum();
            prop_assert_eq!(held, (number * TILE_PAGES) as u64);
        }
    }
}

/// 004 §III-C: the operator groups colors to super colors; they outlive the server.
#[test]
fn super_colors_have_names_and_what_was_granted_by_them_stays() {
    let mut books = ledger();
    let select = |books: &Ledger, text: &str| books.select(&text.parse().unwrap());
    assert_eq!(select(&books, "super:1/4").unwrap(), colors("1,5"));
    books.name("video".to_owned(), Some(colors("0-2"))).unwrap();
    let video = select(&books, "video").unwrap();
    books
        .grant(Holder::Uid(1), &video, None, Access::Full)
        .unwrap();
    books.name("video".to_owned(), Some(colors("5"))).unwrap();
    assert_eq!(books.owner_of(Color(2)), Some(&Holder::Uid(1)));
    let mut next = ledger();
    next.restore(&books.rights()).unwrap();
    assert_eq!(select(&next, "video").unwrap(), colors("5"));
    next.name("video".to_owned(), None).unwrap();
    let e = select(&next, "video").unwrap_err().to_string();
    assert!(e.contains("no colors have the name `video`"), "{e}");
    assert!(next.name("video".to_owned(), None).is_err());
    let e = next
        .name("low".to_owned(), Some(colors("8")))
        .unwrap_err()
        .to_string();
    assert!(e.contains("0-7"), "{e}");
}
