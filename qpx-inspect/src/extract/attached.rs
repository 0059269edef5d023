//! Attached files back to files.

use super::{Extracted, Request, Written, check_outputs, make_folder_of, place};
use crate::Error;
use qpx_format::{Bundle, manifest::Purpose, publish};

pub fn run(
    bundle: &Bundle,
    request: &Request,
    names: &[String],
    extracted: &mut Extracted,
) -> Result<(), Error> {
    let all = &bundle.manifest().checked.attached;
    let mut picked = Vec::new();
    if names.is_empty() {
        picked.extend(all.iter().filter(|a| a.purpose != Purpose::SourceHeader));
    }
    for name in names {
        let file = bundle
            .attached_named(name)
            .ok_or_else(|| Error::NoAttached {
                file: request.bundle.clone(),
                name: name.clone(),
                known: all.iter().map(|a| a.name.clone()).collect(),
            })?;
        if !picked.iter().any(|p| p.name == file.name) {
            picked.push(file);
        }
    }
    let outputs: Vec<_> = picked
        .iter()
        .map(|a| place(&request.output, &a.name))
        .collect();
    check_outputs(bundle, &outputs, request.force)?;
    for (file, output) in picked.iter().zip(outputs) {
        let bytes = bundle.attached(file)?;
        make_folder_of(&output)?;
        publish::write(&output, &bytes, request.force)?;
        extracted.files.push(Written {
            path: output.display().to_string(),
            bytes: file.length,
            sha256: None,
        });
    }
    Ok(())
}
