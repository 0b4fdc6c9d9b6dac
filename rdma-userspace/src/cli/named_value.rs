//! Values of flags that are named in the capture crate: operations, modes, levels.
use capture::named::{Named, among};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser that takes the names of `values`, and lists them with their meaning in the help.
pub(super) fn one_of<T: Named + Send + Sync>(values: &'static [T]) -> impl TypedValueParser<Value = T> {
    let listed = values.iter().map(|value| PossibleValue::new(value.name()).help(value.meaning().trim_end_matches('.')));
    PossibleValuesParser::new(listed).try_map(|name| among(values, &name))
}
