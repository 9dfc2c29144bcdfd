//! Where long output goes, piece by piece: a file that appears when it is complete, or a writer.

use model::files::Aside;
use model::{Error, Result};
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file or a writer.
pub enum Output<'a> {
    /// A file that appears when it is complete.
    File(PathBuf, Box<Aside>),
    /// A writer, and its name in errors.
    Writer(&'static str, &'a mut dyn Write),
}

impl<'a> Output<'a> {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn file(path: &Path) -> Result<Self> {
        Ok(Output::File(
            path.to_owned(),
            Box::new(Aside::create(path)?),
        ))
    }

    /// The file of this name, or standard output that `writer` writes to.
    ///
    /// # Errors
    /// As [`Output::file`].
    pub fn open(path: Option<&Path>, writer: &'a mut dyn Write) -> Result<Self> {
        match path {
            Some(path) => Output::file(path),
            None => Ok(Output::Writer("standard output", writer)),
        }
    }

    /// Writes. Breaks when the reader closed the pipe: it has seen enough, which is no failure.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>> {
        let written = match self {
            Output::File(path, file) => file
                .write_all(bytes)
                .map_err(|e| Error::io(path, "write the file", &e)),
            Output::Writer(name, out) => match out.write_all(bytes) {
                Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(ControlFlow::Break(())),
                written => written.map_err(|e| Error::io(*name, "write", &e)),
            },
        };
        written.map(ControlFlow::Continue)
    }

    /// Puts the file in its place, or empties the writer's buffer.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn finish(self) -> Result<()> {
        match self {
            Output::File(_, file) => file.finish(),
            Output::Writer(name, out) => match out.flush() {
                Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io(name, "write", &e)),
                _ => Ok(()),
            },
        }
    }
}
