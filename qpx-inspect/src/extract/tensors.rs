//! Tensors by role as a safetensors file: plain ones as they are stored, block encodings as the f32 they stand for.

use super::{Extracted, Request, Written, check_outputs, leaves, make_folder_of};
use crate::Error;
use qpx_console::Progress;
use qpx_format::{Bundle, Role, encoding::elements, publish::Partial, reader::Extent};
use serde_json::{Map, Value, json};
use std::os::unix::fs::FileExt as _;

/// A tensor on its way out.
struct Out {
    role: String,
    extent: Extent,
    dtype: String,
    bytes: u64,
    /// Bytes of a value: the widest come first, so that all are aligned.
    width: u64,
}

pub fn run(
    bundle: &Bundle,
    request: &Request,
    roles: &[String],
    progress: &dyn Progress,
    extracted: &mut Extracted,
) -> Result<(), Error> {
    let mut picked: Vec<Out> = Vec::new();
    for role in roles {
        if picked.iter().any(|p| p.role == *role) {
            continue;
        }
        let extent = Role::parse(role).ok().and_then(|r| bundle.extent(&r));
        let extent = extent.ok_or_else(|| Error::NoTensor {
            file: request.bundle.clone(),
            role: role.clone(),
        })?;
        picked.push(Out::new(role, extent));
    }
    picked.sort_by_key(|p| std::cmp::Reverse(p.width));
    check_outputs(bundle, std::slice::from_ref(&request.output), request.force)?;

    let header = header(bundle, &picked);
    let total = picked.iter().map(|p| p.bytes).sum::<u64>();
    let start = u64::try_from(header.len()).unwrap_or(u64::MAX);
    make_folder_of(&request.output)?;
    let partial = Partial::create(&request.output)?;
    partial.reserve(start.saturating_add(total))?;
    let write = |at: u64, bytes: &[u8]| {
        let written = partial.file().write_all_at(bytes, at);
        written.map_err(|source| Error::Io {
            file: partial.path().to_path_buf(),
            doing: "write",
            source,
        })
    };
    progress.begin("extracting", total);
    write(0, &header)?;
    let mut at = start;
    for out in &picked {
        out.values(bundle, |bytes| {
            write(at, bytes)?;
            let done = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            at = at.saturating_add(done);
            progress.advance(done);
            Ok(())
        })?;
    }
    partial.publish(request.force)?;
    extracted.files.push(Written {
        path: request.output.display().to_string(),
        bytes: at,
        sha256: None,
    });
    Ok(())
}

impl Out {
    fn new(role: &str, extent: Extent) -> Self {
        let encoding = extent.encoding;
        let values = elements(&extent.shape).unwrap_or(0);
        let (dtype, width) = match encoding.is_block() {
            true => ("F32".to_owned(), 4),
            false => (encoding.name.to_uppercase(), encoding.bytes),
        };
        Self {
            role: role.to_owned(),
            dtype,
            bytes: values.saturating_mul(width),
            width,
            extent,
        }
    }

    /// Calls `take` with the tensor's values, piece by piece.
    fn values(
        &self,
        bundle: &Bundle,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let blocks = qpx_kernels::encoding::by_name(self.extent.encoding.name);
        let Some(blocks) = blocks.filter(|e| e.block > 1) else {
            return leaves::each(bundle, &self.extent, take);
        };
        let columns = self.extent.shape.last().copied().unwrap_or(1);
        let columns = usize::try_from(columns).unwrap_or(0).max(1);
        let row = blocks.row_bytes(columns);
        // A leaf may end within a row: the rest waits for the next one.
        let mut waiting = Vec::new();
        let mut values = Vec::new();
        let mut bytes = Vec::new();
        leaves::each(bundle, &self.extent, |leaf| {
            waiting.extend_from_slice(leaf);
            let rows = waiting.len() / row;
            let whole = rows * row;
            values.resize(rows * columns, 0.0);
            blocks.decode_rows(&waiting[..whole], columns, &mut values);
            waiting.drain(..whole);
            bytes.clear();
            bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            take(&bytes)
        })
    }
}

/// The file's header: lengths, names, and which bundle it was.
fn header(bundle: &Bundle, picked: &[Out]) -> Vec<u8> {
    let mut entries = Map::new();
    entries.insert(
        "__metadata__".to_owned(),
        json!({ "qpx.bundle": qpx_console::hex(&bundle.id()) }),
    );
    let mut at: u64 = 0;
    for out in picked {
        let end = at.saturating_add(out.bytes);
        entries.insert(
            out.role.clone(),
            json!({ "dtype": out.dtype, "shape": out.extent.shape, "data_offsets": [at, end] }),
        );
        at = end;
    }
    let mut text = Value::Object(entries).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    [&length.to_le_bytes()[..], &text].concat()
}
