//! The one place that creates output files and gives them their final names.
//!
//! A file is written as `NAME.partial`, locked against a second writer, and renamed only when it is complete and on the
//! disk. Nothing is ever found under the final name that was not.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the module that the other ones must go through"
)]

use crate::error::Error;
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// A file under its partial name, locked. Dropped without [`Partial::publish`], it is removed.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    keep: bool,
}

/// `NAME.partial` beside `target`.
pub fn partial_name(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

impl Partial {
    /// Creates the partial file of `target` empty and locks it. An unfinished one that nobody writes is started anew.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process writes it, [`Error::NotOurs`] when something else has its name, or [`Error::Io`].
    pub fn create(target: &Path) -> Result<Self, Error> {
        let path = partial_name(target);
        refuse_irreplaceable(target)?;
        // Between opening and locking, the one who held the lock may have published or removed the file: try again then.
        for _ in 0..8 {
            let file = open_partial(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Busy { file: path }),
                Err(TryLockError::Error(error)) => return Err(Error::io(&path, "lock")(error)),
            }
            let opened = file.metadata().map_err(Error::io(&path, "look at"))?;
            let same = fs::symlink_metadata(&path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (opened.dev(), opened.ino()));
            if !same {
                continue;
            }
            if opened.nlink() != 1 {
                return Err(Error::NotOurs {
                    file: path,
                    found: "another file's second name (a hard link)",
                });
            }
            file.set_len(0).map_err(Error::io(&path, "empty"))?;
            return Ok(Self {
                file,
                path,
                target: target.to_path_buf(),
                keep: false,
            });
        }
        Err(Error::Busy { file: path })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its partial name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the partial file on the disk when this is dropped.
    pub fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Takes `length` bytes of disk now, so that the disk cannot run full later. Reads as zeros.
    ///
    /// # Errors
    /// [`Error::NoSpace`], before anything is written, or [`Error::Io`].
    pub fn reserve(&self, length: u64) -> Result<(), Error> {
        let no_space = |available| Error::NoSpace {
            file: self.target.clone(),
            needed: length,
            available,
        };
        let disk = rustix::fs::fstatvfs(&self.file)
            .map_err(|e| Error::io(&self.path, "ask for the free space of")(e.into()))?;
        let available = disk.f_bavail.saturating_mul(disk.f_frsize);
        if available < length {
            return Err(no_space(Some(available)));
        }
        match allocate(&self.file, length) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => {
                Err(no_space(Some(available)))
            }
            // The file system cannot reserve: it still gets its length.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => self
                .file
                .set_len(length)
                .map_err(Error::io(&self.path, "extend")),
            Err(error) => Err(Error::io(&self.path, "reserve room for")(error.into())),
        }
    }

    /// Syncs the file, gives it its final name and syncs the folder. `replace` allows an existing file to be replaced.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name is taken, or [`Error::Io`].
    pub fn publish(mut self, replace: bool) -> Result<(), Error> {
        self.file
            .sync_all()
            .map_err(Error::io(&self.path, "write to the disk"))?;
        refuse_irreplaceable(&self.target)?;
        let renamed = if replace {
            fs::rename(&self.path, &self.target)
        } else {
            rename_new(&self.path, &self.target)
        };
        match renamed {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists {
                    file: self.target.clone(),
                });
            }
            Err(e) => return Err(Error::io(&self.target, "give the final name to")(e)),
        }
        self.keep = true;
        let folder = folder_of(&self.target);
        File::open(folder)
            .and_then(|f| f.sync_all())
            .map_err(Error::io(folder, "write to the disk the folder"))
    }

    /// Removes the partial file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn discard(mut self) -> Result<(), Error> {
        self.keep = true;
        fs::remove_file(&self.path).map_err(Error::io(&self.path, "remove"))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing more can be done about a file that will not go.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a small file whole: partial, synced, renamed.
///
/// # Errors
/// As [`Partial::create`], [`Partial::publish`].
pub fn write(target: &Path, bytes: &[u8], replace: bool) -> Result<(), Error> {
    use std::os::unix::fs::FileExt as _;
    let partial = Partial::create(target)?;
    partial
        .file
        .write_all_at(bytes, 0)
        .map_err(Error::io(&partial.path, "write"))?;
    partial.publish(replace)
}

/// Only a regular file may give way to an output: never a folder, a link, a device or a pipe.
fn refuse_irreplaceable(target: &Path) -> Result<(), Error> {
    let found = match fs::symlink_metadata(target) {
        _ if target.file_name().is_none() => "a folder",
        Err(_) => return Ok(()),
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(metadata) if metadata.is_dir() => "a folder",
        Ok(metadata) if metadata.is_symlink() => "a symbolic link",
        Ok(_) => "a device or a pipe",
    };
    Err(Error::NotOurs {
        file: target.to_path_buf(),
        found,
    })
}

/// The folder that `path` is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn open_partial(path: &Path) -> Result<File, Error> {
    if let Ok(there) = fs::symlink_metadata(path) {
        let kind = there.file_type();
        let found = if kind.is_symlink() {
            "a symbolic link"
        } else if kind.is_dir() {
            "a folder"
        } else if !kind.is_file() {
            "a device or pipe"
        } else {
            ""
        };
        if !found.is_empty() {
            return Err(Error::NotOurs {
                file: path.to_path_buf(),
                found,
            });
        }
    }
    let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(nofollow)
        .open(path)
        .map_err(Error::io(path, "create"))
}

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
fn allocate(file: &File, length: u64) -> Result<(), rustix::io::Errno> {
    if length == 0 {
        return Ok(());
    }
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length)
}

#[cfg(any(target_os = "macos", target_os = "ios"))]
fn allocate(_: &File, _: u64) -> Result<(), rustix::io::Errno> {
    Err(rustix::io::Errno::OPNOTSUPP)
}

/// Renames unless the new name is taken.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // A file system without this call: a link is never made over an existing name either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}
