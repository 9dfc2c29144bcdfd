//! What counts against a quota: what is returning, what a holder or the system has spoiled.

use super::*;

/// What is returning may still be mapped: it counts until it is free.
#[test]
fn what_is_returning_counts_against_the_quota() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1000), &colors("0-1"), Some(32), Access::Full)
        .unwrap();
    let client = books.connect(PEER);
    let tiles = books.take(client, Color(0), 32, Access::Full).unwrap();
    books.give_back(client, &tiles).unwrap();
    let e = books.take(client, Color(1), 1, Access::Full).unwrap_err();
    assert!(e.to_string().contains("more than the 32 held"), "{e}");
    books.returned(tiles[0]);
    let more = books.take(client, Color(1), 16, Access::Full).unwrap();
    assert!(books.take(client, Color(1), 1, Access::Full).is_err());
    // Nor does a connection that ends, and another one, make room.
    books.disconnect(client);
    let again = books.connect(PEER);
    assert!(books.take(again, Color(1), 1, Access::Full).is_err());
    books.returned(tiles[1]);
    books.returned(more[0]);
    assert_eq!(
        books.take(again, Color(1), 32, Access::Full).unwrap().len(),
        2
    );
}

/// A holder that exchanges frames has less from then on, and nobody else has.
#[test]
fn what_a_holder_has_spoiled_counts_against_his_quota_alone() {
    let mut books = ledger();
    for (uid, own) in [(1000, "0"), (1, "1")] {
        books
            .grant(Holder::Uid(uid), &colors(own), Some(32), Access::Full)
            .unwrap();
    }
    let client = books.connect(PEER);
    let tiles = books.take(client, Color(0), 32, Access::Full).unwrap();
    books.give_back(client, &tiles).unwrap();
    books.strike(tiles[0], Blame::Certain);
    books.strike(tiles[1], Blame::None);
    assert_eq!(books.summary().spoiled.len(), 1);
    assert_eq!(books.summary().spoiled[0].pages, TILE_PAGES as u64);
    assert!(books.take(client, Color(0), 17, Access::Full).is_err());
    assert_eq!(
        books
            .take(client, Color(0), 16, Access::Full)
            .unwrap()
            .len(),
        1
    );
    let other = books.connect(Peer {
        pid: 5,
        uid: 1,
        began: 50,
    });
    assert_eq!(
        books.take(other, Color(1), 32, Access::Full).unwrap().len(),
        2
    );
    books.disconnect(client);
    books
        .returning()
        .into_iter()
        .for_each(|id| books.returned(id));
    books
        .take_back(&Holder::Uid(1000), &colors("0"), Access::Full)
        .unwrap();
    assert!(books.summary().spoiled.is_empty(), "it ends with the grant");
}

#[test]
fn what_the_system_may_have_spoiled_counts_when_it_is_more_than_that() {
    let mut books = ledger();
    books
        .grant(Holder::Uid(1000), &colors("0-7"), None, Access::Full)
        .unwrap();
    let client = books.connect(PEER);
    let spoil = |books: &mut Ledger, color| {
        let tiles = books.take(client, Color(color), 1, Access::Full).unwrap();
        books.give_back(client, &tiles).unwrap();
        books.strike(tiles[0], Blame::Likely);
    };
    spoil(&mut books, 0);
    assert_eq!(books.summary().spoiled[0].pages, TILE_PAGES as u64);
    for _ in 0..SELDOM {
        let tiles = books.take(client, Color(1), 1, Access::Full).unwrap();
        books.give_back(client, &tiles).unwrap();
        books.returned(tiles[0]);
    }
    assert!(books.summary().spoiled.is_empty());
    spoil(&mut books, 2);
    spoil(&mut books, 3);
    assert_eq!(books.summary().spoiled[0].pages, 2 * TILE_PAGES as u64);
}
