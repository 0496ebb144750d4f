//! Slices on tracks: those of one track are in one another or apart, as Perfetto requires.

/// A slice, and the begin of the slice in it that ends with it, if there is one. In ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) inner_ns: Option<u64>,
}

impl Slice {
    /// The order in which slices get their rows: by their begins, of those that begin together the longest first.
    pub(super) fn order(&self) -> (u64, std::cmp::Reverse<u64>) {
        (self.begin_ns, std::cmp::Reverse(self.end_ns))
    }

    /// Returns true if a later slice is in this one, and not partly in its inner one.
    fn has_room_for(&self, later: &Self) -> bool {
        let is_beside = |inner_ns: u64| later.begin_ns >= inner_ns || later.end_ns <= inner_ns;
        later.end_ns <= self.end_ns && self.inner_ns.is_none_or(is_beside)
    }
}

/// Returns the row of each slice, from 0, such that the slices of a row are in one another or apart. Slices are given in their order.
pub(super) fn rows(slices: &[Slice]) -> Vec<usize> {
    // Of each row, the slices that are open.
    let mut open: Vec<Vec<Slice>> = Vec::new();
    let place = |slice: &Slice| {
        for (row, open) in open.iter_mut().enumerate() {
            while open
                .last()
                .is_some_and(|last| last.end_ns <= slice.begin_ns)
            {
                open.pop();
            }
            if open.iter().all(|around| around.has_room_for(slice)) {
                open.push(*slice);
                return row;
            }
        }
        open.push(vec![*slice]);
        open.len() - 1
    };
    slices.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_overlap_are_in_different_rows() {
        let slices = [(0, 10), (0, 5), (5, 10), (8, 12), (10, 11), (12, 13)];
        let slices = slices.map(|(begin_ns, end_ns)| Slice {
            begin_ns,
            end_ns,
            inner_ns: None,
        });
        assert_eq!(rows(&slices), [0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn an_inner_slice_stays_with_its_own() {
        let slices = [(0, 10, 6), (2, 8, 3), (2, 5, 4), (11, 20, 12)];
        let slices = slices.map(|(begin_ns, end_ns, inner_ns)| Slice {
            begin_ns,
            end_ns,
            inner_ns: Some(inner_ns),
        });
        assert_eq!(rows(&slices), [0, 1, 0, 0]);
    }
}
