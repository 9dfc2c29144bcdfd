//! A plan in a file, as `advise` writes it: the policy, who runs where, priorities.

use crate::Tasks;
use model::Result;
use model::assignmentfile::AssignmentFile;
use std::path::{Path, PathBuf};

/// A plan that was read.
pub struct PlanFile {
    path: PathBuf,
    file: AssignmentFile,
}

impl PlanFile {
    /// Reads a plan.
    ///
    /// # Errors
    /// It cannot be read, or is no plan.
    pub fn read(path: &Path) -> Result<Self> {
        let file = AssignmentFile::read(path)?;
        file.planned_policy()?;
        Ok(PlanFile {
            path: path.to_owned(),
            file,
        })
    }

    /// Its policy.
    ///
    /// # Errors
    /// None that reading it does not have.
    pub fn policy(&self) -> Result<&str> {
        self.file.planned_policy()
    }

    /// The file, which holds its assignment.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tasks with the priorities of the plan.
    ///
    /// # Errors
    /// The plan is for other tasks.
    pub fn tasks(&self, tasks: Tasks) -> Result<Tasks> {
        Ok(Tasks {
            set: self.file.planned_set(tasks.set)?,
            place: tasks.place,
        })
    }
}
