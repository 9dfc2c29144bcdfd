//! Room `measure`: not built yet.
