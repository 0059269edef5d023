//! What may be written where: an output never replaces what the user did not say, and never an input.

use crate::source::Listed;
use qpx_console::Exit;
use qpx_format::publish::partial_name;
use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Why an output is refused.
#[derive(Debug)]
#[expect(missing_docs, reason = "Display says what each is")]
pub enum OutputError {
    NoName {
        file: PathBuf,
    },
    Folder {
        file: PathBuf,
    },
    Exists {
        file: PathBuf,
    },
    IsInput {
        file: PathBuf,
        input: PathBuf,
        how: &'static str,
    },
    NoFolder {
        file: PathBuf,
        folder: PathBuf,
        source: io::Error,
    },
    ReadOnly {
        file: PathBuf,
        folder: PathBuf,
    },
    NoRight {
        file: PathBuf,
        folder: PathBuf,
    },
}

impl OutputError {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => Some(
                "`--force` replaces it once the new bundle is complete and verified".to_owned(),
            ),
            Self::IsInput { .. } => {
                Some("choose another name for the output; the checkpoint stays as it is".to_owned())
            }
            Self::NoFolder { folder, .. } => Some(format!(
                "make the folder first: mkdir -p {}",
                folder.display()
            )),
            Self::ReadOnly { .. } | Self::NoRight { .. } => {
                Some("choose a folder that can be written to".to_owned())
            }
            Self::NoName { .. } | Self::Folder { .. } => {
                Some("give the output a file name, such as model.qpx".to_owned())
            }
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Exists { .. } | Self::IsInput { .. } | Self::Folder { .. } => Exit::OutputRefused,
            Self::NoName { .. } => Exit::Usage,
            Self::NoFolder { .. } | Self::ReadOnly { .. } | Self::NoRight { .. } => Exit::Failure,
        }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName { file } => write!(f, "the output {} has no file name", file.display()),
            Self::Folder { file } => write!(f, "the output {} is a folder", file.display()),
            Self::Exists { file } => write!(f, "the output {} exists", file.display()),
            Self::IsInput { file, input, how } => {
                write!(
                    f,
                    "the output {} is an input: {how} {}",
                    file.display(),
                    input.display()
                )
            }
            Self::NoFolder {
                file,
                folder,
                source,
            } => write!(
                f,
                "the output {} can't be written: its folder {} is not there ({source})",
                file.display(),
                folder.display()
            ),
            Self::ReadOnly { file, folder } => write!(
                f,
                "the output {} can't be written: the file system of {} is read-only",
                file.display(),
                folder.display()
            ),
            Self::NoRight { file, folder } => write!(
                f,
                "the output {} can't be written: no right to write in the folder {}",
                file.display(),
                folder.display()
            ),
        }
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoFolder { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The folder that `output` lies in.
pub(crate) fn folder_of(output: &Path) -> &Path {
    match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Names, within the checkpoint's folder, that the output and its unfinished form have: no part of the checkpoint.
pub(crate) fn names_within(folder: &Path, output: &Path) -> Vec<String> {
    let (Ok(folder), Ok(parent)) = (folder.canonicalize(), folder_of(output).canonicalize()) else {
        return Vec::new();
    };
    let Ok(relative) = parent.strip_prefix(&folder) else {
        return Vec::new();
    };
    [output.to_path_buf(), partial_name(output)]
        .iter()
        .filter_map(|path| {
            let name = relative
                .join(path.file_name()?)
                .to_string_lossy()
                .replace('\\', "/");
            [".qpx", ".partial"]
                .iter()
                .any(|end| name.ends_with(end))
                .then_some(name)
        })
        .collect()
}

/// Checks that `output` may be written, given the checkpoint's files.
pub(crate) fn check(output: &Path, inputs: &[Listed], force: bool) -> Result<(), OutputError> {
    let file = || output.to_path_buf();
    let Some(name) = output.file_name() else {
        return Err(OutputError::NoName { file: file() });
    };
    let folder = folder_of(output);
    let real_folder = folder
        .canonicalize()
        .map_err(|source| OutputError::NoFolder {
            file: file(),
            folder: folder.to_path_buf(),
            source,
        })?;
    for path in [output.to_path_buf(), partial_name(output)] {
        check_inputs(output, &path, &real_folder, inputs)?;
    }
    if fs::metadata(output).is_ok_and(|m| m.is_dir()) {
        return Err(OutputError::Folder { file: file() });
    }
    if !force && fs::symlink_metadata(real_folder.join(name)).is_ok() {
        return Err(OutputError::Exists { file: file() });
    }
    let folder = folder.to_path_buf();
    match rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::ROFS) => Err(OutputError::ReadOnly {
            file: file(),
            folder,
        }),
        Err(_) => Err(OutputError::NoRight {
            file: file(),
            folder,
        }),
    }
}

fn check_inputs(
    output: &Path,
    path: &Path,
    folder: &Path,
    inputs: &[Listed],
) -> Result<(), OutputError> {
    let refused = |input: &Listed, how| OutputError::IsInput {
        file: output.to_path_buf(),
        input: input.path.clone(),
        how,
    };
    let linked = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    let there = fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    for input in inputs {
        if there.is_some() && there == fs::metadata(&input.path).ok().map(|m| (m.dev(), m.ino())) {
            let how = if linked {
                "a link to"
            } else {
                "the same file as"
            };
            return Err(refused(input, how));
        }
        // Where letter case does not count, the two names are one file.
        let parent = input.path.parent().and_then(|p| p.canonicalize().ok());
        let input_name = input.path.file_name().unwrap_or_default().to_string_lossy();
        if parent.as_deref() == Some(folder) && input_name.to_lowercase() == name {
            return Err(refused(input, "in all but letter case the name of"));
        }
    }
    Ok(())
}

/// Bytes that are free in the folder of `output`, where the system tells.
pub(crate) fn free_bytes(output: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder_of(output)).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests;
