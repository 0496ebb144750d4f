//! `rtorb events list`: shows the clients and counters of a channel.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb_results::table::Table;
use rtorb_services::events::statistics::{
    ConnectionState, ConsumerStatistics, Published, SupplierStatistics,
};
use rtorb_services::events::{Statistics, statistics_of};

use crate::output::{line, print_json, print_table};
use crate::reference::{self, CallOptions};

/// Show the consumers and counters of a channel of rtorb.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Channel: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl List {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = self.calling.orb()?;
        let object = reference::object(&orb, &self.reference)?;
        let statistics = statistics_of(&object).map_err(|exception| {
            anyhow!(
                "{} does not return counters (only channels of rtorb do): {exception}",
                self.reference
            )
        })?;
        if self.json {
            print_json(&statistics)?
        } else {
            print(&statistics)?
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the counters of a channel.
pub(super) fn print(statistics: &Statistics) -> anyhow::Result<()> {
    let Statistics {
        received,
        refused,
        suppliers,
        undistributed,
        consumers,
        departed,
        connected_suppliers,
        ..
    } = statistics;
    line(format!(
        "{received} events received, {suppliers} suppliers connected now; refused: {} too large, {} from suppliers that are not \
         connected, {} malformed",
        refused.too_large, refused.not_connected, refused.malformed
    ))?;
    if *undistributed > 0 {
        line(format!(
            "{undistributed} events wait to be distributed by their lanes"
        ))?;
    }
    if !consumers.is_empty() {
        let head = [
            "consumer",
            "lane",
            "connection",
            "received",
            "delivered",
            "discarded",
            "waiting",
            "bytes",
        ];
        print_table(&Table {
            head: head.map(str::to_owned).to_vec(),
            rows: consumers.iter().map(row).collect(),
        })?;
    }
    for consumer in consumers {
        let (forgotten, missed) = (consumer.forgotten, consumer.timeouts_missed);
        if forgotten > 0 || missed > 0 {
            line(format!(
                "consumer {}: its conjunctions had no room for {forgotten} events, and {missed} timeouts were missed",
                consumer.number
            ))?;
        }
    }
    for supplier in connected_suppliers {
        line(offer(supplier))?;
    }
    let gone = departed.all();
    if gone > 0 {
        line(format!(
            "{gone} consumers have left ({} disconnected, {} dead, {} hung, {} with a full queue): {} of their {} events \
             were delivered",
            departed.disconnected,
            departed.dead,
            departed.hung,
            departed.full,
            departed.events.delivered,
            departed.events.received
        ))?;
    }
    Ok(())
}

fn row(consumer: &ConsumerStatistics) -> Vec<String> {
    let connection = match consumer.connection {
        _ if consumer.is_suspended => "suspended",
        ConnectionState::Opening => "opening",
        ConnectionState::Open => "open",
        ConnectionState::Clogged => "clogged",
        _ => "closed",
    };
    let events = &consumer.events;
    vec![
        consumer.number.to_string(),
        consumer.lane.to_string(),
        connection.to_owned(),
        events.received.to_string(),
        events.delivered.to_string(),
        events.discarded.all().to_string(),
        events.waiting.to_string(),
        consumer.queued_octets.to_string(),
    ]
}

fn offer(supplier: &SupplierStatistics) -> String {
    let or_any = |number: i32| match number {
        0 => "any".to_owned(),
        number => number.to_string(),
    };
    let shown = |it: &Published| {
        format!(
            "type {} of source {}",
            or_any(it.event_type),
            or_any(it.source)
        )
    };
    let mut all: Vec<String> = supplier.publications.iter().map(shown).collect();
    if all.is_empty() {
        all.push("events that it does not declare".to_owned());
    }
    let kind = if supplier.is_gateway {
        " (a gateway)"
    } else {
        ""
    };
    format!(
        "supplier {}{kind} publishes {}",
        supplier.number,
        all.join(", ")
    )
}
