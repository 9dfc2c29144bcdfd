//! Room `analyze`: not built yet.
