//! What the tests share: bundles packed from the fixtures, and expected results of an independent implementation.

#![allow(dead_code, reason = "each test uses a part of it")]

use qpx_format::Bundle;
use qpx_pack::{Recipe, Request, Silent};
use qpx_run::{Engine, Options};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(name)
}

/// A bundle in a folder of its own, which lives as long as this.
pub struct Packed {
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Packed {
    pub fn new(name: &str, recipe: Recipe) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.qpx");
        let mut request = Request::new(fixture(name), &path);
        request.recipe = recipe;
        qpx_pack::run(&request, &Silent).unwrap_or_else(|e| panic!("{name}: {e}"));
        Self {
            path,
            _folder: folder,
        }
    }

    pub fn lossless(name: &str) -> Self {
        Self::new(name, Recipe::lossless())
    }

    pub fn bundle(&self) -> Arc<Bundle> {
        Arc::new(Bundle::open(&self.path).unwrap())
    }

    pub fn engine(&self, options: &Options) -> Engine {
        Engine::load(&self.bundle(), options).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// All rows of logits of `ids`, from a fresh start.
pub fn logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    engine.reset();
    engine
        .feed(ids, qpx_run::Wanted::All, &mut |_, row| {
            rows.push(row.to_vec());
            Ok(())
        })
        .unwrap();
    rows
}

pub fn bits(rows: &[Vec<f32>]) -> Vec<u32> {
    rows.iter().flatten().map(|x| x.to_bits()).collect()
}

pub fn ids(value: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}
