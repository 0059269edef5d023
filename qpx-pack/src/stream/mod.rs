//! One pass over each shard, front to back.
//!
//! The calling thread reads; one thread takes the file's SHA-256, one the BLAKE3 of tensors that fill several leaves, and all
//! workers encode, digest and write. A bounded supply of buffers holds the reader back, so memory does not grow with the model.
//! Nothing depends on which worker is first: each leaf is made from its own bytes alone.

mod flush;
mod pool;
mod store;
mod units;

use crate::{Error, Progress, plan::ShardPlan, source::shard::State};
use flush::Flusher;
use pool::{Block, Pool};
use qpx_format::Writer;
use qpx_kernels::Level;
use sha2::{Digest as _, Sha256};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};
use store::Store;
use units::Unit;

/// Reads of the header, which is checked again while it is digested.
const HEADER_READ_BYTES: usize = 4 << 20;

/// Fills `writer` from the planned shards.
pub(crate) fn run(
    shards: &[ShardPlan],
    writer: &Writer,
    threads: usize,
    allow_nonfinite: bool,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::Threads {
            reason: error.to_string(),
        })?;
    let pool = Arc::new(Pool::default());
    thread::scope(|scope| {
        let flusher = Flusher::start(scope, writer);
        for shard in shards {
            let store = Store {
                writer,
                level: Level::detect(),
                allow_nonfinite,
                file: &shard.name,
            };
            let pass = Pass {
                shard,
                store: &store,
                pool: &pool,
                flusher: &flusher,
                progress,
                failed: Mutex::new(None),
                stop: AtomicBool::new(false),
            };
            pass.run(&workers)?;
        }
        Ok(())
    })
}

/// The pass over one shard.
struct Pass<'a> {
    shard: &'a ShardPlan,
    store: &'a Store<'a>,
    pool: &'a Arc<Pool>,
    flusher: &'a Flusher,
    progress: &'a dyn Progress,
    /// The failure of the first unit that failed, in the order of the file.
    failed: Mutex<Option<(u64, Error)>>,
    stop: AtomicBool,
}

impl Pass<'_> {
    fn run(&self, workers: &rayon::ThreadPool) -> Result<(), Error> {
        let file = File::open(&self.shard.path).map_err(|e| self.unreadable("opening", e))?;
        self.check_state(&file)?;
        let sha256 = thread::scope(|scope| {
            let (to_file_digest, from_reader) = channel::<Arc<Block>>();
            let file_digest = scope.spawn(|| sha256(from_reader));
            let (to_piece_digest, from_reader) = channel();
            let piece_digest = scope.spawn(|| self.digest_pieces(from_reader));
            let read = workers
                .in_place_scope(|tasks| self.read(&file, tasks, &to_file_digest, &to_piece_digest));
            drop((to_file_digest, to_piece_digest));
            let joined = piece_digest.join();
            let digest = file_digest.join();
            if let Some((_, error)) = self
                .failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
            {
                return Err(error);
            }
            read?;
            match (digest, joined) {
                (Ok(digest), Ok(())) => Ok(digest),
                _ => Err(Error::Threads {
                    reason: "a digesting thread ended early".to_owned(),
                }),
            }
        })?;
        self.check_state(&file)?;
        self.store.writer.set_file_sha256(&self.shard.name, sha256);
        Ok(())
    }

    fn unreadable(&self, doing: &'static str, source: io::Error) -> Error {
        Error::Read {
            file: self.shard.path.clone(),
            doing,
            source,
        }
    }

    fn changed(&self, how: impl Into<String>) -> Error {
        Error::Changed {
            file: self.shard.path.clone(),
            how: how.into(),
        }
    }

    fn check_state(&self, file: &File) -> Result<(), Error> {
        let metadata = file
            .metadata()
            .map_err(|e| self.unreadable("looking at", e))?;
        let now = State::of(&metadata);
        let then = self.shard.state;
        if now == then {
            return Ok(());
        }
        Err(if now.bytes == then.bytes {
            self.changed("it was modified")
        } else {
            self.changed(format!("it had {} bytes and has {}", then.bytes, now.bytes))
        })
    }

    /// Reads the file once and hands its bytes to all who need them.
    fn read<'scope>(
        &'scope self,
        file: &File,
        tasks: &rayon::Scope<'scope>,
        to_file_digest: &Sender<Arc<Block>>,
        to_piece_digest: &Sender<(Arc<Block>, Option<u64>)>,
    ) -> Result<(), Error> {
        let mut at = self.read_header(file, to_file_digest)?;
        let mut number = 0;
        // The block before, whose last rows the next unit may need again.
        let mut before: Option<(u64, Arc<Block>)> = None;
        for piece in &self.shard.pieces {
            if piece.length == 0
                && let Some(slot) = piece.slot()
            {
                self.store
                    .writer
                    .set_source(slot.source, *blake3::hash(b"").as_bytes());
            }
            for unit in units::of(piece) {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let block = self.block(file, &unit, &mut at, before.take())?;
                let block = Arc::new(block);
                let fresh = block.fresh.len() as u64;
                if !block.fresh.is_empty() {
                    // A digesting thread that is gone is noticed when it is joined.
                    let _ = to_file_digest.send(Arc::clone(&block));
                }
                if !unit.alone
                    && let Some(slot) = piece.slot()
                {
                    let _ = to_piece_digest
                        .send((Arc::clone(&block), unit.last.then_some(slot.source)));
                }
                if !unit.last {
                    before = Some((piece.offset + unit.source.start, Arc::clone(&block)));
                }
                tasks.spawn(move |_| self.work(number, &unit, &block));
                self.progress.advance(fresh);
                number += 1;
            }
        }
        if at == self.shard.state.bytes {
            Ok(())
        } else {
            Err(self.changed(format!("its tensors end at byte {at}")))
        }
    }

    /// The header must be what the plan was made from.
    fn read_header(&self, file: &File, to_file_digest: &Sender<Arc<Block>>) -> Result<u64, Error> {
        let mut at = 0;
        for expected in self.shard.header.chunks(HEADER_READ_BYTES) {
            let mut block = self.pool.take(expected.len());
            self.fill(file, block.bytes_mut(), at)?;
            if block.bytes() != expected {
                return Err(self.changed("its header is another one"));
            }
            at += expected.len() as u64;
            self.progress.advance(expected.len() as u64);
            let _ = to_file_digest.send(Arc::new(block));
        }
        Ok(at)
    }

    /// The bytes of `unit`; what the block before holds of them is not read again.
    fn block(
        &self,
        file: &File,
        unit: &Unit<'_>,
        at: &mut u64,
        before: Option<(u64, Arc<Block>)>,
    ) -> Result<Block, Error> {
        let start = unit.piece.offset + unit.source.start;
        let end = unit.piece.offset + unit.source.end;
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut block = self.pool.take(length);
        let mut known = 0;
        if let Some((from, before)) = before
            && start < *at
        {
            let overlap = usize::try_from(start - from)
                .ok()
                .and_then(|skip| before.bytes().get(skip..));
            let overlap = overlap.unwrap_or_default();
            known = overlap.len();
            if let Some(place) = block.bytes_mut().get_mut(..known) {
                place.copy_from_slice(overlap);
            }
        }
        block.fresh = known..length;
        if let Some(place) = block.bytes_mut().get_mut(known..) {
            self.fill(file, place, *at)?;
        }
        *at = end;
        Ok(block)
    }

    fn fill(&self, file: &File, buffer: &mut [u8], at: u64) -> Result<(), Error> {
        file.read_exact_at(buffer, at)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.changed("it ends earlier than it did"),
                _ => self.unreadable("reading", error),
            })
    }

    fn work(&self, number: u64, unit: &Unit<'_>, block: &Block) {
        match self.store.unit(unit, block) {
            Ok(written) => self.flusher.written(written),
            Err(error) => {
                self.stop.store(true, Ordering::Relaxed);
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                // Units were begun in order and all that were begun are done: the first failure is always the same one.
                if failed.as_ref().is_none_or(|(first, _)| number < *first) {
                    *failed = Some((number, error));
                }
            }
        }
    }

    /// Digests the source bytes of pieces that take several units, in their order.
    fn digest_pieces(&self, blocks: Receiver<(Arc<Block>, Option<u64>)>) {
        let mut digest = blake3::Hasher::new();
        for (block, end) in blocks {
            digest.update(block.fresh_bytes());
            if let Some(source) = end {
                self.store
                    .writer
                    .set_source(source, *digest.finalize().as_bytes());
                digest.reset();
            }
        }
    }
}

fn sha256(blocks: Receiver<Arc<Block>>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for block in blocks {
        digest.update(block.fresh_bytes());
    }
    digest.finalize().into()
}
