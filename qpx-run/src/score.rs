//! Cross-entropy of given sequences: how well a model predicts each token from those before it.

use crate::{Engine, Error, Wanted};

/// A sum of cross-entropies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Tokens scored.
    pub tokens: u64,
    /// Sum of −ln p, in nats.
    pub nats: f64,
}

impl Score {
    /// Nats per token.
    pub fn mean(&self) -> f64 {
        self.nats / self.tokens as f64
    }
}

/// Scores every token after the first of each sequence. Each begins afresh.
///
/// # Errors
/// Those of [`Engine::feed`].
pub fn score<S: AsRef<[u32]> + Sync>(engine: &mut Engine, sequences: &[S]) -> Result<Score, Error> {
    engine.on_threads(|engine| {
        let mut score = Score::default();
        for ids in sequences {
            let ids = ids.as_ref();
            engine.reset();
            let Some((_, before)) = ids.split_last() else {
                continue;
            };
            engine.feed(before, Wanted::All, &mut |position, logits| {
                score.nats += surprise(logits, ids[position + 1]);
                score.tokens += 1;
                Ok(())
            })?;
        }
        Ok(score)
    })
}

/// −ln of the softmax's share of `id`.
fn surprise(logits: &[f32], id: u32) -> f64 {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    let sum: f64 = logits.iter().map(|x| f64::from(x - largest).exp()).sum();
    sum.ln() - f64::from(logits[id as usize] - largest)
}
