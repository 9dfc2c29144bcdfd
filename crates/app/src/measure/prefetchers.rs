//! Whether hardware prefetchers are on while cache delays are measured.

use machine::prefetchers::{self, Control, DEVICES, Off, State};
use model::{CpuSet, Result};
use std::path::Path;

/// Prefetchers as they are to be, for as long as this lives.
pub(super) struct Held {
    state: State,
    /// As before when it is dropped.
    _off: Option<Off>,
}

impl Held {
    /// On these processors, for a measurement: off where that is asked for, else as they are.
    ///
    /// # Errors
    /// They cannot be turned off here.
    pub fn over(off: bool, cpus: &CpuSet) -> Result<Self> {
        let (control, devices) = (Control::here(), Path::new(DEVICES));
        let _off = match off {
            true => Some(prefetchers::turn_off(control, devices, cpus)?),
            false => None,
        };
        let state = match &_off {
            Some(_) => State::Off,
            None => control.map_or(State::Unknown, |control| control.state(devices, cpus)),
        };
        Ok(Held { state, _off })
    }

    pub fn state(&self) -> State {
        self.state
    }
}
