//! Names of files in a bundle: they become paths on somebody's disk, so none may lead out of the folder it is put in.

#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::{BTreeMap, BTreeSet};

/// Longest name, in bytes.
pub const MAX_NAME: usize = 1024;
/// Longest source tensor name, in bytes.
pub const MAX_SOURCE_NAME: usize = 1024;
/// Longest part of a name between two `/`, in bytes.
const MAX_PART: usize = 255;

/// Says what is wrong with `name` as a relative path on any system.
pub(crate) fn check(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!(
            "a name has 1 to {MAX_NAME} bytes, this one {}",
            name.len()
        ));
    }
    if let Some(c) = name
        .chars()
        .find(|c| c.is_control() || "\\:*?\"<>|".contains(*c))
    {
        return Err(format!("the character {c:?} is not allowed in a name"));
    }
    for part in name.split('/') {
        if part.is_empty() || part == "." || part == ".." {
            return Err(format!(
                "a name is a relative path without empty, `.` or `..` parts, found {name:?}"
            ));
        }
        if part.len() > MAX_PART {
            return Err(format!("a part of a name has at most {MAX_PART} bytes"));
        }
        if part.ends_with('.') || part.ends_with(' ') {
            return Err("no part of a name ends in a dot or a space".to_owned());
        }
    }
    Ok(())
}

/// Says which name cannot be put into a folder together with the others: equal in any letter case, or a folder of another.
pub(crate) fn distinct<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<(), (String, &'static str)> {
    let mut seen = BTreeMap::new();
    for name in names {
        if seen.insert(name.to_ascii_lowercase(), name).is_some() {
            return Err((
                name.to_owned(),
                "another attached file has this name (letter case aside)",
            ));
        }
    }
    let folders: BTreeSet<&str> = seen
        .keys()
        .flat_map(|name| name.match_indices('/').filter_map(|(i, _)| name.get(..i)))
        .collect();
    match seen.iter().find(|(key, _)| folders.contains(key.as_str())) {
        Some((_, name)) => Err((
            (*name).to_owned(),
            "another attached file has this name as its folder",
        )),
        None => Ok(()),
    }
}
