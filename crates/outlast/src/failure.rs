//! How the command ends when it does not succeed.

use outlast_daemon::failure::Failure as DaemonFailure;
use outlast_linux::user_namespace::UserNamespaceError;
use outlast_scenario::ScenarioError;
use std::process::ExitCode;

/// Why the command ends without success; each kind has its exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run itself failed: exit code 1.
    Run(anyhow::Error),
    /// The scenario file cannot be used: exit code 2.
    Scenario(ScenarioError),
    /// Another argument is wrong: exit code 2.
    Usage(String),
    /// This machine lacks something: exit code 3.
    Capability(String),
    /// This machine lacks something that the user has been shown: exit code 3.
    Shown(String),
    /// A program in a guest ended with this exit code, and has told the user why.
    Told(u8),
}

impl Failure {
    /// Tells the user on standard error; the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Self::Run(error) => (format!("error: {error:#}"), 1),
            Self::Scenario(error) => (render(error), 2),
            Self::Usage(message) => (format!("error: {message}"), 2),
            Self::Shown(message) => (format!("error: {message}"), 3),
            Self::Told(code) => return ExitCode::from(*code),
            Self::Capability(message) => {
                let advice = "`outlast doctor` shows everything that this machine offers";
                (format!("error: {message}\n{advice}"), 3)
            }
        };
        console::Term::stderr()
            .write_line(message.trim_end())
            .map_or(ExitCode::from(1), |()| ExitCode::from(code))
    }
}

fn render(error: &ScenarioError) -> String {
    let width = usize::from(console::Term::stderr().size().1).clamp(60, 100);
    error.render(width)
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
        Self::Scenario(error)
    }
}

impl From<UserNamespaceError> for Failure {
    fn from(error: UserNamespaceError) -> Self {
        Self::Capability(error.to_string())
    }
}

impl From<DaemonFailure> for Failure {
    fn from(failure: DaemonFailure) -> Self {
        match failure {
            DaemonFailure::Run(error) => Self::Run(error),
            DaemonFailure::File(error) => Self::Scenario(error),
            DaemonFailure::Usage(message) => Self::Usage(message),
            DaemonFailure::Capability(message) => Self::Capability(message),
        }
    }
}
