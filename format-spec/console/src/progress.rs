//! How far the work is: a bar on a terminal, a line every few seconds elsewhere, or nothing.

use crate::{print, words};
use std::{
    io::IsTerminal as _,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Somebody who wants to know how far the work is.
pub trait Progress: Sync {
    /// A step of `total` bytes begins (0: not known).
    fn begin(&self, step: &'static str, total: u64);
    /// `bytes` more are done. Called from any thread.
    fn advance(&self, bytes: u64);
    /// All is done.
    fn end(&self);
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _step: &'static str, _total: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn end(&self) {}
}

/// The progress that suits stderr: a bar on a terminal, lines otherwise, nothing when `quiet`.
pub fn progress(quiet: bool) -> Box<dyn Progress> {
    match quiet {
        true => Box::new(Silent),
        false if std::io::stderr().is_terminal() => Box::new(Bar::default()),
        false => Box::new(Lines::default()),
    }
}

/// A bar on the terminal with bytes per second and the time left.
#[derive(Debug, Default)]
pub struct Bar(Mutex<Option<indicatif::ProgressBar>>);

impl Bar {
    fn with(&self, change: impl FnOnce(&mut Option<indicatif::ProgressBar>)) {
        // A thread that panicked while it drew leaves nothing in disorder.
        change(&mut self.0.lock().unwrap_or_else(|e| e.into_inner()));
    }
}

impl Progress for Bar {
    fn begin(&self, step: &'static str, total: u64) {
        const KNOWN: &str = "{msg:10} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
        let (bar, template) = match total {
            0 => (indicatif::ProgressBar::new_spinner(), "{msg:10} {spinner}"),
            _ => (indicatif::ProgressBar::new(total), KNOWN),
        };
        if let Ok(style) = indicatif::ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(step);
        self.with(|slot| {
            if let Some(last) = slot.replace(bar) {
                last.finish_and_clear();
            }
        });
    }

    fn advance(&self, bytes: u64) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.inc(bytes);
            }
        });
    }

    fn end(&self) {
        self.with(|slot| {
            if let Some(bar) = slot.take() {
                bar.finish_and_clear();
            }
        });
    }
}

impl Drop for Bar {
    /// After an error too the terminal is clean.
    fn drop(&mut self) {
        self.end();
    }
}

/// A line on stderr every few seconds: for logs.
#[derive(Debug)]
pub struct Lines {
    every: Duration,
    done: AtomicU64,
    step: Mutex<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    total: u64,
    began: Instant,
    told: Instant,
}

impl Default for Lines {
    fn default() -> Self {
        Self::every(Duration::from_secs(5))
    }
}

impl Lines {
    /// A line each time that so much time has passed. Work that is done sooner prints nothing.
    pub fn every(every: Duration) -> Self {
        let now = Instant::now();
        Self {
            every,
            done: AtomicU64::new(0),
            step: Mutex::new(Step {
                name: "",
                total: 0,
                began: now,
                told: now,
            }),
        }
    }
}

impl Progress for Lines {
    fn begin(&self, name: &'static str, total: u64) {
        let mut step = self.step.lock().unwrap_or_else(|e| e.into_inner());
        // The moment of the last line stays: many short steps do not make many lines.
        step.name = name;
        step.total = total;
        step.began = Instant::now();
        self.done.store(0, Relaxed);
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Relaxed).saturating_add(bytes);
        // Another thread is just telling: once is enough.
        let Ok(mut step) = self.step.try_lock() else {
            return;
        };
        if step.told.elapsed() >= self.every {
            step.told = Instant::now();
            let seconds = step.began.elapsed().as_secs_f64();
            print::aside(&line(step.name, done, step.total, seconds));
        }
    }

    fn end(&self) {}
}

/// `packing: 1.20 GiB of 4.00 GiB (30%), 310 MiB/s, 9 s left`
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates for people"
)]
fn line(step: &str, done: u64, total: u64, seconds: f64) -> String {
    let rate = done as f64 / seconds.max(1e-3);
    let speed = format!("{}/s", words::size(rate as u64));
    if total == 0 {
        return format!("{step}: {}, {speed}\n", words::size(done));
    }
    let percent = 100.0 * done as f64 / total as f64;
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    format!(
        "{step}: {} of {} ({percent:.0}%), {speed}, {} left\n",
        words::size(done),
        words::size(total),
        duration(left.ceil() as u64)
    )
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_share_speed_and_time_left() {
        let gib = 1 << 30;
        assert_eq!(
            line("packing", gib, 4 * gib, 4.0),
            "packing: 1.00 GiB of 4.00 GiB (25%), 256 MiB/s, 12 s left\n"
        );
        assert_eq!(
            line("planning", 2048, 0, 2.0),
            "planning: 2.00 KiB, 1.00 KiB/s\n"
        );
        assert_eq!(duration(3_725), "1 h 2 min");
    }

    #[test]
    fn progress_counts_from_many_threads() {
        let lines = Lines::every(Duration::from_secs(3600));
        lines.begin("step", 4000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| lines.advance(1)));
            }
        });
        assert_eq!(lines.done.load(Relaxed), 4000);
    }
}
