//! Text from outside (captures, peers, the kernel) made fit for a terminal, and errors as one sentence.
use std::error::Error;

/// One line: line breaks and tabs become spaces, what else could steer a terminal or turn the order of the text becomes `�`.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { harmless(c) }).collect()
}

/// The same for text of several lines.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

fn harmless(c: char) -> char {
    // Escapes begin with a control character; the others change the order in which text is shown.
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { '\u{fffd}' } else { c }
}

/// An error with its sources, each said once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(printable("a\x1b[31mb\nc\td\u{7}\u{9b}e\u{202e}"), "a\u{fffd}[31mb c d\u{fffd}\u{fffd}e\u{fffd}");
        assert_eq!(printable_lines("a\nb\r\x1b"), "a\nb\u{fffd}\u{fffd}");
        assert_eq!(printable("handler → run, 5 µs"), "handler → run, 5 µs");
    }

    #[test]
    fn a_cause_that_the_message_names_is_not_repeated() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read x: {0}")]
        struct Said(#[source] io::Error);
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read x")]
        struct Unsaid(#[source] io::Error);
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(chain(&Said(denied())), "cannot read x: permission denied");
        assert_eq!(chain(&Unsaid(denied())), "cannot read x: permission denied");
    }
}
