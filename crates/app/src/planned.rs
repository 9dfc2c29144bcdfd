//! A plan in a file, as `advise` writes it: the policy, who runs where, priorities.

use crate::Tasks;
use analyze::Guarantee;
use model::assignmentfile::AssignmentFile;
use model::{Assignment, Result, TaskSet};
use policy::Spec;
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

    /// The guarantee that it was made for; `None`: it does not say.
    pub fn guarantee(&self) -> Option<Guarantee> {
        match self.file.guarantee()? {
            "hard" => Some(Guarantee::Hard),
            "soft" => Some(Guarantee::Soft),
            _ => None,
        }
    }

    /// Who runs where: of the tasks that [`PlanFile::tasks`] has given.
    ///
    /// # Errors
    /// The plan is for other tasks, or has no assignment.
    pub fn assignment(&self, set: &TaskSet) -> Result<Assignment> {
        self.file
            .assignment(self.policy()?, set, Spec::for_assignment)
    }

    /// The tasks with the colors and priorities of the plan.
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
