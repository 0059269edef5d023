//! A loaded model: opened, planned, read into memory; then tokens in, logits out.

use crate::{
    Error,
    budget::{self, Demand, Plan},
    cpu::{self, Choice, CpuOps},
    lanes::{FAMILIES, Lane, Outline},
    needs::Needs,
    pager::{self, Counters, Pager},
    planner::{Planner, Scratch},
    resident,
};
use qpx_format::Bundle;
use qpx_kernels::{Cpu, Level, ops::Activations};
use std::sync::Arc;

/// Tokens of a prompt that go through the model together.
pub const CHUNK: usize = 64;
/// The context of a run that states none, where the model has as much.
pub const DEFAULT_CONTEXT: usize = 4096;

/// How a model is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Worker threads; 0 stands for one per core.
    pub threads: usize,
    /// Positions to plan for; `None` for [`DEFAULT_CONTEXT`] or what the model has.
    pub context: Option<usize>,
    /// Bound of the whole process's memory; `None` holds all experts.
    pub memory: Option<u64>,
    /// Instruction set; `None` for the best that there is.
    pub level: Option<Level>,
    /// How activations meet quantised weights.
    pub activations: Activations,
    /// Tokens of a chunk.
    pub chunk: usize,
    /// Bytes of the tokenizer's file, where text is made.
    pub tokenizer_file: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 0,
            context: None,
            memory: None,
            level: None,
            activations: Activations::default(),
            chunk: CHUNK,
            tokenizer_file: 0,
        }
    }
}

/// Which positions' logits are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Those of every token fed.
    All,
    /// Those of the last one.
    Last,
}

/// Takes a position and its logits.
pub type Sink<'a> = dyn FnMut(usize, &[f32]) -> Result<(), Error> + Send + 'a;

/// A model in memory.
pub struct Engine {
    lane: Box<dyn Lane>,
    outline: Outline,
    ops: CpuOps,
    pool: Arc<rayon::ThreadPool>,
    plan: Plan,
    position: usize,
    logits: Vec<f32>,
    cpu: Cpu,
    layers: Vec<u64>,
}

/// The lane of a bundle and what it needs: all that can be known without reading weights.
struct Cast {
    lane: Box<dyn Lane>,
    outline: Outline,
    needs: Needs,
    family: String,
}

fn cast(bundle: &Bundle) -> Result<Cast, Error> {
    let architecture = bundle.manifest().checked.architecture.clone();
    let path = || bundle.path().to_path_buf();
    let name = architecture.get("family").and_then(|f| f.as_str());
    let name = name.unwrap_or_default().to_owned();
    let family = FAMILIES
        .iter()
        .find(|f| f.name == name)
        .ok_or_else(|| Error::UnknownFamily {
            bundle: path(),
            family: name.clone(),
            known: FAMILIES.iter().map(|f| f.name).collect(),
        })?;
    let mut needs = Needs::default();
    let lane = (family.build)(architecture, &mut needs).map_err(|reason| Error::Architecture {
        bundle: path(),
        reason,
    })?;
    Ok(Cast {
        outline: lane.outline(),
        lane,
        needs,
        family: name,
    })
}

/// What the model of `bundle` is, without reading its weights.
///
/// # Errors
/// [`Error::UnknownFamily`], [`Error::Architecture`].
pub fn outline(bundle: &Bundle) -> Result<Outline, Error> {
    Ok(cast(bundle)?.outline)
}

/// A bundle surveyed for a run: the plan, and all that loading needs.
struct Prepared {
    cast: Cast,
    resident: resident::Survey,
    experts: pager::Survey,
    scratch: Scratch,
    plan: Plan,
    threads: usize,
}

fn prepare(bundle: &Bundle, options: &Options) -> Result<Prepared, Error> {
    let cast = cast(bundle)?;
    let resident = resident::Survey::new(bundle, &cast.needs, &cast.family)?;
    let experts = pager::Survey::new(bundle, &cast.needs)?;
    let most = cast.outline.context_length;
    let context = match options.context {
        Some(0) => {
            return Err(Error::Usage {
                flag: "--context",
                reason: "must be at least 1".to_owned(),
            });
        }
        Some(context) if context as u64 > most => {
            return Err(Error::Context {
                context: usize::try_from(most).unwrap_or(usize::MAX),
                needed: context,
                most,
            });
        }
        Some(context) => context,
        None => usize::try_from(most).map_or(DEFAULT_CONTEXT, |most| most.min(DEFAULT_CONTEXT)),
    };
    let chunk = options.chunk.clamp(1, context);
    let mut planner = Planner::new(chunk);
    let ids = vec![0; chunk];
    let state = cast.lane.forward(&mut planner, &ids, 0)?;
    crate::ops::Ops::project(&mut planner, cast.outline.output, &state, 0..1, &mut [])?;
    drop(state);
    let scratch = planner.finish();
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        stated => stated,
    };
    let (keys_values, rotations) = cpu::context_bytes(&cast.needs, context);
    // Logits, and for sampling the candidates (8 bytes) and the marks of tokens that have occurred.
    let logits = cast.outline.vocabulary as u64 * 13;
    let table = bundle.table_bytes();
    let demand = Demand {
        resident: resident.bytes(),
        slot: experts.slot_bytes(),
        experts: experts.experts(),
        least_slots: cast.outline.experts_per_token,
        keys_values,
        rotations,
        scratch: cpu::scratch_bytes(&scratch, chunk),
        logits,
        tokenizer_file: options.tokenizer_file,
        lists: experts.list_bytes() + 2 * bundle.manifest_text().len() as u64 + table.end
            - table.start,
        context,
        chunk,
        threads,
    };
    let plan = budget::plan(&demand, options.memory, pager::os::available_memory())?;
    Ok(Prepared {
        cast,
        resident,
        experts,
        scratch,
        plan,
        threads,
    })
}

/// What a run of `bundle` would take.
///
/// # Errors
/// As [`Engine::load`], as far as no weights are read.
pub fn plan(bundle: &Bundle, options: &Options) -> Result<Plan, Error> {
    Ok(prepare(bundle, options)?.plan)
}

impl Engine {
    /// Plans, allocates, and reads the weights, verifying each leaf as it is read.
    ///
    /// # Errors
    /// What is wrong with the bundle, the options, or the memory; see [`Error`].
    pub fn load(bundle: &Arc<Bundle>, options: &Options) -> Result<Self, Error> {
        let level = match options.level {
            Some(level) => level.require()?,
            None => Level::detect(),
        };
        let p = prepare(bundle, options)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(p.threads)
            .thread_name(|n| format!("compute {n}"))
            .build()
            .map_err(|e| Error::Threads {
                reason: e.to_string(),
            })?;
        let cpu = Cpu::new(level, p.threads, options.activations);
        let (resident, experts, slots) = (p.resident, p.experts, p.plan.slots);
        let (resident, pager) = pool.install(|| {
            let resident = resident.load(bundle)?;
            Ok::<_, Error>((resident, Pager::new(Arc::clone(bundle), experts, slots)?))
        })?;
        let needs = &p.cast.needs;
        let (chunk, context) = (p.plan.chunk, p.plan.context);
        Ok(Self {
            layers: needs.experts.iter().map(|(layer, _)| *layer).collect(),
            ops: CpuOps::new(cpu, resident, pager, needs, &p.scratch, chunk, context),
            logits: vec![0.0; p.cast.outline.vocabulary],
            lane: p.cast.lane,
            outline: p.cast.outline,
            pool: Arc::new(pool),
            plan: p.plan,
            position: 0,
            cpu,
        })
    }

    /// What the model is.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// What it was planned to take.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Level, threads and activations.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Tokens fed since the start.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What the pager did so far.
    pub fn counters(&self) -> Counters {
        self.ops.pager().counters()
    }

    /// Numbers of the layers that have experts.
    pub fn expert_layers(&self) -> &[u64] {
        &self.layers
    }

    /// Forgets all tokens.
    pub fn reset(&mut self) {
        self.position = 0;
    }

    /// Keeps what routers choose, or stops doing so.
    pub fn record_routing(&mut self, record: bool) {
        self.ops.record_routing(record);
    }

    /// What routers chose since the last call.
    pub fn take_routing(&mut self) -> Vec<Choice> {
        self.ops.take_routing()
    }

    /// Does `work` on the model's own threads. Whatever feeds more than a few tokens belongs in here.
    pub fn on_threads<T: Send>(&mut self, work: impl FnOnce(&mut Self) -> T + Send) -> T {
        let pool = Arc::clone(&self.pool);
        pool.install(|| work(self))
    }

    /// Runs `ids` after the tokens fed before; `sink` gets position and logits of those asked for, in order.
    ///
    /// # Errors
    /// [`Error::Context`], [`Error::Token`], [`Error::NotFinite`], those of reading experts, and those of `sink`.
    pub fn feed(&mut self, ids: &[u32], wanted: Wanted, sink: &mut Sink<'_>) -> Result<(), Error> {
        if rayon::current_thread_index().is_none() || self.pool.current_thread_index().is_none() {
            return self.on_threads(|engine| engine.feed_here(ids, wanted, sink));
        }
        self.feed_here(ids, wanted, sink)
    }

    fn feed_here(&mut self, ids: &[u32], wanted: Wanted, sink: &mut Sink<'_>) -> Result<(), Error> {
        let vocabulary = self.outline.vocabulary;
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
            return Err(Error::Token {
                id: u64::from(*id),
                vocabulary,
            });
        }
        let end = self.position.saturating_add(ids.len());
        if end > self.plan.context {
            return Err(Error::Context {
                context: self.plan.context,
                needed: end,
                most: self.outline.context_length,
            });
        }
        for chunk in ids.chunks(self.plan.chunk) {
            let state = self.lane.forward(&mut self.ops, chunk, self.position)?;
            let first = match wanted {
                Wanted::All => 0,
                Wanted::Last if self.position + chunk.len() == end => chunk.len() - 1,
                Wanted::Last => chunk.len(),
            };
            for row in first..chunk.len() {
                let output = self.outline.output;
                crate::ops::Ops::project(
                    &mut self.ops,
                    output,
                    &state,
                    row..row + 1,
                    &mut self.logits,
                )?;
                let position = self.position + row;
                if !self.logits.iter().all(|x| x.is_finite()) {
                    return Err(Error::NotFinite { position });
                }
                sink(position, &self.logits)?;
            }
            self.position += chunk.len();
        }
        Ok(())
    }
}
