//! Which part of a trace a sample is.

use super::call_stacks::Step;

/// The steps of a sample: from `first` to the last one of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first step of it.
    pub(crate) first: usize,
    /// How many instructions of the first step were executed before it.
    pub(crate) left_out: u64,
    /// How many instructions it has.
    pub(crate) instructions: u64,
}

impl Window {
    /// The last so many instructions; fewer where the CPU slept before them, since time goes on then without instructions. `None`
    /// when the trace does not go back so far.
    pub(crate) fn of(steps: &[Step], value: u64) -> Option<Self> {
        let mut instructions = 0;
        for (first, step) in steps.iter().enumerate().rev() {
            if step.halted || instructions == value {
                let first = first + 1;
                return (first < steps.len()).then_some(Self {
                    first,
                    left_out: 0,
                    instructions,
                });
            }
            instructions += step.instructions;
            if let Some(left_out) = instructions.checked_sub(value) {
                return Some(Self {
                    first,
                    left_out,
                    instructions: value,
                });
            }
        }
        None
    }

    /// Its steps, each with as many instructions as are in it.
    pub(crate) fn steps<'a>(&self, steps: &'a [Step]) -> impl Iterator<Item = (&'a Step, u64)> {
        let left_out = self.left_out;
        let within = steps[self.first..].iter().enumerate();
        within.map(move |(index, step)| match index {
            0 => (step, step.instructions - left_out),
            _ => (step, step.instructions),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(instructions: &[u64], halted: Option<usize>) -> Vec<Step> {
        let step = |(index, instructions): (usize, &u64)| Step {
            top: 0,
            function: 0,
            task: None,
            instructions: *instructions,
            entered: false,
            interrupted: false,
            halted: halted == Some(index),
        };
        instructions.iter().enumerate().map(step).collect()
    }

    fn counts(window: Option<Window>, steps: &[Step]) -> Vec<u64> {
        let window = window.unwrap();
        let counts: Vec<u64> = window.steps(steps).map(|(_, count)| count).collect();
        assert_eq!(counts.iter().sum::<u64>(), window.instructions);
        counts
    }

    #[test]
    fn a_sample_is_exactly_its_instructions() {
        let steps = steps(&[5, 7, 3, 4], None);
        let of = |value| counts(Window::of(&steps, value), &steps);
        assert_eq!(of(1), [1]);
        assert_eq!(of(4), [4]);
        assert_eq!(of(5), [1, 4]);
        assert_eq!(of(7), [3, 4]);
        assert_eq!(of(13), [6, 3, 4]);
        assert_eq!(of(19), [5, 7, 3, 4]);
    }

    #[test]
    fn a_sample_longer_than_the_trace_is_not_told_in_part() {
        assert_eq!(Window::of(&steps(&[5, 7], None), 13), None);
        assert_eq!(Window::of(&[], 1), None);
    }

    #[test]
    fn time_that_the_cpu_slept_through_has_no_instructions() {
        let steps = steps(&[5, 7, 3, 4], Some(1));
        let of = |value| counts(Window::of(&steps, value), &steps);
        assert_eq!(of(6), [2, 4]);
        assert_eq!(of(7), [3, 4]);
        assert_eq!(of(100), [3, 4]);
    }

    #[test]
    fn nothing_is_in_a_sample_behind_which_the_cpu_slept() {
        assert_eq!(Window::of(&steps(&[5, 7], Some(1)), 3), None);
    }
}
