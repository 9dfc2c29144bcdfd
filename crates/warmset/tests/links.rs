//! Every page of the documentation is found from the README, and no link between pages is broken.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Markdown without code: fenced and indented blocks, and spans.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            let outside = line.split('`').step_by(2);
            kept.extend(outside.chain(["\n"]));
        }
    }
    kept
}

/// The targets of links to files of this repository, in a page.
fn links(page: &Path) -> Vec<String> {
    let text = prose(&std::fs::read_to_string(page).unwrap());
    let after = text.split("](").skip(1);
    let targets =
        after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned()));
    targets
        .filter(|t| !t.starts_with("http://") && !t.starts_with("https://"))
        .collect()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The file that a link on a page leads to, and the heading there.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading.to_owned())),
        None => (link, None),
    };
    let file = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    (plain(&file), heading)
}

/// The files that a page links to.
fn linked(page: &Path) -> impl Iterator<Item = PathBuf> {
    let files = links(page);
    files.into_iter().map(|link| target(page, &link).0)
}

/// The name by which GitHub finds a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| match c {
        ' ' => '-',
        c => c.to_ascii_lowercase(),
    })
    .collect()
}

fn pages() -> Vec<PathBuf> {
    let root = plain(&root());
    let mut pages: Vec<PathBuf> = TOP.iter().map(|name| root.join(name)).collect();
    pages.extend(docs());
    pages
}

/// The pages beside `docs`.
const TOP: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "COMPARE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// The pages in `docs`, without the table of contents of the site that is made of them.
fn docs() -> impl Iterator<Item = PathBuf> {
    let docs = std::fs::read_dir(plain(&root()).join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    docs.filter(|path| path.extension().is_some_and(|e| e == "md") && !path.ends_with("SUMMARY.md"))
}

#[test]
fn the_site_has_every_page_once() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let after = summary.split("](").skip(1);
    let mut shown: Vec<&str> = after.map(|rest| rest.split_once(')').unwrap().0).collect();
    shown.sort_unstable();
    let docs: Vec<PathBuf> = docs().collect();
    let names = docs
        .iter()
        .map(|page| page.file_name().unwrap().to_str().unwrap());
    let mut all: Vec<&str> = TOP.into_iter().chain(names).collect();
    all.sort_unstable();
    assert_eq!(shown, all);
}

/// The sources of tests, which say how they are called for more.
fn tests() -> impl Iterator<Item = PathBuf> {
    let rooms = std::fs::read_dir(plain(&root()).join("crates")).unwrap();
    let found = rooms.flat_map(|room| std::fs::read_dir(room.unwrap().path().join("tests")).ok());
    found
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
}

/// Is there such a program of tests in the room of this package?
fn has_test(package: &str, test: &str) -> bool {
    let room = match package.strip_prefix("warmset-") {
        Some(room) => root().join("crates").join(room),
        None => root().join("crates").join(package),
    };
    let manifest = std::fs::read_to_string(room.join("Cargo.toml")).unwrap_or_default();
    let named = manifest.contains(&format!("[[test]]\nname = \"{test}\""));
    let tests = room.join("tests");
    let is_file = tests.join(format!("{test}.rs")).exists();
    let is_found = is_file || tests.join(test).join("main.rs").exists();
    named || (is_found && !manifest.contains("autotests = false"))
}

#[test]
fn programs_of_tests_that_are_named_are_there() {
    let mut asked = 0;
    for page in pages().into_iter().chain(tests()) {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in text.lines().filter(|line| line.contains("cargo test")) {
            let mut words = line.split([' ', '`', '"', ')']);
            let mut after = |word: &str| {
                let mut words = words.by_ref().skip_while(|w| *w != word);
                words.nth(1).map(str::to_owned)
            };
            let Some((package, test)) = after("-p").zip(after("--test")) else {
                continue;
            };
            assert!(has_test(&package, &test), "{}: {line}", page.display());
            asked += 1;
        }
    }
    assert!(asked > 10, "{asked} were found");
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let mut asked = 0;
    for page in pages() {
        for link in links(&page) {
            let (file, heading) = target(&page, &link);
            let place = format!("{}: {link}", page.display());
            assert!(file.exists(), "{place}");
            asked += 1;
            let Some(heading) = heading else { continue };
            let text = std::fs::read_to_string(&file).unwrap();
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            assert!(headings.any(|line| anchor(line) == heading), "{place}");
        }
    }
    assert!(asked > 50, "{asked} links were found");
}

#[test]
fn every_picture_is_shown_on_a_page() {
    let shown: BTreeSet<PathBuf> = pages().iter().flat_map(|p| linked(p)).collect();
    let pictures = std::fs::read_dir(plain(&root()).join("docs/img")).unwrap();
    let pictures: Vec<PathBuf> = pictures.map(|entry| entry.unwrap().path()).collect();
    assert!(pictures.len() > 5, "{pictures:?}");
    let idle: Vec<&PathBuf> = pictures.iter().filter(|p| !shown.contains(*p)).collect();
    assert!(idle.is_empty(), "no page shows {idle:?}");
}

#[test]
fn the_readme_names_every_page_of_the_documentation() {
    let pages = pages();
    let readme = &pages[0];
    let named: BTreeSet<PathBuf> = linked(readme).collect();
    let missing: Vec<&PathBuf> = pages[1..]
        .iter()
        .filter(|page| !named.contains(*page))
        .collect();
    assert!(missing.is_empty(), "the README does not name {missing:?}");
}
