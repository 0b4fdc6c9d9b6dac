//! Errors as one sentence.
use std::error::Error;

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
