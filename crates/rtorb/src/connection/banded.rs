//! Priority bands: each band has its own connection to an endpoint.

use crate::realtime::{Priority, PriorityBand, is_in_band};

/// The bands of a client: which priorities share a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bands {
    /// No bands: all priorities share one connection.
    One,
    /// Each priority has its own connection: the default of the strategy.
    EachPriority,
    /// The bands of a PriorityBandedConnectionPolicy.
    Of(Vec<PriorityBand>),
}

/// The error for a priority that is in no band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoBand;

impl Bands {
    /// Returns the band of a priority; `None` if all priorities share one connection.
    #[inline]
    //= RT-CORBA 1.2 §Priority Banded Connections
    //# A call uses the connection of the band that contains its priority. It fails if no band does.
    pub(crate) fn band(&self, priority: Priority) -> Result<Option<PriorityBand>, NoBand> {
        let number = priority.get();
        match self {
            Self::One => Ok(None),
            Self::EachPriority => Ok(Some(PriorityBand {
                low: number,
                high: number,
            })),
            Self::Of(bands) => {
                let band = bands.iter().find(|band| is_in_band(band, priority));
                band.copied().map(Some).ok_or(NoBand)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_has_the_first_band_that_contains_it_or_none() {
        let band = |low, high| PriorityBand { low, high };
        let bands = Bands::Of(vec![band(0, 9), band(10, 19), band(15, 30)]);
        let of = |bands: &Bands, number| bands.band(Priority::new(number).expect("legal"));
        assert_eq!(of(&bands, 9), Ok(Some(band(0, 9))));
        assert_eq!(of(&bands, 15), Ok(Some(band(10, 19))));
        assert_eq!(of(&bands, 30), Ok(Some(band(15, 30))));
        assert_eq!(of(&bands, 31), Err(NoBand));
        assert_eq!(of(&Bands::EachPriority, 7), Ok(Some(band(7, 7))));
        assert_eq!(of(&Bands::One, 7), Ok(None));
    }
}
