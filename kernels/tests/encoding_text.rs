//! The table and the worked examples of `format-spec/SPEC.md` are what the code does. `QPX_BLESS=1` writes them.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use qpx_kernels::encoding::{ENCODINGS, by_name, q2_k, q3_k, q4_1, q4_k, q5_1, q5_k, q6_k, q8_0};
use std::fmt::Write;
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> String {
    let mut text = String::from(
        "| name | values in a block | bytes of a block | bits per value | decodes to binary32 |\n|---|---|---|---|---|\n",
    );
    for e in ENCODINGS {
        let bits = e.bytes as f64 * 8.0 / e.block as f64;
        let decodes = if e.decode.is_some() { "yes" } else { "no" };
        writeln!(
            text,
            "| `{}` | {} | {} | {bits} | {decodes} |",
            e.name, e.block, e.bytes
        )
        .unwrap();
    }
    text
}

/// A value's bits and, for people, the number.
fn shown(x: f32) -> String {
    format!("{:08x}  {x:e}", x.to_bits())
}

fn plain_example(name: &str, codes: &[&[u8]]) -> String {
    let mut text = format!("```\n{name}: bytes, value as binary32 (bits, decimal)\n");
    for code in codes {
        let mut value = [0.0];
        by_name(name).unwrap().decode.unwrap()(code, &mut value);
        let bytes: Vec<String> = code.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(text, "  {:<8} {}", bytes.join(" "), shown(value[0])).unwrap();
    }
    text + "```\n"
}

/// The whole numbers of a block, what scales them, and the sub-block of a value.
struct Parts {
    quants: Vec<i8>,
    steps: String,
    sub_blocks: Option<(usize, Vec<String>)>,
}

fn with_minimums(
    d: [f32; 2],
    width: usize,
    scales: &[u8],
    minimums: &[u8],
    quants: &[i8],
) -> Parts {
    let numbers = scales
        .iter()
        .zip(minimums)
        .map(|(s, m)| format!("scale {s}, minimum {m}"));
    Parts {
        quants: quants.to_vec(),
        steps: format!("d = {:e}, dmin = {:e}", d[0], d[1]),
        sub_blocks: Some((width, numbers.collect())),
    }
}

fn with_scales(d: f32, scales: &[i8], quants: &[i8]) -> Parts {
    let numbers = scales.iter().map(|s| format!("scale {s}"));
    Parts {
        quants: quants.to_vec(),
        steps: format!("d = {d:e}"),
        sub_blocks: Some((16, numbers.collect())),
    }
}

fn parts(name: &str, block: &[u8]) -> Parts {
    let (mut q, mut q32) = ([0; 256], [0; 32]);
    let (mut s, mut m) = ([0u8; 16], [0u8; 16]);
    let (mut s8, mut m8, mut signed) = ([0u8; 8], [0u8; 8], [0i8; 16]);
    let simple = |steps: String, q: [i8; 32]| Parts {
        quants: q.to_vec(),
        steps,
        sub_blocks: None,
    };
    match name {
        "q8_0" => {
            let d = q8_0::unpack(block.try_into().unwrap(), &mut q32);
            simple(format!("d = {d:e}"), q32)
        }
        "q4_1" => {
            let [d, m] = q4_1::unpack(block.try_into().unwrap(), &mut q32);
            simple(format!("d = {d:e}, m = {m:e}"), q32)
        }
        "q5_1" => {
            let [d, m] = q5_1::unpack(block.try_into().unwrap(), &mut q32);
            simple(format!("d = {d:e}, m = {m:e}"), q32)
        }
        "q6_k" => {
            let d = q6_k::unpack(block.try_into().unwrap(), &mut q, &mut signed);
            with_scales(d, &signed, &q)
        }
        "q3_k" => {
            let d = q3_k::unpack(block.try_into().unwrap(), &mut q, &mut signed);
            with_scales(d, &signed, &q)
        }
        "q5_k" => {
            let d = q5_k::unpack(block.try_into().unwrap(), &mut q, &mut s8, &mut m8);
            with_minimums(d, 32, &s8, &m8, &q)
        }
        "q4_k" => {
            let d = q4_k::unpack(block.try_into().unwrap(), &mut q, &mut s8, &mut m8);
            with_minimums(d, 32, &s8, &m8, &q)
        }
        "q2_k" => {
            let d = q2_k::unpack(block.try_into().unwrap(), &mut q, &mut s, &mut m);
            with_minimums(d, 16, &s, &m, &q)
        }
        _ => panic!("no example for {name}"),
    }
}

/// The first block of the test vectors, with the values of the independent decoder that made them.
fn block_example(name: &str) -> String {
    let encoding = by_name(name).unwrap();
    let file = std::fs::read(folder().join(format!("tests/vectors/{name}.bin"))).unwrap();
    let count = u32::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let block = &file[4..][..encoding.bytes];
    let values = file[4 + count * encoding.bytes..].as_chunks().0;
    let parts = parts(name, block);
    let mut text = format!("```\n{name}: one block\n");
    for line in block.chunks(32) {
        let bytes: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(text, "  {}", bytes.join(" ")).unwrap();
    }
    writeln!(text, "{}", parts.steps).unwrap();
    let places: &[usize] = if encoding.block == 32 {
        &[0, 1, 15, 16, 31]
    } else {
        &[0, 1, 31, 32, 100, 127, 128, 200, 255]
    };
    for &i in places {
        let scale = parts
            .sub_blocks
            .as_ref()
            .map_or(String::new(), |(width, numbers)| {
                format!(", {}", numbers[i / width])
            });
        let value = f32::from_le_bytes(values[i]);
        writeln!(
            text,
            "value {i:3}: q {}{scale}: {}",
            parts.quants[i],
            shown(value)
        )
        .unwrap();
    }
    text + "```\n"
}

fn example(name: &str) -> String {
    match name {
        "f16" => plain_example(
            name,
            &[
                &[0x00, 0x3c],
                &[0xff, 0x7b],
                &[0x01, 0x80],
                &[0xff, 0x03],
                &[0x55, 0x35],
            ],
        ),
        "bf16" => plain_example(name, &[&[0x80, 0x3f], &[0x01, 0x80], &[0x49, 0xc0]]),
        "f8_e4m3" => plain_example(name, &[&[0x38], &[0x7e], &[0x81], &[0x07], &[0x08]]),
        "f8_e5m2" => plain_example(name, &[&[0x3c], &[0x7b], &[0x81], &[0x04]]),
        "f8_e8m0" => plain_example(name, &[&[0x00], &[0x7f], &[0x80], &[0xfe]]),
        _ => block_example(name),
    }
}

/// `text` with everything between our markers written anew, and the names of the examples shown. Other comments are left alone.
fn rewritten(text: &str) -> (String, Vec<String>) {
    let (mut out, mut shown, mut within) = (String::new(), Vec::new(), false);
    for line in text.split_inclusive('\n') {
        let marker = line
            .trim_end()
            .strip_prefix("<!-- ")
            .and_then(|l| l.strip_suffix(" -->"));
        if within && marker != Some("end") {
            continue;
        }
        within = false;
        out.push_str(line);
        if marker == Some("table of encodings") {
            within = true;
            out.push_str(&table());
        } else if let Some(name) = marker.and_then(|m| m.strip_prefix("example ")) {
            within = true;
            out.push_str(&example(name));
            shown.push(name.to_owned());
        }
    }
    assert!(!within, "a marker without <!-- end -->");
    (out, shown)
}

#[test]
fn the_specification_shows_what_the_code_does() {
    let path = folder().join("../format-spec/SPEC.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (expected, shown) = rewritten(&text);
    if std::env::var_os("QPX_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            text == expected,
            "SPEC.md differs from the code: QPX_BLESS=1 writes it anew"
        );
    }
    for e in ENCODINGS
        .iter()
        .filter(|e| e.decode.is_some() && e.name != "f32")
    {
        assert!(
            shown.iter().any(|n| n == e.name),
            "{} has no example",
            e.name
        );
    }
}
