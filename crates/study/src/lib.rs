//! Room `study`: not built yet.
