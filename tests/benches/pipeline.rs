//! Whole programs on a big checkpoint, each beside a peer or a limit measured in the same run.
//!
//! ```sh
//! cargo build --release && QPX_BENCH_CHECKPOINT=DIR cargo bench -p qpx-tests --bench pipeline
//! ```
//!
//! `DIR` is any checkpoint that qpx-pack takes; figures mean something from about 1 GB on. Everything is written beside it and
//! removed afterwards. `b3sum` and `sha256sum` are looked for in the PATH; a peer that is missing is named, and its row left out.
//! Every command runs three times in turn, the median counts; the page cache is warm for all alike.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

const ROUNDS: usize = 3;

fn main() {
    let Some(checkpoint) = env::var_os("QPX_BENCH_CHECKPOINT").map(PathBuf::from) else {
        println!("pipeline: skipped, since QPX_BENCH_CHECKPOINT names no checkpoint folder");
        return;
    };
    let programs = programs();
    let work = checkpoint.with_extension("bench");
    fs::create_dir_all(&work).expect("a scratch folder beside the checkpoint");
    let bench = Bench {
        programs,
        checkpoint,
        work,
    };
    println!(
        "checkpoint {} bytes, {} rounds, medians\n",
        bench.size(),
        ROUNDS
    );
    bench.packing();
    bench.verifying();
    bench.showing();
    bench.decoding();
    fs::remove_dir_all(&bench.work).expect("the scratch folder can be removed");
}

/// The folder of release binaries: the bench itself runs from its `deps`.
fn programs() -> PathBuf {
    let own = env::current_exe().expect("the bench has a path");
    let folder = own
        .ancestors()
        .nth(2)
        .expect("target/release")
        .to_path_buf();
    assert!(
        folder.join("qpx-pack").is_file(),
        "run `cargo build --release` first: {} has no qpx-pack",
        folder.display()
    );
    folder
}

struct Bench {
    programs: PathBuf,
    checkpoint: PathBuf,
    work: PathBuf,
}

/// What one command cost.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    peak_mib: f64,
}

impl Bench {
    fn size(&self) -> u64 {
        let files = fs::read_dir(&self.checkpoint).expect("the checkpoint folder");
        files
            .filter_map(|f| f.ok()?.metadata().ok())
            .map(|m| m.len())
            .sum()
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).to_string_lossy().into_owned()
    }

    fn path(&self, name: &str) -> String {
        self.work.join(name).to_string_lossy().into_owned()
    }

    /// Runs `script` under GNU time's rusage: peak memory is that of the largest process in it.
    fn run(&self, script: &str) -> Cost {
        let started = Instant::now();
        let status = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .and_then(|child| watch(child, started))
            .expect("bash starts");
        assert!(status.0, "failed: {script}");
        status.1
    }

    /// Runs the scripts in turn, `ROUNDS` times, and gives each one's median.
    fn compare(&self, scripts: &[&str]) -> Vec<Cost> {
        let mut costs = vec![Vec::new(); scripts.len()];
        for _ in 0..ROUNDS {
            for (script, costs) in scripts.iter().zip(&mut costs) {
                costs.push(self.run(script));
            }
        }
        costs
            .into_iter()
            .map(|mut all| {
                all.sort_by(|a, b| a.wall.total_cmp(&b.wall));
                all[all.len() / 2]
            })
            .collect()
    }

    fn packing(&self) {
        let (source, copy, pack) = (
            self.checkpoint.display(),
            self.path("copy"),
            self.program("qpx-pack"),
        );
        let (lossless, q4) = (self.path("lossless.qpx"), self.path("q4.qpx"));
        let limit = format!(
            "rm -rf {copy}; cp -r {source} {copy}; sync {copy}/*; cat {source}/*.safetensors | sha256sum; cat {copy}/*.safetensors > /dev/null"
        );
        let ours = format!("{pack} {source} -o {lossless} --force");
        let small = format!("{pack} {source} -o {q4} --recipe q4 --force");
        let costs = self.compare(&[&limit, &ours, &small]);
        println!("| packing | s | beside the limit | peak MiB |\n|---|---:|---:|---:|");
        println!(
            "| limit: cp, sync, sha256sum, one read of the copy | {:.2} | 1.00 | |",
            costs[0].wall
        );
        println!(
            "| qpx-pack --recipe lossless | {:.2} | {:.2} | {:.0} |",
            costs[1].wall,
            costs[1].wall / costs[0].wall,
            costs[1].peak_mib
        );
        println!(
            "| qpx-pack --recipe q4 | {:.2} | {:.2} | {:.0} |\n",
            costs[2].wall,
            costs[2].wall / costs[0].wall,
            costs[2].peak_mib
        );
        fs::remove_dir_all(copy).expect("the copy");
    }

    fn verifying(&self) {
        let bundle = self.path("lossless.qpx");
        let ours = format!("{} verify {bundle}", self.program("qpx-inspect"));
        let peer = format!("b3sum --num-threads $(nproc) {bundle}");
        if !has("b3sum") {
            println!("verify: skipped, since b3sum is not in the PATH\n");
            return;
        }
        let costs = self.compare(&[&peer, &ours]);
        println!("| verifying | s | beside b3sum |\n|---|---:|---:|");
        println!("| b3sum | {:.3} | 1.00 |", costs[0].wall);
        println!(
            "| qpx-inspect verify | {:.3} | {:.2} |\n",
            costs[1].wall,
            costs[1].wall / costs[0].wall
        );
    }

    fn showing(&self) {
        let bundle = self.path("lossless.qpx");
        let show = format!("{} show {bundle}", self.program("qpx-inspect"));
        let costs = self.compare(&["true", &show]);
        println!("| showing | ms |\n|---|---:|");
        println!(
            "| `true` in the same shell | {:.1} |\n| qpx-inspect show | {:.1} |\n",
            costs[0].wall * 1e3,
            costs[1].wall * 1e3
        );
    }

    fn decoding(&self) {
        let limit = memory_bandwidth();
        println!("memory read by all cores: {limit:.1} GB/s\n");
        println!(
            "| decoding 128 tokens | MB per token | tokens/s | GB/s | share of the limit |\n|---|---:|---:|---:|---:|"
        );
        for name in ["lossless.qpx", "q4.qpx"] {
            let bundle = self.path(name);
            let shown = output(&self.program("qpx-inspect"), &["show", &bundle, "--json"]).0;
            let shown: serde_json::Value = serde_json::from_str(&shown).expect("show prints JSON");
            let bytes = shown["per_token"]["total"]
                .as_f64()
                .expect("bytes per token");
            let arguments = [
                &bundle,
                "--prompt",
                "a b c d",
                "--raw",
                "--max-tokens",
                "128",
                "--temperature",
                "0",
                "--stats",
            ];
            let mut rates: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let stats = output(&self.program("qpx-run"), &arguments).1;
                    let line = stats
                        .lines()
                        .find(|l| l.starts_with("generated"))
                        .expect("a line of statistics");
                    let rate = line.rsplit(", ").next().and_then(|r| r.split(' ').next());
                    rate.and_then(|r| r.parse().ok())
                        .expect("tokens per second")
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            let rate = rates[ROUNDS / 2];
            let speed = rate * bytes / 1e9;
            println!(
                "| {name} | {:.1} | {rate:.1} | {speed:.1} | {:.0} % |",
                bytes / 1e6,
                100.0 * speed / limit
            );
        }
    }
}

/// What a command prints: to stdout, to stderr.
fn output(program: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn has(program: &str) -> bool {
    Command::new("bash")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|o| o.status.success())
}

/// Waits for `child`, looking at the peak memory of its process tree as it runs.
fn watch(mut child: std::process::Child, started: Instant) -> std::io::Result<(bool, Cost)> {
    let mut peak_kib = 0_u64;
    loop {
        if let Some(status) = child.try_wait()? {
            let wall = started.elapsed().as_secs_f64();
            return Ok((
                status.success(),
                Cost {
                    wall,
                    peak_mib: peak_kib as f64 / 1024.0,
                },
            ));
        }
        peak_kib = peak_kib.max(largest_descendant(child.id()));
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

/// The largest `VmHWM` (KiB) of a process and its children, where /proc tells.
fn largest_descendant(process: u32) -> u64 {
    let folder = Path::new("/proc").join(process.to_string());
    let own = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let own = own
        .lines()
        .find_map(|l| {
            l.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .unwrap_or(0);
    let children =
        fs::read_to_string(folder.join(format!("task/{process}/children"))).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|c| c.parse().ok())
        .map(largest_descendant)
        .fold(own, u64::max)
}

/// Bytes per second, in 10^9, at which all cores together sum a large array: the wall for decoding.
fn memory_bandwidth() -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let words = (1_usize << 30) / 8;
    let data = vec![1_u64; words];
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let started = Instant::now();
        let total: u64 = std::thread::scope(|scope| {
            let parts: Vec<_> = data
                .chunks(words.div_ceil(threads))
                .map(|part| {
                    scope.spawn(|| {
                        part.chunks(64)
                            .map(|c| c.iter().fold(0_u64, |a, b| a.wrapping_add(*b)))
                            .fold(0, u64::wrapping_add)
                    })
                })
                .collect();
            parts
                .into_iter()
                .map(|p| p.join().expect("a summing thread"))
                .sum()
        });
        assert_eq!(total, words as u64);
        best = best.max((words * 8) as f64 / started.elapsed().as_secs_f64() / 1e9);
    }
    best
}
