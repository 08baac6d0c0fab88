//! A directory that goes with what it was made for.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that nobody else has. Its path is short enough for the address of a socket.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    #[track_caller]
    pub fn new(what: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-{what}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // One that a process of the same number has left behind is nobody's.
        let _ = std::fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).into_os_string().into_string().expect("a path in UTF-8")
    }

    /// Writes a file and gives its path.
    #[track_caller]
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.at(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Whoever lived in it has ended, or it stays.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
