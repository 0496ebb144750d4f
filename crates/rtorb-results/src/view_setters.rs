//! Methods that set one field of a plot or a table each: a view is declared in the order in which it is read.

/// Defines `named`, which sets id and title, and a method for each field: `field(value: Type) => what is set`.
macro_rules! view_setters {
    ($($(#[$doc:meta])* $field:ident($($value:ident: $type:ty)?) => $set:expr;)*) => {
        /// The same with that id and title.
        #[must_use]
        pub fn named(self, id: &str, title: &str) -> Self {
            Self {
                id: id.to_owned(),
                title: title.to_owned(),
                ..self
            }
        }

        $(
            $(#[$doc])*
            #[must_use]
            pub fn $field(self $(, $value: $type)?) -> Self {
                Self { $field: $set, ..self }
            }
        )*
    };
}

pub(crate) use view_setters;

/// The names of labels, owned.
pub(crate) fn owned(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}
