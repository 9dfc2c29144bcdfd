//! Much memory from a running server: takes it in all granted colors, asks some of it by time
//! whether tiles of a color have one color, writes to all of it and gives it back.
//!
//!     warmset color serve --size 1200MiB & warmset color grant uid:$(id -u) 0-31
//!     cargo run --release -p warmset-partition --example gibibyte -- /run/warmset/color.sock 1024
//!
//! With `-` in the place of the socket, the server is within this process, and sorts as much for
//! itself first.

use model::watch::Silent;
use model::{Bytes, CpuSet, Error, Result};
use partition::client::Connection;
use partition::ledger::{Access, Holder};
use partition::protocol::Request;
use partition::server::Server;
use partition::tile::{self, TILE_PAGES};
use partition::{Color, Colors, Geometry, Palette, finder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || Error::new("name the server's socket, and how many MiB to take");
    let socket = arguments.next().ok_or_else(usage)?;
    let mib = arguments
        .next()
        .and_then(|a| a.parse().ok())
        .ok_or_else(usage)?;
    let size = Bytes::from_mib(mib);
    tile::allow_files(size);

    let mut server = match socket.as_str() {
        "-" => own_server(mib)?,
        path => Connection::open(Path::new(path))?,
    };
    let (colors, of) = server.colors()?;
    let began = Instant::now();
    let mut memory = server.map(&colors, size)?;
    println!(
        "{size} in {} of {of} colors taken and mapped in {:.2} s",
        colors.len(),
        began.elapsed().as_secs_f64()
    );
    let zero = memory.bytes().iter().all(|b| *b == 0);

    // Colors as this process finds them, under whatever numbers.
    let palette = palette()?;
    let cpu = palette.cpu;
    let pages = memory.pages();
    // An odd step between tiles: no color is left out.
    let sample: Vec<usize> = (0..pages.len())
        .filter(|p| (p / TILE_PAGES).is_multiple_of(9))
        .collect();
    let asked: Vec<_> = sample.iter().map(|p| pages[*p]).collect();
    let seen = palette.sort(&asked, &CpuSet::from_iter([cpu]), &Silent)?;
    let mut votes: BTreeMap<(Color, Color), usize> = BTreeMap::new();
    for (page, own) in sample.iter().zip(&seen) {
        if let (Some(theirs), Some(own)) = (memory.color_of(*page), own) {
            *votes.entry((theirs, *own)).or_default() += 1;
        }
    }
    let placed: usize = votes.values().sum();
    let mut names = Colors::new();
    let (mut agree, mut sampled) = (0, 0);
    for color in colors.iter() {
        let most = votes
            .iter()
            .filter(|((theirs, _), _)| *theirs == color)
            .max_by_key(|(_, n)| **n);
        if let Some(((_, own), votes)) = most {
            names = names.union(&Colors::from_iter([*own]));
            agree += votes;
            sampled += 1;
        }
    }
    println!(
        "of {} pages asked by time, {placed} could be placed, {agree} as the server says: {sampled} of its colors are {} here",
        asked.len(),
        names.len()
    );
    drop(pages);
    memory.bytes_mut().fill(0x5a);
    let began = Instant::now();
    server.give_back(memory)?;
    println!(
        "given back and cleared in {:.2} s; it was {}",
        began.elapsed().as_secs_f64(),
        if zero { "all zero" } else { "NOT ZERO" }
    );
    Ok(())
}

/// The colors of the first cache that has some.
fn palette() -> Result<Palette> {
    let platform = machine::this_machine()?.platform;
    let none = || Error::new("no cache of this machine has colors");
    let cpu = platform.usable().lowest().ok_or_else(none)?;
    let has = |level: &u8| {
        Geometry::of(&platform, *level, cpu).is_ok_and(|g| finder::colorable(&g).is_ok())
    };
    let level = platform
        .data_levels()
        .into_iter()
        .find(has)
        .ok_or_else(none)?;
    partition::find(&platform, level, cpu, &Silent)?.sure()
}

fn own_server(mib: u64) -> Result<Connection> {
    let palette = palette()?;
    let began = Instant::now();
    let size = Bytes::from_mib(mib + mib / 6);
    tile::allow_files(size);
    let on = machine::this_machine()?.platform.usable();
    let tiles = tile::make(&palette, size, &on, &Silent)?;
    println!(
        "{size} sorted in {:.1} s: {} kept",
        began.elapsed().as_secs_f64(),
        Bytes::new((tiles.len() * tile::TILE) as u64)
    );
    let mut client = Arc::new(Server::new(palette.colors(), tiles)).attach()?;
    client.ask(&Request::Grant {
        holder: Holder::Pid(std::process::id()),
        colors: Colors::first(palette.colors()).into(),
        pages: None,
        access: Access::Full,
    })?;
    Ok(client)
}
