//! Arithmetic over figures: `high / low`, and comparisons: `high < 1.2 * low`.

use super::Trouble;

/// Looks a figure up by its name.
pub(super) type Lookup<'a> = dyn Fn(&str) -> Result<f64, Trouble> + 'a;

/// The value of an expression of numbers, names, `+ - * /` and parentheses.
pub(super) fn value(text: &str, lookup: &Lookup<'_>) -> Result<f64, Trouble> {
    let mut parser = Parser {
        text,
        rest: text,
        lookup,
    };
    let value = parser.sum()?;
    parser.end()?;
    Ok(value)
}

/// Whether a comparison holds, such as `a < b` or `a < b < c`.
pub(super) fn holds(text: &str, lookup: &Lookup<'_>) -> Result<bool, Trouble> {
    let mut parser = Parser {
        text,
        rest: text,
        lookup,
    };
    let mut left = parser.sum()?;
    let mut holds = true;
    let mut operators = 0;
    while let Some(operator) = ["<=", ">=", "<", ">"]
        .into_iter()
        .find(|it| parser.takes(it))
    {
        let right = parser.sum()?;
        holds &= match operator {
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        };
        (left, operators) = (right, operators + 1);
    }
    parser.end()?;
    if operators == 0 {
        return Err(Trouble::Mistake(format!("`{text}` compares nothing")));
    }
    Ok(holds)
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    lookup: &'a Lookup<'a>,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<f64, Trouble> {
        let mut sum = self.product()?;
        loop {
            if self.takes("+") {
                sum += self.product()?;
            } else if self.takes("-") {
                sum -= self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Trouble> {
        let mut product = self.factor()?;
        loop {
            if self.takes("*") {
                product *= self.factor()?;
            } else if self.takes("/") {
                product /= self.factor()?;
            } else {
                break;
            }
        }
        if product.is_finite() {
            return Ok(product);
        }
        Err(Trouble::Unmeasured(format!(
            "`{}` divides by nothing",
            self.text
        )))
    }

    fn factor(&mut self) -> Result<f64, Trouble> {
        if self.takes("(") {
            let value = self.sum()?;
            return if self.takes(")") {
                Ok(value)
            } else {
                Err(self.mistake())
            };
        }
        let is_of_word = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
        let end = self.rest.find(|it| !is_of_word(it));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.is_empty() {
            return Err(self.mistake());
        }
        self.rest = rest.trim_start();
        if word.starts_with(|it: char| it.is_ascii_digit()) {
            return word.parse().map_err(|_| self.mistake());
        }
        (self.lookup)(word)
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        if let Some(rest) = rest {
            self.rest = rest.trim_start();
        }
        rest.is_some()
    }

    fn end(&self) -> Result<(), Trouble> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.mistake())
        }
    }

    fn mistake(&self) -> Trouble {
        Trouble::Mistake(format!("`{}` cannot be read at `{}`", self.text, self.rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Result<f64, Trouble> {
        match name {
            "one" => Ok(10.0),
            "fifty" => Ok(11.5),
            "zero" => Ok(0.0),
            _ => Err(Trouble::Mistake(format!("there is no figure {name}"))),
        }
    }

    #[test]
    fn arithmetic_has_its_usual_order() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("fifty - one - 1", 0.5),
            ("one / 4 / 5", 0.5),
        ] {
            assert_eq!(value(text, &lookup), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_comparison_holds_or_not() {
        for (text, expected) in [
            ("fifty < 1.2 * one", true),
            ("fifty < 1.1 * one", false),
            ("1 < one <= 10", true),
            ("1 < one < 10", false),
            ("one >= fifty", false),
        ] {
            assert_eq!(holds(text, &lookup), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_mistake_and_a_division_by_zero_is_not_measured() {
        for text in [
            "one <",
            "one",
            "(one < 2",
            "one < 2)",
            "one < two",
            "1.2.3 < one",
            "one ! 2",
        ] {
            let trouble = holds(text, &lookup);
            assert!(
                matches!(trouble, Err(Trouble::Mistake(_))),
                "{text}: {trouble:?}"
            );
        }
        let trouble = holds("one / zero < 1", &lookup);
        assert!(
            matches!(trouble, Err(Trouble::Unmeasured(_))),
            "{trouble:?}"
        );
    }
}
