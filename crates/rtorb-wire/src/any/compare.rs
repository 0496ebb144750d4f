//! Equality of values.

use super::{State, Value};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        ValueComparison::default().values(self, other)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        ValueComparison::default().states(self, other)
    }
}

/// The comparison of two values. Each shared state in them is compared once: a few in a message could make it endless.
#[derive(Default)]
struct ValueComparison {
    /// For each state that was compared, by its address, one that equals it unless the whole comparison fails. States that equal each other
    /// lead to one, which leads to itself.
    equal: BTreeMap<usize, usize>,
}

impl ValueComparison {
    fn values(&mut self, a: &Value, b: &Value) -> bool {
        /// Compares values without parts.
        macro_rules! whole {
            ($($variant:ident)*) => {
                match (a, b) {
                    (Value::Nothing, Value::Nothing) => true,
                    $((Value::$variant(a), Value::$variant(b)) => a == b,)*
                    _ => false,
                }
            };
        }
        match (a, b) {
            (Value::Members(a), Value::Members(b)) | (Value::Elements(a), Value::Elements(b)) => {
                self.all(a, b)
            }
            (
                Value::Union {
                    discriminator,
                    value,
                },
                Value::Union {
                    discriminator: other,
                    value: other_value,
                },
            ) => discriminator == other && self.all(value.as_deref(), other_value.as_deref()),
            (Value::Valuetype(a), Value::Valuetype(b)) => match (a, b) {
                (Some(a), Some(b)) => self.shared(a, b),
                (a, b) => a.is_none() && b.is_none(),
            },
            _ => whole! {
                Boolean Octet Short UShort Long ULong LongLong ULongLong Float Double LongDouble Char WChar String WString Fixed
                Enum Octets Any TypeCode Reference
            },
        }
    }

    fn all<'v>(
        &mut self,
        a: impl IntoIterator<Item = &'v Value, IntoIter: ExactSizeIterator>,
        b: impl IntoIterator<Item = &'v Value, IntoIter: ExactSizeIterator>,
    ) -> bool {
        let (a, b) = (a.into_iter(), b.into_iter());
        a.len() == b.len() && a.zip(b).all(|(a, b)| self.values(a, b))
    }

    fn states(&mut self, a: &State, b: &State) -> bool {
        a.repository_id == b.repository_id && self.all(&a.members, &b.members)
    }

    fn shared(&mut self, a: &Arc<State>, b: &Arc<State>) -> bool {
        let [a_first, b_first] = [a, b].map(|it| self.first(Arc::as_ptr(it).addr()));
        if a_first == b_first && self.equal.contains_key(&a_first) {
            return true;
        }
        self.equal.insert(a_first, b_first);
        self.equal.entry(b_first).or_insert(b_first);
        self.states(a, b)
    }

    /// The state to which all that equal this one lead; itself if it was not compared.
    fn first(&mut self, mut state: usize) -> usize {
        while let Some(&next) = self.equal.get(&state)
            && next != state
        {
            // Halves the way for the next search.
            let after = self.equal.get(&next).copied().unwrap_or(next);
            self.equal.insert(state, after);
            state = next;
        }
        state
    }
}
