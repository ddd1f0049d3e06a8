//! Whether an expression can be evaluated in records of a type, found out when the meta-data is built.

use super::{FanType, Field, Functions, KeyExpression, NullStandin, scalar::is_scalar};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// Why an expression does not fit the records that it is for. `path` is the field, with those that it is nested in:
/// `reviews.rating`.
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
    /// A field that records its presence by itself, or a repeated one, cannot be
    /// [`NotNull`](NullStandin::NotNull) and nested in.
    #[error("field {path} is a message: an absent message has no default value")]
    MessageNotNull {
        /// The field.
        path: String,
    },
}

impl KeyExpression {
    /// Refuses an expression that cannot be evaluated in every record of this type.
    pub fn validate(
        &self,
        message: &MessageDescriptor,
        functions: &Functions,
    ) -> Result<(), ExpressionError> {
        Place { root: message, path: Vec::new(), functions }.check(self, message)
    }
}

/// Where in a record an expression is evaluated.
struct Place<'a> {
    root: &'a MessageDescriptor,
    path: Vec<String>,
    functions: &'a Functions,
}

impl Place<'_> {
    fn check(
        &mut self,
        expression: &KeyExpression,
        message: &MessageDescriptor,
    ) -> Result<(), ExpressionError> {
        match expression {
            KeyExpression::Field(field) => {
                let found = self.field(field, message)?;
                match is_scalar(&found) {
                    true => Ok(()),
                    false => Err(ExpressionError::NotScalar { path: self.path_of(field) }),
                }
            }
            KeyExpression::Nest { parent, child } => {
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
            KeyExpression::Concat(parts) => parts.iter().try_for_each(|part| self.check(part, message)),
            KeyExpression::Group { whole, grouped } => match whole.columns() {
                columns if *grouped > columns => Err(ExpressionError::Group { grouped: *grouped, columns }),
                _ => self.check(whole, message),
            },
            KeyExpression::Function { name, arguments } => {
                let function =
                    self.functions.get(name).ok_or_else(|| ExpressionError::NoFunction(name.clone()))?;
                let (takes, given) = (function.arguments, arguments.columns());
                if takes != given {
                    return Err(ExpressionError::Arguments { name: name.clone(), takes, given });
                }
                self.check(arguments, message)
            }
            KeyExpression::Empty
            | KeyExpression::Version
            | KeyExpression::RecordType
            | KeyExpression::Literal(_) => Ok(()),
        }
    }

    /// The field, which is repeated if and only if it has to be.
    fn field(&self, field: &Field, message: &MessageDescriptor) -> Result<FieldDescriptor, ExpressionError> {
        let found = message.get_field_by_name(&field.name).ok_or_else(|| ExpressionError::NoField {
            message: self.root.full_name().into(),
            path: self.path_of(field),
        })?;
        match (found.is_list(), field.fan) {
            (true, FanType::None) => Err(ExpressionError::Repeated { path: self.path_of(field) }),
            (false, FanType::None) => Ok(found),
            (false, _) => Err(ExpressionError::NotRepeated { path: self.path_of(field) }),
            (true, _) => Ok(found),
        }
    }

    fn path_of(&self, field: &Field) -> String {
        let names = self.path.iter().chain([&field.name]).map(String::as_str);
        names.collect::<Vec<_>>().join(".")
    }
}
