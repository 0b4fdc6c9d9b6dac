//! Words of the contract: enums whose values have one name, the same on the command line, in captures and in reports.
use std::fmt;

/// A word that has a name of its own.
pub trait Named: Copy + Sized + 'static {
    /// What such words are called, as in "no such operation".
    const WHAT: &'static str;
    /// Every value, in the order in which they are listed.
    const ALL: &'static [Self];
    /// Its name.
    fn name(self) -> &'static str;
    /// What it is, in a few words.
    fn meaning(self) -> &'static str;
}

/// A word that names no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no {what} that this version knows; there are {known}")]
pub struct UnknownName {
    /// The word.
    pub word: String,
    /// What was looked for.
    pub what: &'static str,
    /// The names that exist.
    pub known: String,
}

/// The value with this name among `values`.
///
/// # Errors
/// [`UnknownName`] with the names of `values`.
pub fn among<T: Named>(values: &[T], word: &str) -> Result<T, UnknownName> {
    values.iter().copied().find(|value| value.name() == word).ok_or_else(|| UnknownName {
        word: word.to_owned(),
        what: T::WHAT,
        known: values.iter().map(|value| value.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Reads a name, as `Deserialize` of the words does.
pub(crate) struct NameVisitor<T>(pub std::marker::PhantomData<T>);

impl<T: Named> serde::de::Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of the {}", T::WHAT)
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
        among(T::ALL, word).map_err(E::custom)
    }
}

/// For fields that a trace of foreign programs leaves empty: an empty word is `None`.
pub(crate) mod optional {
    use super::{Named, among};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the name, or an empty word.
    pub(crate) fn serialize<T: Named, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.map_or("", Named::name))
    }

    /// Reads a name, or nothing.
    pub(crate) fn deserialize<'de, T: Named, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        let word = String::deserialize(from)?;
        if word.is_empty() { Ok(None) } else { among(T::ALL, &word).map(Some).map_err(serde::de::Error::custom) }
    }
}

/// Makes an enum of words: name, list, `Display`, `FromStr`, and JSON by name.
macro_rules! named {
    ($(#[$of:meta])* pub enum $type:ident: $what:literal { $($(#[doc = $doc:literal])+ $value:ident = $name:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[doc = $doc])+ $value,)+ }

        impl $crate::named::Named for $type {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &[$(Self::$value,)+];
            fn name(self) -> &'static str {
                self.name()
            }
            fn meaning(self) -> &'static str {
                match self { $(Self::$value => concat!($($doc),+).trim_ascii(),)+ }
            }
        }

        impl $type {
            /// Its name on the command line, in captures and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name,)+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::named::UnknownName;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::named::among(<Self as $crate::named::Named>::ALL, word)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::named::NameVisitor(std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use crate::{CompletionShape, Level, Mode, Operation, Side, Transport};
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    fn read_back<T>()
    where
        T: super::Named + Debug + PartialEq + Display + FromStr<Err = super::UnknownName> + serde::Serialize + serde::de::DeserializeOwned,
    {
        for value in T::ALL {
            assert_eq!(value.to_string().parse().as_ref(), Ok(value));
            let json = serde_json::to_string(value).expect("JSON");
            assert_eq!(json, format!("\"{value}\""));
            assert_eq!(&serde_json::from_str::<T>(&json).expect("the same"), value);
        }
        let error = serde_json::from_str::<T>("\"renamed\"").expect_err("no such word").to_string();
        assert!(error.contains("`renamed`") && error.contains(T::WHAT), "{error}");
    }

    #[test]
    fn every_word_is_read_back_and_no_other_is() {
        read_back::<Operation>();
        read_back::<Mode>();
        read_back::<Transport>();
        read_back::<Level>();
        read_back::<CompletionShape>();
        read_back::<Side>();
    }
}
