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
    printable(&error.render(width))
}

/// `text` without control characters of the file that it quotes, which a terminal would obey; colours stay.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour_at(rest);
        if c == '\n' || !c.is_control() {
            shown.push(c);
        } else if colour > 0 {
            shown.push_str(&rest[..colour]);
        } else {
            shown.push(char::REPLACEMENT_CHARACTER);
        }
        rest = &rest[colour.max(c.len_utf8())..];
    }
    shown
}

/// The length of the sequence for a colour (ESC `[`, numbers, `m`) at the beginning of `text`; zero if there is none.
fn colour_at(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';');
    match end {
        Some(end) if numbers[end..].starts_with('m') => "\x1b[".len() + end + "m".len(),
        _ => 0,
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

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_quoted_file_cannot_steer_the_terminal() {
        let quoted = "\x1b[31mred\x1b[0m\n\x1b]0;title\x07\x1b[2J\u{9b}5n\x7fELF\x1b[1;3";
        let shown = "\x1b[31mred\x1b[0m\n\u{fffd}]0;title\u{fffd}\u{fffd}[2J\u{fffd}5n\u{fffd}ELF\u{fffd}[1;3";
        assert_eq!(printable(quoted), shown);
    }
}
