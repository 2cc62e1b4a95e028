//! The command in a directory of its own, for tests of either kind.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A directory for one test: files, results, and the registry of the labs that it runs.
pub(crate) struct Place(TempDir);

/// What the command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a file in a directory of ours");
        path
    }

    /// Where labs that run here register.
    pub(crate) fn registry(&self) -> PathBuf {
        self.path().join("outlast")
    }

    /// `outlast` with `arguments`, to be run in this directory.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("NO_COLOR", "1")
            .env_remove("TERM")
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    /// Runs `outlast` with `arguments` to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        Said::of(self.command(arguments).output().expect("outlast was built"))
    }

    /// Starts `outlast` with `arguments`, both outputs piped.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("outlast was built")
    }
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command prints text");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Checks exit code and silence on standard output, and that the message has each of `words`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
    }
}
