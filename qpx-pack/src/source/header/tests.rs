//! Header rules.
