//! The counts of a channel over the wire: `RtorbEvents::CountingChannel`, which our channels support beside TAO's interface.

use rtorb::{ObjectRef, SystemException};

use super::admin::ChannelServant;
use super::statistics::{
    ConnectionState, ConsumerStatistics, Counts, Departed, Discarded, Published, Refused,
    Statistics, SupplierStatistics,
};
use crate::stubs::rtec_event::rtorb_events as idl;

/// Asks a channel for its counts.
///
/// # Errors
/// BAD_PARAM if the channel does not support this, such as TAO's; another exception if it does not answer.
pub fn statistics_of(channel: &ObjectRef) -> Result<Statistics, SystemException> {
    let channel = idl::CountingChannel::narrow(channel)?;
    Ok((&channel.statistics()?).into())
}

impl idl::CountingChannelServant for ChannelServant {
    fn statistics(&self) -> Result<idl::ChannelStatistics, SystemException> {
        Ok((&self.core.statistics()).into())
    }
}

impl From<&Statistics> for idl::ChannelStatistics {
    fn from(statistics: &Statistics) -> Self {
        let suppliers = &statistics.connected_suppliers;
        Self {
            received: statistics.received,
            too_large: statistics.refused.too_large,
            not_connected: statistics.refused.not_connected,
            malformed: statistics.refused.malformed,
            suppliers: statistics.suppliers,
            undistributed: statistics.undistributed,
            consumers: statistics.consumers.iter().map(Into::into).collect(),
            departed_consumers: (&statistics.departed).into(),
            connected_suppliers: suppliers.iter().map(Into::into).collect(),
        }
    }
}

impl From<&idl::ChannelStatistics> for Statistics {
    fn from(statistics: &idl::ChannelStatistics) -> Self {
        let suppliers = &statistics.connected_suppliers;
        Self {
            received: statistics.received,
            refused: Refused {
                too_large: statistics.too_large,
                not_connected: statistics.not_connected,
                malformed: statistics.malformed,
            },
            suppliers: statistics.suppliers,
            undistributed: statistics.undistributed,
            consumers: statistics.consumers.iter().map(Into::into).collect(),
            departed: (&statistics.departed_consumers).into(),
            connected_suppliers: suppliers.iter().map(Into::into).collect(),
        }
    }
}

impl From<&ConsumerStatistics> for idl::ConsumerStatistics {
    fn from(consumer: &ConsumerStatistics) -> Self {
        Self {
            number: consumer.number,
            lane: consumer.lane,
            connection: match consumer.connection {
                ConnectionState::Opening => idl::ConnectionState::Opening,
                ConnectionState::Open => idl::ConnectionState::Open,
                ConnectionState::Clogged => idl::ConnectionState::Clogged,
                ConnectionState::Gone => idl::ConnectionState::Gone,
            },
            is_suspended: consumer.is_suspended,
            events: (&consumer.events).into(),
            forgotten: consumer.forgotten,
            timeouts_missed: consumer.timeouts_missed,
            queued_octets: consumer.queued_octets,
        }
    }
}

impl From<&idl::ConsumerStatistics> for ConsumerStatistics {
    fn from(consumer: &idl::ConsumerStatistics) -> Self {
        Self {
            number: consumer.number,
            lane: consumer.lane,
            connection: match consumer.connection {
                idl::ConnectionState::Opening => ConnectionState::Opening,
                idl::ConnectionState::Open => ConnectionState::Open,
                idl::ConnectionState::Clogged => ConnectionState::Clogged,
                idl::ConnectionState::Gone => ConnectionState::Gone,
            },
            is_suspended: consumer.is_suspended,
            events: (&consumer.events).into(),
            forgotten: consumer.forgotten,
            timeouts_missed: consumer.timeouts_missed,
            queued_octets: consumer.queued_octets,
        }
    }
}

impl From<&SupplierStatistics> for idl::SupplierStatistics {
    fn from(supplier: &SupplierStatistics) -> Self {
        Self {
            number: supplier.number,
            is_gateway: supplier.is_gateway,
            publications: supplier.publications.iter().map(Into::into).collect(),
        }
    }
}

impl From<&idl::SupplierStatistics> for SupplierStatistics {
    fn from(supplier: &idl::SupplierStatistics) -> Self {
        Self {
            number: supplier.number,
            is_gateway: supplier.is_gateway,
            publications: supplier.publications.iter().map(Into::into).collect(),
        }
    }
}

/// Converts both ways between two types with the same fields.
macro_rules! alike {
    ($($ours:ident $field:tt;)*) => {
        $(
            impl From<&$ours> for idl::$ours {
                alike!(convert $ours $field);
            }

            impl From<&idl::$ours> for $ours {
                alike!(convert_back $ours $field);
            }
        )*
    };
    (convert $ours:ident { $($copied:ident),*; $($inner:ident = $there:ident),* }) => {
        fn from(from: &$ours) -> Self {
            Self { $($copied: from.$copied,)* $($there: (&from.$inner).into(),)* }
        }
    };
    (convert_back $ours:ident { $($copied:ident),*; $($inner:ident = $there:ident),* }) => {
        fn from(from: &idl::$ours) -> Self {
            Self { $($copied: from.$copied,)* $($inner: (&from.$there).into(),)* }
        }
    };
}

alike! {
    Discarded { full, suspended, broken, gone, unsendable; };
    Counts { received, delivered, waiting; discarded = not_delivered };
    Departed { disconnected, dead, hung, full; events = events };
    Published { source, event_type; };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_out_as_they_went_in() {
        let counts = Counts {
            received: 21,
            delivered: 2,
            discarded: Discarded {
                full: 3,
                suspended: 4,
                broken: 5,
                gone: 6,
                unsendable: 1,
            },
            waiting: 0,
        };
        let states = [
            ConnectionState::Opening,
            ConnectionState::Open,
            ConnectionState::Clogged,
            ConnectionState::Gone,
        ];
        let consumer = |(number, connection): (u64, ConnectionState)| ConsumerStatistics {
            number,
            lane: 40,
            connection,
            is_suspended: number == 2,
            events: counts,
            forgotten: 10,
            timeouts_missed: 11,
            queued_octets: 12,
        };
        let statistics = Statistics {
            received: 1,
            refused: Refused {
                too_large: 2,
                not_connected: 3,
                malformed: 4,
            },
            suppliers: 5,
            undistributed: 12,
            consumers: (1..).zip(states).map(consumer).collect(),
            departed: Departed {
                disconnected: 6,
                dead: 7,
                hung: 8,
                full: 9,
                events: counts,
            },
            connected_suppliers: vec![SupplierStatistics {
                number: 13,
                is_gateway: true,
                publications: vec![Published {
                    source: 14,
                    event_type: 15,
                }],
            }],
        };
        let sent = idl::ChannelStatistics::from(&statistics);
        assert_eq!(Statistics::from(&sent), statistics);
    }
}
