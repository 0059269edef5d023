//! Mathematics that three lanes or more have in common. Blocks take numbers, never a family's name.

pub mod rope;
