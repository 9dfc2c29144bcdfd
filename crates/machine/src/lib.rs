//! Room `machine`: not built yet.
