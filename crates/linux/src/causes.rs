//! What an error of the kernel's program loader says.

use std::error::Error;

/// `error` with its causes, in one line: of each the first line, without what the verifier has to say at length.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let whole = error.to_string();
        text.push_str(": ");
        text.push_str(whole.lines().next().unwrap_or_default());
        cause = error.source();
    }
    text
}
