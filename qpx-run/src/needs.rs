//! What a lane needs: tensors by role and shape, caches, rotary tables. The lane states it, the engine provides it.

use crate::ops::{Cache, Experts, Matrix, Rope, Vector};

/// A lane's list of needs. Each call adds one and gives the handle that operations take.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) matrices: Vec<(String, Matrix)>,
    pub(crate) vectors: Vec<(String, Vector)>,
    /// With the layer's number.
    pub(crate) experts: Vec<(u64, Experts)>,
    pub(crate) caches: Vec<Cache>,
    /// Turns per position of each pair of dims, in radians.
    pub(crate) ropes: Vec<Vec<f32>>,
}

impl Needs {
    /// The matrix of `role`. [rows, columns]
    pub fn matrix(&mut self, role: impl Into<String>, rows: usize, columns: usize) -> Matrix {
        let number = self.matrices.len();
        let matrix = Matrix {
            number,
            rows,
            columns,
        };
        self.matrices.push((role.into(), matrix));
        matrix
    }

    /// The vector of `role`.
    pub fn vector(&mut self, role: impl Into<String>, width: usize) -> Vector {
        let number = self.vectors.len();
        let vector = Vector { number, width };
        self.vectors.push((role.into(), vector));
        vector
    }

    /// All experts of `layer`.
    pub fn experts(&mut self, layer: u64, count: usize, inner: usize, hidden: usize) -> Experts {
        let number = self.experts.len();
        let experts = Experts {
            number,
            count,
            inner,
            hidden,
        };
        self.experts.push((layer, experts));
        experts
    }

    /// Room for keys and values of one layer.
    pub fn cache(&mut self, heads: usize, head_dim: usize) -> Cache {
        let number = self.caches.len();
        let cache = Cache {
            number,
            heads,
            head_dim,
        };
        self.caches.push(cache);
        cache
    }

    /// A table of rotations with these frequencies.
    pub fn rope(&mut self, frequencies: Vec<f32>) -> Rope {
        let number = self.ropes.len();
        let rope = Rope {
            number,
            pairs: frequencies.len(),
        };
        self.ropes.push(frequencies);
        rope
    }
}
