//! Why the daemon does not start, or ends.

use outlast_scenario::ScenarioError;
use std::fmt;

/// Why the daemon does not start, or ends.
#[derive(Debug)]
pub enum Failure {
    /// The run itself failed.
    Run(anyhow::Error),
    /// The configuration file cannot be used.
    File(ScenarioError),
    /// Another setting is wrong.
    Usage(String),
    /// This machine lacks something.
    Capability(String),
}

impl fmt::Display for Failure {
    /// Writes everything that is wrong in one line, for a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => write!(f, "{error:#}"),
            Self::File(error) => {
                let mut separator = "";
                for problem in error.problems() {
                    let (place, remedy) = (problem.location(), problem.remedy());
                    write!(f, "{separator}{place}: {problem}: {remedy}")?;
                    separator = "; ";
                }
                Ok(())
            }
            Self::Usage(message) | Self::Capability(message) => f.write_str(message),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Run(error.into())
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::File(error)
    }
}
