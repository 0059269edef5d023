//! The commands, from arguments to results. Text goes to the writers that are handed in.

use crate::{
    Engine, Error, Options,
    chat::Chat,
    cli, engine,
    generate::generate,
    logits, prove, sample,
    text::{self, Stream, Text},
    tokens,
};
use qpx_format::Bundle;
use std::{fs, io::Write, path::Path, sync::Arc};

/// Most tokens to generate when the user names no number.
const USUAL_TOKENS: usize = 256;

/// Continues a prompt: text to `out` as it comes, notes and figures to `notes`.
///
/// # Errors
/// See [`Error`].
pub fn continue_prompt(
    args: &cli::Generate,
    out: &mut (dyn Write + Send),
    notes: &mut (dyn Write + Send),
) -> Result<(), Error> {
    // The command line requires both, unless it names another command.
    let missing = |flag| Error::Usage {
        flag,
        reason: "is needed to continue a prompt".to_owned(),
    };
    let path = args.bundle.as_ref().ok_or_else(|| missing("BUNDLE"))?;
    let prompt = args.prompt.as_ref().ok_or_else(|| missing("--prompt"))?;
    let options = args.machine.options()?;
    let bundle = Arc::new(Bundle::open(path)?);
    let outline = engine::outline(&bundle)?;
    let sampling = sample::settings(&bundle, &args.overrides())?;
    let text = Text::open(&bundle)?;
    let ids = if args.raw {
        text.encode(prompt, true)?
    } else {
        let chat = Chat::open(&bundle)?.render(args.system.as_deref(), prompt)?;
        // The template writes all special tokens itself.
        text.encode(&chat, false)?
    };
    if ids.is_empty() {
        return Err(Error::NoTokens);
    }
    let room = u64::try_from(options.context.unwrap_or(usize::MAX))
        .unwrap_or(u64::MAX)
        .min(outline.context_length);
    let room = usize::try_from(room)
        .unwrap_or(usize::MAX)
        .saturating_sub(ids.len());
    let most = args
        .max_tokens
        .map_or(room.clamp(1, USUAL_TOKENS), |n| n as usize);
    let needed = ids.len() + most;
    if needed as u64 > outline.context_length {
        return Err(Error::Context {
            context: usize::try_from(outline.context_length).unwrap_or(usize::MAX),
            needed,
            most: outline.context_length,
        });
    }
    let options = Options {
        context: options.context.or(Some(needed)),
        tokenizer_file: text::file_bytes(&bundle),
        ..options
    };
    if let Some(context) = options.context.filter(|c| *c < needed) {
        return Err(Error::Context {
            context,
            needed,
            most: outline.context_length,
        });
    }
    let mut engine = Engine::load(&bundle, &options)?;
    let failed = |reason| Error::Output { reason };
    if args.stats {
        writeln!(notes, "{}", engine.plan()).map_err(failed)?;
    }
    let mut stream = Stream::new(&text, &ids);
    let mut unknown = 0_u64;
    let stats = generate(&mut engine, &ids, most, sampling, &mut |id| {
        unknown += u64::from(!text.knows(id));
        let piece = stream.push(id);
        out.write_all(piece.as_bytes())
            .and_then(|()| out.flush())
            .map_err(failed)
    })?;
    writeln!(out, "{}", stream.finish())
        .and_then(|()| out.flush())
        .map_err(failed)?;
    if unknown > 0 {
        let words = "tokens that the tokenizer has no text for";
        writeln!(notes, "note: the model chose {unknown} {words}").map_err(failed)?;
    }
    if args.stats {
        let cpu = engine.cpu();
        writeln!(notes, "{stats}").map_err(failed)?;
        writeln!(notes, "level      {}, {} threads", cpu.level, cpu.threads).map_err(failed)?;
    }
    Ok(())
}

/// Whether both names lead to one file.
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Writes raw logits.
///
/// # Errors
/// See [`Error`].
pub fn write_logits(args: &cli::Logits) -> Result<logits::Written, Error> {
    let options = args.machine.options()?;
    let sequences = tokens::read(&args.tokens)?;
    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    let bundle = Arc::new(Bundle::open(&args.bundle)?);
    for input in [&args.bundle, &args.tokens] {
        if same_file(input, &args.output) {
            return Err(qpx_format::Error::NotOurs {
                file: args.output.clone(),
                found: "an input of this command",
            }
            .into());
        }
    }
    let options = Options {
        context: options.context.or(Some(longest)),
        ..options
    };
    let mut engine = Engine::load(&bundle, &options)?;
    engine.on_threads(|engine| {
        logits::write(engine, &sequences, args.routing, &args.output, args.force)
    })
}

/// Computes the proof and compares or records it.
///
/// # Errors
/// See [`Error`].
pub fn prove(args: &cli::Prove) -> Result<prove::Outcome, Error> {
    let options = args.machine.options()?;
    let bundle = Arc::new(Bundle::open(&args.bundle)?);
    let outline = engine::outline(&bundle)?;
    if args.machine.context.is_some() {
        return Err(Error::Usage {
            flag: "--context",
            reason: "has no use here: the probes' length is fixed".to_owned(),
        });
    }
    let options = Options {
        context: Some(prove::context(outline.context_length)),
        ..options
    };
    let mut engine = Engine::load(&bundle, &options)?;
    let proof = engine.on_threads(prove::compute)?;
    prove::compare(&bundle, proof, args.record)
}
