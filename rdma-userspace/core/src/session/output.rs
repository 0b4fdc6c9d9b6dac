//! The folder of a session's captures: new or empty before anything is measured, sealed after it.
use super::SessionError;
use std::path::{Path, PathBuf};

/// The folder of a session's captures.
pub struct OutputFolder {
    path: PathBuf,
    made: bool,
}

impl OutputFolder {
    /// Makes the folder, or takes an empty one, and proves that it can be written: before anything is measured.
    ///
    /// # Errors
    /// [`SessionError::Folder`] when it holds something, or cannot be written.
    pub fn new(path: &Path) -> Result<OutputFolder, SessionError> {
        Ok(OutputFolder { path: path.to_owned(), made: new_folder(path)? })
    }

    /// Ends it after the session. Where nothing was recorded nothing is left behind. With `seal` every capture in it is sealed, the peers'
    /// too; one that could not be sealed stays a log that opens all the same, and is returned with the reason.
    pub fn finish(self, seal: bool) -> Vec<(PathBuf, capture::Error)> {
        if self.made {
            // A folder that is not empty stays.
            let _ = std::fs::remove_dir(&self.path);
        }
        if !seal {
            return Vec::new();
        }
        let captures = capture::find(&self.path).unwrap_or_default();
        let peers: Vec<PathBuf> = captures.iter().filter_map(|capture| capture::peer_of(capture)).collect();
        captures.into_iter().chain(peers).filter_map(|capture| capture::seal(&capture).err().map(|error| (capture, error))).collect()
    }
}

/// Makes the folder of the captures (true), or takes an empty one, and proves that it can be written: before anything is measured.
fn new_folder(out: &Path) -> Result<bool, SessionError> {
    let name = out.display();
    let unusable = |error: std::io::Error| {
        SessionError::Folder(format!("no captures can be written into {name}: {error}. Give another folder with --out"))
    };
    if out.exists() && !out.is_dir() {
        return Err(SessionError::Folder(format!("{name} is a file: give a new folder with --out")));
    }
    let made = !out.exists();
    std::fs::create_dir_all(out).map_err(unusable)?;
    if out.read_dir().map_err(unusable)?.next().is_some() {
        return Err(SessionError::Folder(format!("{name} is not empty: give a new folder with --out, so that no capture is overwritten")));
    }
    let proof = out.join(".rdmascope");
    std::fs::create_dir(&proof).and_then(|()| std::fs::remove_dir(&proof)).map_err(unusable)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_captures_is_new_or_empty_and_can_be_written() {
        let dir = tempfile::tempdir().expect("dir");
        let why = |path: &Path| new_folder(path).expect_err("refused").to_string();
        let new = dir.path().join("a/b");
        assert!(new_folder(&new).expect("made"));
        assert!(!new_folder(&new).expect("an empty one is taken"));
        assert_eq!(new.read_dir().expect("there").count(), 0);
        assert!(why(dir.path()).contains("not empty"));
        let file = dir.path().join("file");
        std::fs::write(&file, "x").expect("writes");
        assert!(why(&file).contains("is a file"));
        assert!(why(&file.join("below")).contains("--out"));
        assert!(why(Path::new("/proc/self/captures")).contains("--out"));
    }
}
