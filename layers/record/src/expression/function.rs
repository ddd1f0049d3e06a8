//! Functions in key expressions, by name.

use super::{Column, EvaluateError, Evaluated};
use crate::value::{IntoValue, Value};
use foundationdb_tuple::Element;
use std::{collections::BTreeMap, fmt, sync::Arc};

type Call = dyn Fn(&Evaluated) -> Result<Vec<Evaluated>, EvaluateError> + Send + Sync;

/// A function from one key to a list of keys. It must give the same keys for the same arguments for ever: the
/// keys of a record's index entries are computed again when the record changes.
#[derive(Clone)]
pub struct Function {
    /// How many columns the arguments have.
    pub arguments: usize,
    call: Arc<Call>,
}

impl Function {
    /// A function of `arguments` columns, with one column in each of its results.
    pub fn new(
        arguments: usize,
        call: impl Fn(&Evaluated) -> Result<Vec<Evaluated>, EvaluateError> + Send + Sync + 'static,
    ) -> Function {
        Function { arguments, call: Arc::new(call) }
    }

    /// Calls it. Fails if a result has other than one column.
    pub fn call(&self, name: &str, arguments: &Evaluated) -> Result<Vec<Evaluated>, EvaluateError> {
        let keys = (self.call)(arguments)?;
        match keys.iter().find(|key| key.columns().len() != 1) {
            None => Ok(keys),
            Some(key) => Err(EvaluateError::Function {
                name: name.into(),
                reason: format!("returned {} columns instead of 1", key.columns().len()),
            }),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// The functions that expressions can call, by name. `lower` and `words` are always registered:
///
/// * `lower(text)`: the text in lower case, as Unicode defines it; null if the text is null.
/// * `words(text)`: one key for each distinct word of the text in lower case, in order of their first
///   appearance; words are separated by everything that is neither a letter nor a digit. No key if the text
///   is null.
#[derive(Clone, Debug)]
pub struct Functions(BTreeMap<String, Function>);

impl Default for Functions {
    fn default() -> Functions {
        Functions(BTreeMap::from([
            ("lower".into(), Function::new(1, |key| Ok(vec![lower(key)?]))),
            ("words".into(), Function::new(1, words)),
        ]))
    }
}

impl Functions {
    /// Registers a function; the one that had this name before is replaced.
    pub fn register(&mut self, name: impl Into<String>, function: Function) {
        self.0.insert(name.into(), function);
    }

    /// The function with this name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }
}

/// The text that is the only argument, unless it is null.
fn text<'a>(name: &str, key: &'a Evaluated) -> Result<Option<&'a str>, EvaluateError> {
    match key.columns() {
        [Column::Value(Element::String(text))] => Ok(Some(text)),
        [Column::Null(_)] => Ok(None),
        _ => Err(EvaluateError::Function { name: name.into(), reason: format!("{key} is not a text") }),
    }
}

fn lower(key: &Evaluated) -> Result<Evaluated, EvaluateError> {
    Ok(text("lower", key)?.map_or_else(|| key.clone(), |text| one(text.to_lowercase())))
}

fn words(key: &Evaluated) -> Result<Vec<Evaluated>, EvaluateError> {
    let mut words: Vec<String> = Vec::new();
    let text = text("words", key)?.unwrap_or_default();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    Ok(words.into_iter().map(one).collect())
}

/// A key of one column.
fn one(value: impl IntoValue) -> Evaluated {
    let value: Value = value.into_value();
    Evaluated::new(vec![Column::Value(value)])
}
