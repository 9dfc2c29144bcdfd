//! Serves memory of colors over a socket, and tells a running server who may have what.

use super::find::{alike, find_palette, keep_pages};
use model::watch::{Silent, Watch};
use model::{Bytes, CpuSet, Duration, Error, Result};
use partition::client::Connection;
use partition::ledger::Summary;
use partition::listen::Socket;
use partition::protocol::{Answer, Request};
use partition::server::Server;
use partition::state::{self, Out, State};
use partition::tile::{self, Tile};
use partition::upkeep::Upkeep;
use partition::{Color, Palette};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is served. By default 64 MiB, in colors of the first cache that has some.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much memory to sort and give out.
    pub size: Bytes,
    /// The level of the cache; `None`: the first one that has colors.
    pub level: Option<u8>,
    /// The processor whose cache it is; `None`: the first one.
    pub cpu: Option<u32>,
    /// How often to ask again whether what is known of colors is still true; zero: never. Default:
    /// 10 s.
    pub again: Duration,
    /// Where grants are kept for the server after this one; `None`: beside the socket, with
    /// `.state`.
    pub state: Option<PathBuf>,
    /// Where clients connect; `None`: at the usual place.
    pub socket: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            size: Bytes::from_mib(64),
            level: None,
            cpu: None,
            again: Duration::from_secs(10),
            state: None,
            socket: None,
        }
    }
}

fn socket_of(asked: Option<&Path>) -> PathBuf {
    asked.map_or_else(partition::client::usual_socket, Path::to_owned)
}

/// Serves until `watch` says stop: that is how a server is told to end, it has done what it was
/// asked for.
///
/// # Errors
/// The socket cannot be had; colors cannot be found, or not for sure; the server before gave out
/// another cache.
pub fn serve(options: &Options, watch: &dyn Watch) -> Result<()> {
    let platform = machine::this_machine()?.platform;
    let socket = Socket::bind(socket_of(options.socket.as_deref()))?;
    tile::allow_files(options.size);
    let settings = keep_pages(watch);
    let mut palette = find_palette(&platform, options.level, options.cpu, watch)?;
    let on = alike(&platform, &palette);
    let kept = state_of(options, socket.path());
    let cache = format!(
        "{} of {}, {} ways",
        palette.cache.name(),
        palette.cache.size,
        palette.cache.ways
    );
    let (before, out) = before(&kept, &cache, &mut palette, &on, watch)?;
    let tiles = sorted(options.size, &palette, &on, watch)?;
    watch.finish();
    let held = Bytes::new((tiles.len() * tile::TILE) as u64);
    watch.note(&format!(
        "serving {held} in {} colors of the {} (by {}, confidence {:.3}) at {}; {} went back to the system",
        palette.colors(),
        palette.cache.name(),
        palette.how,
        palette.confidence,
        socket.path().display(),
        Bytes::new(options.size.get().saturating_sub(held.get()))
    ));
    let mut server = Server::new(palette.colors(), tiles);
    if let Some(before) = &before {
        server.succeed(before, out)?;
    }
    server.keep_rights(kept, cache)?;
    let (level, cpu) = (palette.cache.level, palette.cpu);
    let find = move || partition::find(&platform, level, cpu, &Silent)?.sure();
    server.keep_true(Upkeep::new(palette, on, options.again, Box::new(find)));
    server.serve(socket.listener(), watch)?;
    drop(settings);
    Ok(())
}

/// Tiles out of so much memory; where a color has less than half of its part, more is sorted in its
/// place.
fn sorted(size: Bytes, palette: &Palette, on: &CpuSet, watch: &dyn Watch) -> Result<Vec<Tile>> {
    let mut tiles = tile::make(palette, size, on, watch)?;
    let part = (size.get() / tile::TILE as u64) as usize / usize::from(palette.colors()).max(1);
    let wanted = (0..palette.colors())
        .map(|c| (Color(c), part / 2))
        .collect();
    if let Err(e) = tile::complete(&mut tiles, &wanted, palette, on, watch) {
        if watch.stopped() {
            return Err(e);
        }
        watch.note(&format!("note: {e}"));
    }
    let mut kept: BTreeMap<Color, usize> = BTreeMap::new();
    tiles.retain(|tile| {
        let own = kept.entry(tile.color).or_default();
        *own += 1;
        *own <= part.max(1) * 2
    });
    Ok(tiles)
}

fn state_of(options: &Options, socket: &Path) -> PathBuf {
    options.state.clone().unwrap_or_else(|| {
        let mut name = socket.as_os_str().to_owned();
        name.push(".state");
        PathBuf::from(name)
    })
}

/// What a server before left, and the tiles of it that are still out; colors get the numbers that
/// they had then.
fn before(
    path: &Path,
    cache: &str,
    palette: &mut Palette,
    on: &CpuSet,
    watch: &dyn Watch,
) -> Result<(Option<State>, Vec<Out>)> {
    let Some(state) = State::read(path)? else {
        return Ok((None, Vec::new()));
    };
    if state.cache != cache || state.colors != palette.colors() {
        return Err(Error::new(format!(
            "the server before gave out {} colors of the {}, this one has {} of the {cache}",
            state.colors,
            state.cache,
            palette.colors()
        ))
        .at(path.display())
        .remedy("serve the same cache, or remove the file to begin without its grants"));
    }
    let out = state.out();
    let known = state::rename_colors(palette, &out, on, watch)?;
    let processes: BTreeSet<u32> = out.iter().map(|o| o.peer.pid).collect();
    if !out.is_empty() {
        watch.note(&format!(
            "{} of {} processes are out since the server before{}",
            Bytes::new((out.len() * tile::TILE) as u64),
            processes.len(),
            if known {
                "; colors keep their numbers"
            } else {
                ", and its colors cannot be asked (that takes CAP_CHECKPOINT_RESTORE): colors are numbered anew, end these processes"
            }
        ));
    }
    Ok((Some(state), out))
}

/// Tells the server at `socket`, by default at the usual place, something as its operator: what to
/// grant, take back, join or name.
///
/// # Errors
/// No server is there; it refuses the request, and says why.
pub fn tell(socket: Option<&Path>, request: &Request) -> Result<Answer> {
    Connection::open(&socket_of(socket))?.ask(request)
}

/// Who has what, as the server at `socket` says. JSON: as `warmset color list --format json`.
///
/// # Errors
/// As [`tell`]; the server is of another version.
pub fn list(socket: Option<&Path>) -> Result<Summary> {
    match tell(socket, &Request::List {})? {
        Answer::List { summary } => Ok(summary),
        _ => Err(Error::new("the memory server answered something else")
            .remedy("use the same version on both sides")),
    }
}
