//! Whether an expression can be evaluated in records of a type, found out when the meta-data is built.

use super::{FanType, Field, Functions, KeyExpression, NullStandin, proto::Literal, scalar::is_scalar};
use crate::value::{Shown, Value};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// Why an expression does not fit the records that it is for. `path` is the field, with those that it is
/// nested in: `reviews.rating`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The message has no such field.
    #[error("{message} has no field {path}")]
    NoField {
        /// The record type's full name.
        message: String,
        /// The field.
        path: String,
    },
    /// The field is repeated, and the expression does not say how it fans out.
    #[error("field {path} is repeated: fan out or concatenate it")]
    Repeated {
        /// The field.
        path: String,
    },
    /// The field is not repeated, but the expression fans out or concatenates it.
    #[error("field {path} is not repeated: it cannot fan out or be concatenated")]
    NotRepeated {
        /// The field.
        path: String,
    },
    /// Nested in a field that is not a message.
    #[error("field {path} is not a message: nothing can be nested in it")]
    NotMessage {
        /// The field.
        path: String,
    },
    /// Nested in the messages of a repeated field, as one list.
    #[error("field {path} is a list of messages: it can fan out, but not be concatenated")]
    ConcatenatedMessages {
        /// The field.
        path: String,
    },
    /// The value of the field cannot be part of a key.
    #[error("field {path} is a message: nest a field of it")]
    NotScalar {
        /// The field.
        path: String,
    },
    /// A group has more grouped columns than there are columns.
    #[error("{grouped} grouped columns of {columns}")]
    Group {
        /// The grouped columns.
        grouped: usize,
        /// All columns.
        columns: usize,
    },
    /// No function is registered under this name.
    #[error("no function {0} is registered")]
    NoFunction(String),
    /// A function is called with another number of columns than it takes.
    #[error("function {name} takes {takes} columns, not {given}")]
    Arguments {
        /// Its name.
        name: String,
        /// What it takes.
        takes: usize,
        /// What the expression gives.
        given: usize,
    },
    /// A field that is nested in cannot be [`NotNull`](NullStandin::NotNull).
    #[error("field {path} is a message: an absent message has no default value")]
    MessageNotNull {
        /// The field.
        path: String,
    },
    /// A function is called with the record's version, which is not known before the commit.
    #[error("function {0} cannot be called with the record's version")]
    VersionArgument(String),
    /// A literal is of a type that meta-data cannot store: null, integers of 64 bits, floats, booleans, texts
    /// and bytes are possible.
    #[error("a literal cannot be {0}")]
    Literal(String),
    /// Too many expressions in one another: what is saved could not be read again.
    #[error("a key expression is nested deeper than {limit}")]
    Depth {
        /// The limit.
        limit: usize,
    },
}

impl ExpressionError {
    pub(super) fn literal(value: &Value) -> ExpressionError {
        ExpressionError::Literal(Shown(value).to_string())
    }
}

/// How deep expressions may be nested. Protobuf reads messages up to a depth of 100, and each expression is
/// two.
const DEPTH: usize = 32;

impl KeyExpression {
    /// Refuses an expression that cannot be evaluated in every record of this type.
    pub fn validate(
        &self,
        message: &MessageDescriptor,
        functions: &Functions,
    ) -> Result<(), ExpressionError> {
        Place { root: message, path: Vec::new(), depth: 0, functions }.check(self, message)
    }
}

/// Where in a record an expression is evaluated.
struct Place<'a> {
    root: &'a MessageDescriptor,
    path: Vec<String>,
    depth: usize,
    functions: &'a Functions,
}

impl Place<'_> {
    fn check(
        &mut self,
        expression: &KeyExpression,
        message: &MessageDescriptor,
    ) -> Result<(), ExpressionError> {
        if self.depth == DEPTH {
            return Err(ExpressionError::Depth { limit: DEPTH });
        }
        self.depth += 1;
        match expression {
            KeyExpression::Field(field) => match is_scalar(&self.field(field, message)?) {
                true => Ok(()),
                false => Err(ExpressionError::NotScalar { path: self.path_of(field) }),
            },
            KeyExpression::Nest { parent, child } => self.nested(parent, child, message),
            KeyExpression::Concat(parts) => parts.iter().try_for_each(|part| self.check(part, message)),
            KeyExpression::Group { whole, grouped } => match whole.columns() {
                columns if *grouped > columns => Err(ExpressionError::Group { grouped: *grouped, columns }),
                _ => self.check(whole, message),
            },
            KeyExpression::Function { name, arguments } => self.function(name, arguments, message),
            KeyExpression::Literal(value) => match Literal::of(value) {
                Some(_) => Ok(()),
                None => Err(ExpressionError::literal(value)),
            },
            KeyExpression::Empty | KeyExpression::Version | KeyExpression::RecordType => Ok(()),
        }?;
        self.depth -= 1;
        Ok(())
    }

    fn nested(
        &mut self,
        parent: &Field,
        child: &KeyExpression,
        message: &MessageDescriptor,
    ) -> Result<(), ExpressionError> {
        let found = self.field(parent, message)?;
        let path = || self.path_of(parent);
        let Kind::Message(inner) = found.kind() else {
            return Err(ExpressionError::NotMessage { path: path() });
        };
        if !matches!(parent.fan, FanType::None | FanType::FanOut) {
            return Err(ExpressionError::ConcatenatedMessages { path: path() });
        }
        if parent.null == NullStandin::NotNull {
            return Err(ExpressionError::MessageNotNull { path: path() });
        }
        self.path.push(parent.name.clone());
        self.check(child, &inner)?;
        self.path.pop();
        Ok(())
    }

    fn function(
        &mut self,
        name: &str,
        arguments: &KeyExpression,
        message: &MessageDescriptor,
    ) -> Result<(), ExpressionError> {
        let function = self.functions.get(name).ok_or_else(|| ExpressionError::NoFunction(name.into()))?;
        let (takes, given) = (function.arguments, arguments.columns());
        if takes != given {
            return Err(ExpressionError::Arguments { name: name.into(), takes, given });
        }
        if arguments.version_columns() > 0 {
            return Err(ExpressionError::VersionArgument(name.into()));
        }
        self.check(arguments, message)
    }

    /// The field, which is repeated if and only if it has to be. A map is a repeated message of its keys and
    /// values.
    fn field(&self, field: &Field, message: &MessageDescriptor) -> Result<FieldDescriptor, ExpressionError> {
        let found = message.get_field_by_name(&field.name).ok_or_else(|| ExpressionError::NoField {
            message: self.root.full_name().into(),
            path: self.path_of(field),
        })?;
        match (found.is_list() || found.is_map(), field.fan) {
            (true, FanType::None) => Err(ExpressionError::Repeated { path: self.path_of(field) }),
            (true, _) | (false, FanType::None) => Ok(found),
            (false, _) => Err(ExpressionError::NotRepeated { path: self.path_of(field) }),
        }
    }

    fn path_of(&self, field: &Field) -> String {
        let names = self.path.iter().chain([&field.name]).map(String::as_str);
        names.collect::<Vec<_>>().join(".")
    }
}

/// The field whose values are in a column, and how it fans out itself. `None` for a column that is not a
/// field's.
pub(crate) fn resolve(
    column: &KeyExpression,
    message: &MessageDescriptor,
) -> Option<(FieldDescriptor, FanType)> {
    match column {
        KeyExpression::Field(field) => Some((message.get_field_by_name(&field.name)?, field.fan)),
        KeyExpression::Nest { parent, child } => match message.get_field_by_name(&parent.name)?.kind() {
            Kind::Message(inner) => resolve(child, &inner),
            _ => None,
        },
        _ => None,
    }
}
