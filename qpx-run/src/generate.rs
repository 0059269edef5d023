//! A prompt continued: the loop of decoding, and what it took.

use crate::{
    Engine, Error, Wanted,
    pager::Counters,
    sample::{Sampler, Sampling},
};
use std::time::{Duration, Instant};

/// What a generation took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Time for them.
    pub prompt_time: Duration,
    /// Tokens generated.
    pub generated: usize,
    /// Time for them.
    pub generated_time: Duration,
    /// What the pager did.
    pub pager: Counters,
    /// Whether the model ended the text itself.
    pub ended: bool,
}

/// Continues `prompt` by at most `most` tokens; `sink` gets each as it is chosen. An end token ends it and is not given.
///
/// Between two calls of `sink` nothing is allocated.
///
/// # Errors
/// [`Error::NoTokens`], [`Error::Context`] before anything is computed, and those of [`Engine::feed`] and `sink`.
pub fn generate(
    engine: &mut Engine,
    prompt: &[u32],
    most: usize,
    sampling: Sampling,
    sink: &mut (dyn FnMut(u32) -> Result<(), Error> + Send),
) -> Result<Stats, Error> {
    if prompt.is_empty() {
        return Err(Error::NoTokens);
    }
    let needed = (engine.position() + prompt.len()).saturating_add(most.saturating_sub(1));
    if needed > engine.plan().context {
        return Err(Error::Context {
            context: engine.plan().context,
            needed,
            most: engine.outline().context_length,
        });
    }
    let mut sampler = Sampler::new(sampling, engine.outline().vocabulary);
    prompt.iter().for_each(|id| sampler.note(*id));
    engine.on_threads(|engine| decode(engine, prompt, most, &mut sampler, sink))
}

fn decode(
    engine: &mut Engine,
    prompt: &[u32],
    most: usize,
    sampler: &mut Sampler,
    sink: &mut (dyn FnMut(u32) -> Result<(), Error> + Send),
) -> Result<Stats, Error> {
    let mut stats = Stats {
        prompt: prompt.len(),
        ..Stats::default()
    };
    let began = Instant::now();
    let mut next = 0;
    engine.feed(prompt, Wanted::Last, &mut |_, logits| {
        next = sampler.choose(logits);
        Ok(())
    })?;
    stats.prompt_time = began.elapsed();
    let began = Instant::now();
    for step in 0..most {
        if engine.outline().end_tokens.contains(&next) {
            stats.ended = true;
            break;
        }
        sampler.note(next);
        sink(next)?;
        stats.generated += 1;
        if step + 1 < most {
            engine.feed(&[next], Wanted::Last, &mut |_, logits| {
                next = sampler.choose(logits);
                Ok(())
            })?;
        }
    }
    stats.generated_time = began.elapsed();
    stats.pager = engine.counters();
    Ok(stats)
}

impl std::fmt::Display for Stats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = |tokens: usize, time: Duration| tokens as f64 / time.as_secs_f64().max(1e-9);
        writeln!(
            f,
            "prompt     {} tokens, {:.1} per second",
            self.prompt,
            rate(self.prompt, self.prompt_time)
        )?;
        // The first token falls out of the prompt; the others take a pass each.
        let passes = self.generated.saturating_sub(usize::from(!self.ended));
        writeln!(
            f,
            "generated  {} tokens, {:.1} per second",
            self.generated,
            rate(passes, self.generated_time)
        )?;
        let c = &self.pager;
        if c.hits + c.misses > 0 {
            write!(
                f,
                "experts    {} asked for, {} read ({:.1} % hits), {} in {:.2} s",
                c.hits + c.misses,
                c.misses,
                100.0 * c.hits as f64 / (c.hits + c.misses) as f64,
                crate::budget::size(c.bytes),
                c.waited.as_secs_f64()
            )?;
        } else {
            write!(f, "experts    none")?;
        }
        Ok(())
    }
}
