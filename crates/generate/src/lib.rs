//! Room `generate`: not built yet.
