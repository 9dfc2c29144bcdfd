//! Room `report`: not built yet.
