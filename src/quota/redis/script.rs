//! One call as Redis is told it, and its answer read back.
