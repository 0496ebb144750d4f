//! The lines of a GPIO chip that a user names.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The lines of one wave: `CHIP:IN:OUT`, or `CHIP:IN:OUT:MONITOR`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpioLines {
    /// Such as `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// To which the generator of the square wave is wired: the supplier's input.
    pub input: u32,
    /// Which the receiver's servant sets.
    pub output: u32,
    /// An input that is wired to the output: then a latency ends when the kernel saw the output change.
    pub monitor: Option<u32>,
}

impl FromStr for GpioLines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let ([chip, input, output], monitor) = match parts[..] {
            [chip, input, output] => ([chip, input, output], None),
            [chip, input, output, monitor] => ([chip, input, output], Some(monitor)),
            _ => {
                return Err(format!(
                    "{text:?} are no lines; write CHIP:IN:OUT or CHIP:IN:OUT:MONITOR, as gpiochip0:17:27 or gpiochip0:17:27:22"
                ));
            }
        };
        if chip.is_empty() {
            return Err(format!("{text:?} names no chip, such as gpiochip0"));
        }
        let offset = |word: &str| {
            word.parse::<u32>()
                .map_err(|_| format!("{word:?} is not the number of a line on its chip"))
        };
        let lines = Self {
            // A path stays what it is.
            chip: PathBuf::from("/dev").join(chip),
            input: offset(input)?,
            output: offset(output)?,
            monitor: monitor.map(offset).transpose()?,
        };
        let mut all = vec![lines.input, lines.output];
        all.extend(lines.monitor);
        all.sort_unstable();
        if all.windows(2).any(|pair| pair[0] == pair[1]) {
            Err(format!("{text:?} has one line for two things"))
        } else {
            Ok(lines)
        }
    }
}

impl fmt::Display for GpioLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chip = self.chip.display();
        write!(formatter, "{chip}:{}:{}", self.input, self.output)?;
        match self.monitor {
            Some(monitor) => write!(formatter, ":{monitor}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for (text, written) in [
            ("gpiochip0:17:27", "/dev/gpiochip0:17:27"),
            ("/dev/gpiochip3:1:2:4", "/dev/gpiochip3:1:2:4"),
        ] {
            let lines: GpioLines = text.parse().unwrap();
            assert_eq!(lines.to_string(), written);
            assert_eq!(written.parse(), Ok(lines));
        }
    }

    #[test]
    fn what_are_no_lines_is_said() {
        for (text, word) in [
            ("gpiochip0", "CHIP:IN:OUT"),
            ("gpiochip0:1:2:3:4", "CHIP:IN:OUT"),
            (":1:2", "names no chip"),
            ("gpiochip0:in:2", "\"in\""),
            ("gpiochip0:1:-2", "\"-2\""),
            ("gpiochip0:1:2:2", "one line for two things"),
        ] {
            let error = text.parse::<GpioLines>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
