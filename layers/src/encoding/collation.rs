//! Language-specific sort orders, based on the data of `icu_collator`.

use super::Error;
use icu_collator::{
    CollatorBorrowed,
    options::{CollatorOptions, Strength},
};
use icu_locale_core::Locale;
use std::{cmp::Ordering, fmt, sync::Arc};

/// The differences that a collation distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguishes {
    /// Base letters only: a, á and A are equal.
    Letters,
    /// Base letters, then accents: a sorts before á, and A is equal to a.
    Accents,
    /// Base letters, then accents, then case.
    Case,
}

/// The sort order of a language.
#[derive(Clone)]
pub struct Collation {
    locale: String,
    collator: Arc<CollatorBorrowed<'static>>,
}

impl Collation {
    /// The collation of a locale: `en`, `sv`, `de-u-co-phonebk`.
    pub fn new(locale: &str, distinguishes: Distinguishes) -> Result<Collation, Error> {
        let unknown = || Error::UnknownLocale(locale.to_owned());
        let parsed = Locale::try_from_str(locale).map_err(|_| unknown())?;
        let mut options = CollatorOptions::default();
        options.strength = Some(match distinguishes {
            Distinguishes::Letters => Strength::Primary,
            Distinguishes::Accents => Strength::Secondary,
            Distinguishes::Case => Strength::Tertiary,
        });
        let collator = CollatorBorrowed::try_new(parsed.into(), options).map_err(|_| unknown())?;
        Ok(Collation { locale: locale.to_owned(), collator: Arc::new(collator) })
    }

    /// Compares two texts; texts that are equal in the collation are compared by code point.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.collator.compare(a, b).then_with(|| a.cmp(b))
    }

    /// The collation key of a text.
    pub fn key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        let Ok(()) = self.collator.write_sort_key_to(text, &mut key);
        key
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collation({})", self.locale)
    }
}
