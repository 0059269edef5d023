//! `verify`: is every byte what was sealed? A verdict in words, an exit code, and each fault with its place.

use crate::Error;
use qpx_console::{Exit, Failure as _, Progress, Report, exit_of, grouped, harmless, size};
use qpx_format::{Bundle, Error as Fault, error::Kind, verify as format};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is to be verified.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The bundle.
    pub bundle: PathBuf,
    /// Only a sample of the leaves.
    pub quick: bool,
    /// The id that the bundle must have, 64 lower-case hex digits.
    pub expect_id: Option<String>,
    /// Threads that read; 0 stands for all cores.
    pub threads: usize,
}

/// What came out.
#[derive(Debug)]
pub struct Verdict {
    file: String,
    quick: bool,
    expected_id: Option<String>,
    /// The id of what page 0 says, where it can be read.
    pub id: Option<String>,
    /// All faults, in file order.
    pub faults: Vec<Fault>,
    checked: Option<format::Report>,
}

/// Verifies.
///
/// # Errors
/// Only when the file can't be read; what is wrong with a bundle is in the verdict.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Verdict, Error> {
    let mut verdict = Verdict {
        file: request.bundle.display().to_string(),
        quick: request.quick,
        expected_id: request.expect_id.clone(),
        id: None,
        faults: Vec::new(),
        checked: None,
    };
    match check(request, &mut verdict, progress) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), Kind::Io | Kind::OutputRefused | Kind::NoSpace) => {
            return Err(error.into());
        }
        Err(error) => verdict.faults.push(error),
    }
    Ok(verdict)
}

fn check(request: &Request, verdict: &mut Verdict, progress: &dyn Progress) -> Result<(), Fault> {
    let bundle = Bundle::open(&request.bundle)?;
    verdict.id = Some(qpx_console::hex(&bundle.id()));
    let threads = match request.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        stated => stated,
    };
    let mut report = if request.quick {
        format::quick(&bundle)?
    } else {
        // What lies before has been verified on opening.
        let rest = bundle
            .content_length()
            .saturating_sub(bundle.table_bytes().end);
        progress.begin("verifying", rest);
        let report = format::full(&bundle, threads, &|done| progress.advance(done));
        progress.end();
        report?
    };
    verdict.faults.append(&mut report.faults);
    verdict.checked = Some(report);
    Ok(())
}

impl Verdict {
    fn other_id(&self) -> bool {
        matches!((&self.expected_id, &self.id), (Some(a), Some(b)) if a != b)
    }

    /// The verdict in words.
    pub fn word(&self) -> &'static str {
        match self.exit() {
            Exit::Success if self.expected_id.is_some() => "intact and as expected",
            Exit::Success => "intact and unsigned",
            other => other.word(),
        }
    }

    fn sentence(&self) -> String {
        let word = self.word();
        let mut text = match self.exit() {
            Exit::Success if self.quick => {
                format!("{word}, as far as a quick look goes: {}", self.file)
            }
            Exit::Success => format!("{word}: {}", self.file),
            Exit::RefusedByPolicy => {
                format!("{word}: {} is intact, but another bundle", self.file)
            }
            _ => match self.faults.len() {
                1 => format!("{word}: {}", self.file),
                n => format!("{word} in {n} places: {}", self.file),
            },
        };
        text.push('\n');
        text
    }
}

impl Report for Verdict {
    fn text(&self) -> String {
        let mut text = self.sentence();
        for fault in &self.faults {
            text += &format!("\n{fault}\n");
        }
        if !self.faults.is_empty() {
            text.push('\n');
        }
        if let Some(id) = &self.id {
            text += &format!("  id        {id}\n");
        }
        if let Some(expected) = self.expected_id.as_ref().filter(|_| self.other_id()) {
            text += &format!("  expected  {expected}\n");
        }
        if let Some(c) = &self.checked {
            text += &format!(
                "  checked   {} in {} leaves, {} of padding, {} stamps\n",
                size(c.bytes),
                grouped(c.leaves),
                size(c.padding),
                c.stamps
            );
            if let Some(torn) = &c.torn {
                text += &format!("  note      {torn}\n");
            }
        }
        let hint = match (self.exit(), self.faults.first()) {
            (Exit::Success, _) if self.expected_id.is_none() => None,
            (Exit::RefusedByPolicy, _) => Some(
                "compare the id with its source once more, or fetch the bundle again".to_owned(),
            ),
            // The listing is here already.
            (Exit::Altered, Some(Fault::Altered { .. })) => {
                Some("copy or download the file again, or pack the checkpoint again".to_owned())
            }
            (_, Some(fault)) => fault.hint(),
            _ => None,
        };
        if let Some(hint) = hint {
            text += &format!("\nhint: {hint}\n");
        }
        harmless(&text)
    }

    fn json(&self) -> Value {
        let checked = self.checked.as_ref().map(|c| {
            json!({
                "leaves": c.leaves,
                "bytes": c.bytes,
                "padding": c.padding,
                "stamps": c.stamps,
                "torn": c.torn.as_ref().map(|t| t.to_string()),
            })
        });
        json!({
            "file": self.file,
            "verdict": self.word(),
            "exit": qpx_console::exit_json(self.exit()),
            "mode": if self.quick { "quick" } else { "full" },
            "id": self.id,
            "expected_id": self.expected_id,
            "checked": checked,
            "faults": self.faults.iter().map(fault_json).collect::<Vec<_>>(),
        })
    }

    fn exit(&self) -> Exit {
        match self.faults.first() {
            Some(fault) => exit_of(fault),
            None if self.other_id() => Exit::RefusedByPolicy,
            None => Exit::Success,
        }
    }
}

fn fault_json(fault: &Fault) -> Value {
    let place = fault.place();
    let (expected, found) = match fault {
        Fault::Altered {
            expected, found, ..
        } => (Some(expected.clone()), Some(found.clone())),
        Fault::CutShort {
            expected, found, ..
        } => (Some(expected.to_string()), Some(found.to_string())),
        _ => (None, None),
    };
    json!({
        "message": fault.headline(),
        "exit": qpx_console::exit_json(fault.exit()),
        "rule": fault.rule(),
        "region": place.map(|p| p.region.clone()),
        "subject": place.and_then(|p| p.subject.clone()),
        "leaf": place.and_then(|p| p.leaf),
        "bytes": place.map(|p| json!({ "start": p.bytes.start, "end": p.bytes.end })),
        "expected": expected,
        "found": found,
    })
}
