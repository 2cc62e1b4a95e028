//! Text made safe for HTML and SVG.

/// `text` for the inside of an element or of a double-quoted attribute.
///
/// Characters that XML does not allow become U+FFFD, so that the page stays well-formed whatever
/// a file or an interface is called.
///
/// ```
/// assert_eq!(outlast_report::markup::escape("<b> & \"c\""), "&lt;b&gt; &amp; &quot;c&quot;");
/// ```
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Words that are shown as they are, but for numbers, which are kept on one line with their units.
pub(crate) fn literal(text: &str) -> String {
    escape(&bound(text))
}

/// Prose: escaped, with `` `code` `` between backticks set as code, and numbers kept on one line
/// with their units. A single backtick stays what it is.
pub(crate) fn prose(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`') else {
            break;
        };
        html.push_str(&literal(before));
        html.push_str("<code>");
        html.push_str(&escape(code));
        html.push_str("</code>");
        rest = after;
    }
    html.push_str(&literal(rest));
    html
}

/// `text` with no-break spaces between numbers and their units and after signs.
fn bound(text: &str) -> String {
    const UNITS: [&str; 12] = [
        "%", "s", "ms", "µs", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s",
    ];
    let mut bound = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        bound.push_str(word);
        let Some(next) = words.peek() else { break };
        let unit = next.trim_end_matches(['.', ',', ';', ':', ')']);
        let is_quantity = word.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit);
        let is_sign = matches!(word, "≤" | "≥" | "±");
        bound.push(if is_quantity || is_sign {
            '\u{a0}'
        } else {
            ' '
        });
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_forbids_is_replaced() {
        assert_eq!(
            escape("a\u{1b}[0m\0b\u{ffff}"),
            "a\u{fffd}[0m\u{fffd}b\u{fffd}"
        );
    }

    #[test]
    fn backticks_make_code_and_nothing_else() {
        assert_eq!(
            prose("use `a<b>` & `c"),
            "use <code>a&lt;b&gt;</code> &amp; `c"
        );
        assert_eq!(prose("none"), "none");
    }

    #[test]
    fn numbers_stay_with_their_units() {
        assert_eq!(prose("at 10 %, ≥ 5 ms."), "at 10\u{a0}%, ≥\u{a0}5\u{a0}ms.");
        assert_eq!(prose("4 segments  of 5"), "4 segments  of 5");
    }
}
