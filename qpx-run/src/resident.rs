//! Weights that every token touches: found by role, checked against the lane's shapes, read once and verified as they are read.

use crate::{Error, memory::Aligned, needs::Needs, ops};
use qpx_format::{Bundle, Role, manifest::SegmentKind, reader::Extent};
use qpx_kernels::{Encoding, encoding, ops::Matrix};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Tensors start at multiples of this in memory, as they do in the file.
const STEP: usize = 256;

/// Where the resident tensors lie in the file and will lie in memory.
pub struct Survey {
    matrices: Vec<Stored>,
    vectors: Vec<(Extent, &'static Encoding)>,
    /// Each distinct stored tensor, and its place in memory.
    pieces: Vec<(Extent, usize)>,
    bytes: usize,
    floats: usize,
}

#[derive(Clone, Copy)]
struct Stored {
    encoding: &'static Encoding,
    rows: usize,
    columns: usize,
    start: usize,
    length: usize,
}

impl Survey {
    /// Finds everything that `needs` lists outside experts.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::WrongShape`], [`Error::NoNumbers`], and [`Error::UnusedTensor`] for one that nobody asked for.
    pub fn new(bundle: &Bundle, needs: &Needs, family: &str) -> Result<Self, Error> {
        let mut survey = Self {
            matrices: Vec::new(),
            vectors: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
            floats: 0,
        };
        let mut used = BTreeSet::new();
        for (role, matrix) in &needs.matrices {
            let shape = [matrix.rows as u64, matrix.columns as u64];
            let (extent, encoding) = find(bundle, role, &shape)?;
            used.insert(extent.offset);
            let known = survey
                .pieces
                .iter()
                .find(|(e, _)| e.offset == extent.offset);
            let length = usize_of(extent.length)?;
            let start = match known {
                Some((_, start)) => *start,
                None => {
                    let start = survey.bytes;
                    survey.bytes = (start + length).next_multiple_of(STEP);
                    survey.pieces.push((extent, start));
                    start
                }
            };
            survey.matrices.push(Stored {
                encoding,
                rows: matrix.rows,
                columns: matrix.columns,
                start,
                length,
            });
        }
        for (role, vector) in &needs.vectors {
            let found = find(bundle, role, &[vector.width as u64])?;
            used.insert(found.0.offset);
            survey.floats += vector.width;
            survey.vectors.push(found);
        }
        let resident = [SegmentKind::Core, SegmentKind::Head];
        for tensor in &bundle.manifest().checked.tensors {
            if resident.contains(&tensor.segment) && !used.contains(&tensor.offset) {
                return Err(Error::UnusedTensor {
                    bundle: bundle.path().to_path_buf(),
                    role: tensor.role.clone(),
                    family: family.to_owned(),
                });
            }
        }
        Ok(survey)
    }

    /// Bytes that the weights will take in memory.
    pub fn bytes(&self) -> u64 {
        (self.bytes + self.floats * size_of::<f32>()) as u64
    }

    /// Reads and verifies all of it, on the pool it is called in.
    ///
    /// # Errors
    /// [`Error::Format`] with the place of the first leaf that is not what was sealed; [`Error::NoMemory`].
    pub fn load(self, bundle: &Bundle) -> Result<Resident, Error> {
        let mut memory = Aligned::new(self.bytes, "the resident weights")?;
        let mut jobs = Vec::with_capacity(self.pieces.len());
        let mut rest = memory.bytes_mut();
        for (extent, _) in &self.pieces {
            let length = usize_of(extent.length)?;
            let padded = length.next_multiple_of(STEP).min(rest.len());
            let (piece, after) = rest.split_at_mut(padded);
            rest = after;
            jobs.push((extent, &mut piece[..length]));
        }
        jobs.into_par_iter()
            .try_for_each(|(extent, piece)| bundle.read_verified(extent, piece))?;
        let mut vectors = Vec::with_capacity(self.vectors.len());
        for (extent, encoding) in &self.vectors {
            let mut stored = vec![0; usize_of(extent.length)?];
            bundle.read_verified(extent, &mut stored)?;
            let width: u64 = extent.shape.iter().product();
            vectors.push(decode(encoding, &stored, usize_of(width)?));
        }
        Ok(Resident {
            memory,
            matrices: self.matrices,
            vectors,
        })
    }
}

fn decode(encoding: &Encoding, stored: &[u8], width: usize) -> Vec<f32> {
    let mut values = vec![0.0; width.next_multiple_of(encoding.block)];
    if let Some(decode) = encoding.decode {
        decode(stored, &mut values);
    }
    values.truncate(width);
    values
}

pub(crate) fn usize_of(number: u64) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_| Error::NoMemory {
        what: "a tensor",
        bytes: number,
    })
}

fn find(bundle: &Bundle, role: &str, shape: &[u64]) -> Result<(Extent, &'static Encoding), Error> {
    let path = || bundle.path().to_path_buf();
    let extent = bundle
        .extent(&Role::parse(role)?)
        .ok_or_else(|| Error::MissingTensor {
            bundle: path(),
            role: role.to_owned(),
            shape: shape.to_vec(),
        })?;
    if extent.shape != shape {
        return Err(Error::WrongShape {
            bundle: path(),
            role: role.to_owned(),
            expected: shape.to_vec(),
            found: extent.shape,
        });
    }
    let encoding = numbers(bundle, role, extent.encoding.name)?;
    Ok((extent, encoding))
}

/// The encoding called `name`, if it holds real numbers.
pub(crate) fn numbers(bundle: &Bundle, role: &str, name: &str) -> Result<&'static Encoding, Error> {
    encoding::by_name(name)
        .filter(|e| e.decode.is_some())
        .ok_or_else(|| Error::NoNumbers {
            bundle: bundle.path().to_path_buf(),
            role: role.to_owned(),
            encoding: name.to_owned(),
        })
}

/// The resident weights.
pub struct Resident {
    memory: Aligned,
    matrices: Vec<Stored>,
    vectors: Vec<Vec<f32>>,
}

impl Resident {
    /// A matrix.
    pub fn matrix(&self, handle: ops::Matrix) -> Matrix<'_> {
        let stored = &self.matrices[handle.number];
        Matrix {
            encoding: stored.encoding,
            rows: stored.rows,
            columns: stored.columns,
            bytes: &self.memory.bytes()[stored.start..][..stored.length],
        }
    }

    /// A vector.
    pub fn vector(&self, handle: ops::Vector) -> &[f32] {
        &self.vectors[handle.number]
    }
}
