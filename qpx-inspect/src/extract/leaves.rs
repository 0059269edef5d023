//! Reading an extent leaf by leaf, each verified: memory stays at one leaf, whatever the tensor's size.

use qpx_format::{Bundle, Error, reader::Extent};

/// Calls `take` with the bytes of each leaf of `extent`, in order.
pub fn each<E: From<Error>>(
    bundle: &Bundle,
    extent: &Extent,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = Vec::new();
    let mut done = 0;
    for n in 0..extent.leaves {
        let length = extent.leaf_bytes.min(extent.length.saturating_sub(done));
        let leaf = Extent {
            offset: extent.offset.saturating_add(done),
            length,
            first_leaf: extent.first_leaf.saturating_add(n),
            leaves: 1,
            ..extent.clone()
        };
        buffer.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
        bundle.read_verified(&leaf, &mut buffer)?;
        take(&buffer)?;
        done = done.saturating_add(length);
    }
    Ok(())
}
