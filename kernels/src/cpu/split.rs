//! Splitting outputs over threads: by halves, through `rayon::join`, which allocates nothing inside a pool.

/// Pieces for each thread: enough to even out cores of unequal speed.
const PIECES_PER_THREAD: usize = 4;

/// Items in a piece when `items`, each of about `work` elementary steps (bytes of weights, floats touched), are spread over `threads`.
/// A piece is never so small that waking a thread for it costs more than doing it.
pub(crate) fn piece(threads: usize, items: usize, work: usize) -> usize {
    const WORTH_A_THREAD: usize = 1 << 15;
    if threads <= 1 {
        return items.max(1);
    }
    let even = items.div_ceil(threads.saturating_mul(PIECES_PER_THREAD));
    even.max(WORTH_A_THREAD.div_ceil(work.max(1)))
}

/// Calls `f(first item, items' floats)` on pieces of `y`, which holds items of `width` floats.
pub(crate) fn over_items<F>(y: &mut [f32], width: usize, piece: usize, first: usize, f: &F)
where
    F: Fn(usize, &mut [f32]) + Sync,
{
    let items = y.len().checked_div(width).unwrap_or(0);
    if items <= piece.max(1) {
        if items > 0 {
            f(first, y);
        }
        return;
    }
    let half = items / 2;
    let (low, high) = y.split_at_mut(half * width);
    rayon::join(
        || over_items(low, width, piece, first, f),
        || over_items(high, width, piece, first + half, f),
    );
}
