//! exp, ln, sin, cos, tanh with the same bits everywhere.
