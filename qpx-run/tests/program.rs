//! The commands as a user runs them: text, logits, proofs, and what they refuse.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed test says where"
)]

mod support;

use clap::Parser as _;
use qpx_console::Exit;
use qpx_format::{Bundle, Part, Role};
use qpx_run::{Error, chat::Chat, cli::Cli, cli::Command, commands, prove::Verdict, text::Text};
use safetensors::SafeTensors;
use std::{fs, os::unix::fs::FileExt as _, path::Path};
use support::{Packed, fixture, ids};

fn continued(path: &Path, flags: &[&str]) -> Result<(String, String), Error> {
    let bundle = path.to_str().unwrap();
    let cli = Cli::try_parse_from(["qpx-run", bundle].iter().chain(flags)).unwrap();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    commands::continue_prompt(&cli.generate, &mut out, &mut notes)?;
    Ok((
        String::from_utf8(out).unwrap(),
        String::from_utf8(notes).unwrap(),
    ))
}

fn prove(path: &Path, flags: &[&str]) -> Result<qpx_run::prove::Outcome, Error> {
    let line = ["qpx-run", "prove", path.to_str().unwrap()];
    match Cli::try_parse_from(line.iter().chain(flags))
        .unwrap()
        .command
    {
        Some(Command::Prove(args)) => commands::prove(&args),
        other => panic!("{other:?}"),
    }
}

#[test]
fn texts_become_the_expected_ids() {
    for name in [
        "oracle/llama",
        "oracle/qwen3",
        "oracle/qwen3_moe",
        "tiny-coder",
    ] {
        let packed = Packed::lossless(name);
        let bundle = packed.bundle();
        let text = Text::open(&bundle).unwrap();
        let golden = fs::read_to_string(fixture(name).join("golden.json")).unwrap();
        let golden: serde_json::Value = serde_json::from_str(&golden).unwrap();
        for prompt in golden["prompts"].as_array().unwrap() {
            let label = prompt["name"].as_str().unwrap();
            let special = prompt["add_special_tokens"].as_bool().unwrap_or(true);
            let words = prompt["text"].as_str().unwrap();
            let found = text.encode(words, special).unwrap();
            assert_eq!(found, ids(&prompt["input_ids"]), "{name} {label}");
            if let Some(messages) = prompt["messages"].as_array() {
                let rendered = Chat::open(&bundle)
                    .unwrap()
                    .render_messages(messages)
                    .unwrap();
                assert_eq!(rendered, words, "{name} {label}: the chat template");
            }
            // Whatever is streamed in pieces is the whole text in the end.
            let greedy = ids(&prompt["greedy_ids"]);
            let mut stream = qpx_run::text::Stream::new(&text, &[]);
            let mut streamed: String = greedy.iter().map(|id| stream.push(*id)).collect();
            streamed += &stream.finish();
            let whole = prompt["greedy_text"].as_str().unwrap();
            if !whole.contains("<|") && !whole.contains('\u{fffd}') {
                assert_eq!(streamed, whole, "{name} {label}");
            }
        }
    }
}

#[test]
fn characters_in_several_tokens_arrive_whole() {
    let packed = Packed::lossless("oracle/qwen3");
    let text = Text::open(&packed.bundle()).unwrap();
    let words = "café, 你好 🙂 naïve\n";
    let ids = text.encode(words, false).unwrap();
    let mut stream = qpx_run::text::Stream::new(&text, &[]);
    let pieces: Vec<String> = ids.iter().map(|id| stream.push(*id)).collect();
    assert!(pieces.iter().all(|p| !p.contains('\u{fffd}')), "{pieces:?}");
    assert_eq!(pieces.concat() + &stream.finish(), words);
    assert!(
        pieces.iter().any(String::is_empty),
        "some character took several tokens"
    );
}

#[test]
fn a_prompt_is_continued_the_same_way_for_a_seed() {
    let packed = Packed::lossless("tiny-coder");
    let flags = [
        "--prompt",
        "let total",
        "--raw",
        "--max-tokens",
        "24",
        "--stats",
    ];
    let (text, notes) = continued(&packed.path, &flags).unwrap();
    assert!(text.trim().len() > 10, "{text}");
    for word in ["resident weights", "total", "per second", "experts"] {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    assert_eq!(
        continued(&packed.path, &flags).unwrap().0,
        text,
        "seed 0 by default"
    );
    let mut other = flags.to_vec();
    other.extend(["--seed", "5"]);
    assert_ne!(continued(&packed.path, &other).unwrap().0, text);
    // The chat template is used unless the prompt is to be raw.
    let (chat, _) = continued(
        &packed.path,
        &[
            "--prompt",
            "hello",
            "--max-tokens",
            "8",
            "--temperature",
            "0",
        ],
    )
    .unwrap();
    assert!(!chat.is_empty());
    let wrong = continued(
        &packed.path,
        &[
            "--prompt",
            "x",
            "--raw",
            "--temperature",
            "0",
            "--top-k",
            "5",
        ],
    );
    assert_eq!(wrong.unwrap_err().exit(), Exit::Usage);
    // Without a number of tokens, what the context has room for is generated; more than that is an error.
    let short = ["--prompt", "x", "--raw", "--context", "4"];
    assert!(continued(&packed.path, &short).is_ok());
    let mut long = short.to_vec();
    long.extend(["--max-tokens", "9"]);
    let wrong = continued(&packed.path, &long);
    assert!(matches!(wrong, Err(Error::Context { .. })));
}

#[test]
fn logits_are_written_raw() {
    let packed = Packed::lossless("oracle/qwen3_moe");
    let folder = packed.path.parent().unwrap();
    let (tokens, output) = (folder.join("t.json"), folder.join("o.safetensors"));
    fs::write(&tokens, "[[1,2,3],[4]]").unwrap();
    let line = |force: bool| {
        let mut line = vec![
            "qpx-run",
            "logits",
            packed.path.to_str().unwrap(),
            "--routing",
        ];
        line.extend([
            "--tokens",
            tokens.to_str().unwrap(),
            "-o",
            output.to_str().unwrap(),
        ]);
        line.extend(force.then_some("--force"));
        match Cli::try_parse_from(line).unwrap().command {
            Some(Command::Logits(args)) => commands::write_logits(&args),
            other => panic!("{other:?}"),
        }
    };
    line(false).unwrap();
    let data = fs::read(&output).unwrap();
    let tensors = SafeTensors::deserialize(&data).unwrap();
    let rows = support::logits(&mut packed.engine(&qpx_run::Options::default()), &[1, 2, 3]);
    let view = tensors.tensor("sequence.0.logits").unwrap();
    assert_eq!(view.shape(), [3, 384]);
    let expected: Vec<u8> = rows
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    assert!(view.data() == expected);
    assert_eq!(
        tensors.tensor("sequence.1.experts.2").unwrap().shape(),
        [1, 3]
    );
    assert_eq!(line(false).unwrap_err().exit(), Exit::OutputRefused);
    line(true).unwrap();
}

#[test]
fn a_proof_is_recorded_once_and_compared_to_the_bit() {
    let packed = Packed::lossless("oracle/qwen3_moe");
    let outcome = prove(&packed.path, &[]).unwrap();
    assert_eq!(
        (outcome.verdict, outcome.verdict.exit()),
        (Verdict::NoProof, Exit::NoProof)
    );
    assert_eq!(
        prove(&packed.path, &["--record"]).unwrap().verdict,
        Verdict::Recorded
    );
    let length = fs::metadata(&packed.path).unwrap().len();
    for flags in [
        &[][..],
        &["--record"],
        &["--threads", "1", "--level", "scalar"],
    ] {
        assert_eq!(
            prove(&packed.path, flags).unwrap().verdict,
            Verdict::Exact,
            "{flags:?}"
        );
    }
    assert_eq!(
        fs::metadata(&packed.path).unwrap().len(),
        length,
        "nothing more was appended"
    );
    let floats = prove(&packed.path, &["--activations", "f32"]).unwrap();
    assert_eq!(
        floats.verdict,
        Verdict::NoProof,
        "another arithmetic has its own proof"
    );

    // A bundle with other weights and this proof: what a wrong decoder would look like.
    let other = Packed::lossless("oracle/qwen3_moe");
    let mut proof = outcome.proof;
    proof.probes[1].logits = "00".repeat(32);
    let text = serde_json::to_vec(&proof).unwrap();
    qpx_format::stamp::append(&other.path, "proof", &text).unwrap();
    let outcome = prove(&other.path, &["--record"]).unwrap();
    assert_eq!(
        (outcome.verdict, outcome.differing),
        (Verdict::Differs, vec![1])
    );
    assert_eq!(outcome.verdict.exit(), Exit::ProofDiffers);
}

fn flip(path: &Path, offset: u64) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
}

#[test]
fn a_flipped_byte_is_refused_with_its_place() {
    let extent = |bundle: &Bundle, role: &str| bundle.extent(&Role::parse(role).unwrap()).unwrap();
    let cases = [
        "page 0",
        "manifest",
        "digests",
        "layer.1.attention.key",
        "norm",
        "embedding",
        "expert",
        "tokenizer.json",
        "stamp",
    ];
    for case in cases {
        let packed = Packed::lossless("oracle/qwen3_moe");
        if case == "stamp" {
            prove(&packed.path, &["--record"]).unwrap();
        }
        let bundle = packed.bundle();
        let (offset, named) = match case {
            "page 0" => (100, "page 0"),
            "manifest" => (qpx_format::PAGE_BYTES + 40, "manifest"),
            "digests" => (bundle.table_bytes().start + 5, "digest table"),
            "expert" => {
                let extent = bundle.expert(2, 7, Part::Up).unwrap();
                (extent.offset + extent.length - 1, "layer.2.expert.7.up")
            }
            "tokenizer.json" => (bundle.attached_named(case).unwrap().offset + 9, case),
            "stamp" => (bundle.content_length() + 130, "stamp"),
            role => (extent(&bundle, role).offset + 3, role),
        };
        drop(bundle);
        flip(&packed.path, offset);
        let error = match case {
            "tokenizer.json" => continued(&packed.path, &["--prompt", "x", "--raw"]).unwrap_err(),
            _ => prove(&packed.path, &[]).unwrap_err(),
        };
        let message = error.to_string();
        assert!(message.contains(named), "{case}: {message}");
        let expected = if case == "page 0" {
            [Exit::Altered, Exit::NotABundle]
        } else {
            [Exit::Altered; 2]
        };
        assert!(expected.contains(&error.exit()), "{case}: {message}");
    }
}
