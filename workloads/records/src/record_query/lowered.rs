//! A planted bug in a function that is registered with the meta-data.

use super::planted::Planted;
use foundationdb_tuple::Element;
use shaketable_record::{
    expression::{Evaluated, Function},
    metadata::RecordMetaData,
    value::IntoValue,
};
use std::sync::{Arc, LazyLock};

/// The meta-data of the store, with the bug.
pub(super) fn meta_data(planted: Option<Planted>, right: &Arc<RecordMetaData>) -> Arc<RecordMetaData> {
    match planted {
        Some(Planted::LowerOfAscii) => {
            let mut builder = right.to_builder();
            builder.register_function("lower", LOWER_OF_ASCII.clone());
            builder.build().map_or_else(|_| right.clone(), Arc::new)
        }
        _ => right.clone(),
    }
}

static LOWER_OF_ASCII: LazyLock<Function> = LazyLock::new(|| {
    use shaketable_record::expression::Column;
    let lower = |column: &Column| match column {
        Column::Value(Element::String(text)) => Column::Value(text.to_ascii_lowercase().into_value()),
        other => other.clone(),
    };
    Function::new(1, move |key| Ok(vec![Evaluated::new(key.columns().iter().map(lower).collect())]))
});
