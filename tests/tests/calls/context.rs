//! Calls of operations with context clauses.

use crate::common::Pair;
use rtorb::cdr::ContextValues;
use rtorb::{ExceptionKind, SystemException};
use rtorb_tests::snapshots::contexts::{Plain, Shell, ShellExpandError, ShellServant, Unknown};

struct Values;

impl ShellServant for Values {
    fn expand(
        &self,
        name: &str,
        context: i32,
        context_: &ContextValues,
    ) -> Result<String, ShellExpandError> {
        let unknown = Unknown {
            name: name.to_owned(),
        };
        let value = context_.0.get(name).ok_or(unknown)?;
        Ok(format!("{value} {context}"))
    }

    fn mark(&self, context: &ContextValues) -> Result<(), SystemException> {
        if context.0.is_empty() {
            Err(ExceptionKind::BadContext.into())
        } else {
            Ok(())
        }
    }
}

fn values(all: &[(&str, &str)]) -> ContextValues {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ContextValues(all.iter().map(owned).collect())
}

#[test]
fn a_servant_gets_the_values_that_the_clause_names() {
    for pair in Pair::each() {
        let shell: Shell = pair.serve(Values);
        let given = values(&[("USER_NAME", "ada"), ("HOST", "here"), ("HOME", "/")]);
        assert_eq!(shell.expand("USER_NAME", 1, &given).unwrap(), "ada 1");
        assert_eq!(shell.expand("HOST", 2, &given).unwrap(), "here 2");
        let unknown = Unknown {
            name: "HOME".to_owned(),
        };
        assert_eq!(
            shell.expand("HOME", 3, &given).unwrap_err(),
            ShellExpandError::Unknown(unknown)
        );
        shell.mark(&values(&[("MARK", "")])).unwrap();
        let refused = shell.mark(&given).unwrap_err();
        assert_eq!(refused.kind, ExceptionKind::BadContext);
    }
}

#[test]
fn context_values_are_a_sequence_of_strings_behind_the_arguments() {
    let pair = Pair::new();
    let shell: Shell = pair.serve(Values);
    let plain = Plain::unchecked_narrow(shell.as_object().clone());
    let strings = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    let given = strings(&["HOST", "there", "USER", "eve"]);
    assert_eq!(plain.expand("USER", 4, &given).unwrap(), "eve 4");
    let odd = plain.expand("USER", 4, &strings(&["USER"])).unwrap_err();
    assert_eq!(odd.kind, ExceptionKind::Marshal);
}
