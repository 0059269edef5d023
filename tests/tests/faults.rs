//! The machine fails while a program works: no room, no right to write, a kill, two programs at one output.
//! Whatever happens, nothing unfinished bears a final name, and what stood there before stays as it was.

use qpx_tests::{
    checkpoint::copy,
    program::{command, pack, run},
    workspace::{fixture, skipped},
};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// A small file system in memory, mounted for one test.
struct Mount(PathBuf);

impl Mount {
    /// Mounts it, or says why that can't be done here.
    fn new(folder: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir_all(&folder).expect("a folder to mount at");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&folder)
            .stderr(Stdio::null())
            .status();
        if status.is_ok_and(|s| s.success()) {
            return Some(Self(folder));
        }
        skipped("mounting a small file system takes root on Linux");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn arguments<'a>(source: &'a Path, output: &'a Path) -> [&'a OsStr; 3] {
    [source.as_os_str(), OsStr::new("-o"), output.as_os_str()]
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn a_disk_without_room_is_told_before_the_first_byte() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let Some(mount) = Mount::new(scratch.path().join("small"), "size=2m") else {
        return;
    };
    let ran = run(
        "qpx-pack",
        arguments(&fixture("tiny-coder"), &mount.0.join("out.qpx")),
    );
    ran.expect(1).says(&["out.qpx", "free"]);
    assert_eq!(names(&mount.0), [""; 0]);
}

#[test]
fn a_disk_that_fills_up_meanwhile_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    // Enough for the free-space check as others see it; a quota of inodes makes creation itself fail.
    let Some(mount) = Mount::new(scratch.path().join("small"), "size=64m,nr_inodes=1") else {
        return;
    };
    let ran = run(
        "qpx-pack",
        arguments(&fixture("tiny-coder"), &mount.0.join("out.qpx")),
    );
    ran.expect(1).says(&["out.qpx"]);
    assert_eq!(names(&mount.0), [""; 0]);
}

#[test]
fn a_read_only_folder_is_named() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let Some(mount) = Mount::new(scratch.path().join("fixed"), "size=64m,ro") else {
        return;
    };
    let ran = run(
        "qpx-pack",
        arguments(&fixture("tiny-coder"), &mount.0.join("out.qpx")),
    );
    ran.expect(1).says(&["out.qpx", "read-only"]);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let output = scratch.path().join("absent/out.qpx");
    run("qpx-pack", arguments(&fixture("tiny-coder"), &output))
        .expect(1)
        .says(&["absent"]);
    assert_eq!(names(scratch.path()), [""; 0]);
}

#[test]
fn an_output_that_exists_is_kept() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let output = scratch.path().join("out.qpx");
    fs::write(&output, "precious").expect("written");
    run("qpx-pack", arguments(&fixture("oracle/llama"), &output))
        .expect(4)
        .says(&["out.qpx", "--force"]);
    assert_eq!(fs::read(&output).expect("still there"), b"precious");
    let forced = [
        fixture("oracle/llama").into_os_string(),
        "-o".into(),
        output.clone().into_os_string(),
        "--force".into(),
    ];
    run("qpx-pack", forced).expect(0);
    run("qpx-inspect", [OsStr::new("verify"), output.as_os_str()]).expect(0);
}

#[cfg(unix)]
#[test]
fn no_input_is_ever_written_onto() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = copy(&fixture("oracle/llama"), &scratch.path().join("model"));
    let shard = folder.join("model-00001-of-00003.safetensors");
    let before = fs::read(&shard).expect("the shard");
    let (hard, soft) = (
        scratch.path().join("hard.qpx"),
        scratch.path().join("soft.qpx"),
    );
    fs::hard_link(&shard, &hard).expect("a hard link");
    std::os::unix::fs::symlink(&shard, &soft).expect("a symbolic link");
    for output in [&shard, &hard, &soft] {
        let forced = [
            folder.as_os_str(),
            OsStr::new("-o"),
            output.as_os_str(),
            OsStr::new("--force"),
        ];
        run("qpx-pack", forced)
            .expect(4)
            .says(&[&output.file_name().expect("a name").to_string_lossy()]);
        assert_eq!(
            fs::read(&shard).expect("the shard"),
            before,
            "{} was written onto",
            output.display()
        );
    }
}

#[test]
fn a_kill_at_any_moment_leaves_no_final_name() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let output = scratch.path().join("out.qpx");
    let (mut killed, mut finished) = (0, 0);
    for step in 0..40 {
        let mut child = command("qpx-pack")
            .args(arguments(&fixture("tiny-coder"), &output))
            .args(["--recipe", "q4", "--threads", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(Duration::from_millis(step * 4));
        let _ = child.kill();
        let done = child.wait().expect("an end").success();
        if output.exists() {
            // Killed or not: what bears the final name is whole.
            run("qpx-inspect", [OsStr::new("verify"), output.as_os_str()]).expect(0);
            fs::remove_file(&output).expect("removed");
        }
        if done {
            finished += 1
        } else {
            killed += 1
        }
        for left in names(scratch.path()) {
            assert_eq!(left, "out.qpx.partial");
        }
    }
    println!("{killed} killed, {finished} finished first");
    assert!(
        killed > 0,
        "every run finished before its kill: nothing was tested"
    );
    // The leftovers of a kill don't stand in the way of the next run.
    run("qpx-pack", arguments(&fixture("tiny-coder"), &output)).expect(0);
    assert_eq!(names(scratch.path()), ["out.qpx"]);
}

#[test]
fn the_same_checkpoint_gives_the_same_bytes() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let elsewhere = copy(
        &fixture("oracle/qwen3_moe"),
        &scratch.path().join("another name"),
    );
    let bytes = |source: &Path, threads: &str, recipe: &str| {
        let output = scratch.path().join("out.qpx");
        let more = ["--threads", threads, "--recipe", recipe, "--force"].map(OsStr::new);
        run(
            "qpx-pack",
            arguments(source, &output).into_iter().chain(more),
        )
        .expect(0);
        fs::read(output).expect("the bundle")
    };
    for recipe in ["lossless", "q4"] {
        let first = bytes(&elsewhere, "1", recipe);
        assert_eq!(first, bytes(&elsewhere, "2", recipe), "{recipe}: threads");
        let moved = copy(
            &elsewhere,
            &scratch.path().join(format!("moved for {recipe}")),
        );
        assert_eq!(first, bytes(&moved, "7", recipe), "{recipe}: folder");
    }
}

/// What is flipped, where, the verdict of `verify`, the words it says, and the exit code of a run, where that touches the place.
type Flip<'a> = (&'a str, usize, i32, &'a [&'a str], Option<i32>);

#[test]
fn a_flipped_byte_is_placed_and_refused() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let bundle = scratch.path().join("model.qpx");
    pack(&fixture("oracle/qwen3_moe"), &bundle, "lossless");
    run(
        "qpx-run",
        [
            OsStr::new("prove"),
            bundle.as_os_str(),
            OsStr::new("--record"),
        ],
    )
    .expect(0);
    let whole = fs::read(&bundle).expect("the bundle");
    let manifest: serde_json::Value = {
        let length = usize::try_from(u64::from_le_bytes(whole[32..40].try_into().expect("eight")))
            .expect("a length");
        serde_json::from_slice(&whole[16384..16384 + length]).expect("a manifest")
    };
    let at = |value: &serde_json::Value| {
        usize::try_from(value.as_u64().expect("an offset")).expect("small")
    };
    let table = usize::try_from(u64::from_le_bytes(whole[72..80].try_into().expect("eight")))
        .expect("an offset");
    let content = usize::try_from(u64::from_le_bytes(whole[16..24].try_into().expect("eight")))
        .expect("an offset");
    let checked = &manifest["checked"];
    let core = checked["tensors"]
        .as_array()
        .expect("tensors")
        .iter()
        .find(|t| t["segment"] == "core")
        .expect("a core tensor");
    let expert = &checked["experts"][0];
    let first_expert = (at(&expert["base"]), at(&expert["length"]));
    // A record is padded to whole pages: its last byte is padding.
    let padding = first_expert.0 + at(&expert["stride"]) - 1;
    assert_eq!(whole[padding], 0);
    let cases: &[Flip] = &[
        ("page 0, magic", 0, 10, &["page 0"], Some(10)),
        ("page 0, content length", 18, 10, &["page 0"], Some(10)),
        ("page 0, zeros", 9000, 10, &["page 0"], Some(10)),
        ("manifest", 16384 + 40, 10, &["manifest"], Some(10)),
        ("digest table", table + 5, 10, &["digest table"], Some(10)),
        (
            "attached",
            at(&checked["attached"][0]["offset"]) + 3,
            10,
            &[checked["attached"][0]["name"].as_str().expect("a name")],
            None,
        ),
        (
            "core",
            at(&core["offset"]) + 1,
            10,
            &[core["role"].as_str().expect("a role")],
            Some(10),
        ),
        (
            "expert",
            first_expert.0 + 7,
            10,
            &["layer.0.expert.0.gate"],
            Some(10),
        ),
        ("padding", padding, 10, &["padding"], None),
        ("stamps", content + 200, 10, &["stamp"], None),
    ];
    for (what, offset, verdict, words, refused) in cases {
        println!("{what}");
        let mut bytes = whole.clone();
        bytes[*offset] ^= 0x10;
        fs::write(&bundle, bytes).expect("written");
        let ran = run("qpx-inspect", [OsStr::new("verify"), bundle.as_os_str()]).expect(*verdict);
        for word in *words {
            assert!(
                ran.stderr.contains(word) || ran.stdout.contains(word),
                "{what}: no `{word}` in\n{}\n{}",
                ran.stdout,
                ran.stderr
            );
        }
        if let Some(code) = refused {
            run(
                "qpx-run",
                [
                    bundle.as_os_str(),
                    OsStr::new("--prompt"),
                    OsStr::new("The router"),
                    OsStr::new("--raw"),
                ],
            )
            .expect(*code);
        }
    }
    fs::write(&bundle, &whole).expect("written");
    run("qpx-inspect", [OsStr::new("verify"), bundle.as_os_str()]).expect(0);
    // A stamp cut short by a crash is told and ignored: the content stays good.
    fs::write(&bundle, &whole[..whole.len() - 1]).expect("written");
    let torn = run("qpx-inspect", [OsStr::new("verify"), bundle.as_os_str()]).expect(0);
    assert!(torn.stdout.contains("was cut short"), "{}", torn.stdout);
    for cut in [content - 1, content / 2, 16384, 100] {
        fs::write(&bundle, &whole[..cut]).expect("written");
        let ran = run("qpx-inspect", [OsStr::new("verify"), bundle.as_os_str()]);
        let code = ran.code;
        assert!(
            [10, 11, 12].contains(&code),
            "cut at {cut}: {code}\n{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[cfg(unix)]
#[test]
fn nothing_but_a_regular_file_gives_way_to_an_output() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let (bundle, tokens) = (
        scratch.path().join("model.qpx"),
        scratch.path().join("ids.json"),
    );
    pack(&fixture("oracle/llama"), &bundle, "lossless");
    fs::write(&tokens, "[1, 2, 3]").expect("written");
    let before = fs::read(&bundle).expect("the bundle");
    let pipe = scratch.path().join("pipe.qpx");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .is_ok_and(|s| s.success())
    );
    let forced = [
        fixture("oracle/llama").into_os_string(),
        "-o".into(),
        pipe.clone().into_os_string(),
        "--force".into(),
    ];
    run("qpx-pack", forced).expect(4).says(&["pipe.qpx"]);
    let (soft, hard) = (
        scratch.path().join("soft.qpx"),
        scratch.path().join("hard.qpx"),
    );
    std::os::unix::fs::symlink(&bundle, &soft).expect("a symbolic link");
    fs::hard_link(&bundle, &hard).expect("a hard link");
    for output in [&bundle, &tokens, &soft, &hard, &pipe] {
        let words = ["logits", "--force", "--tokens"].map(OsStr::new);
        let names = [
            tokens.as_os_str(),
            OsStr::new("-o"),
            output.as_os_str(),
            bundle.as_os_str(),
        ];
        run("qpx-run", words.into_iter().chain(names)).expect(4);
    }
    assert_eq!(fs::read(&bundle).expect("the bundle"), before);
    assert_eq!(fs::read(&tokens).expect("the ids"), b"[1, 2, 3]");
    assert!(fs::symlink_metadata(&soft).expect("the link").is_symlink());
}
