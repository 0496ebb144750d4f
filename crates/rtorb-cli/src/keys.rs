//! `rtorb keys`: an authority for TLS in a folder, the certificates that it signs, and those that it revokes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Make keys and certificates for TLS, in a folder. It needs a command that is built with the feature `tls`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Make an authority: DIR/ca.pem, which all programs trust, its key DIR/ca.key, and DIR/crl.pem, its list of revoked certificates.
    Ca {
        /// Folder of the authority. It is made if it is missing.
        dir: PathBuf,
        /// Name of the authority.
        #[arg(long, value_name = "NAME", default_value = "rtorb authority")]
        name: String,
        /// Days until the authority ends.
        #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Make a certificate of a server: DIR/NAME.pem, and its key DIR/NAME.key.
    Server {
        /// Folder of the authority.
        dir: PathBuf,
        /// Name of the server, and of its files.
        name: String,
        /// Host names and addresses under which clients reach the server.
        #[arg(required = true)]
        hosts: Vec<String>,
        /// Days until the certificate ends.
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Make a certificate of a client: DIR/NAME.pem, and its key DIR/NAME.key.
    Client {
        /// Folder of the authority.
        dir: PathBuf,
        /// Name of the client, and of its files. Access rules of servers name it.
        name: String,
        /// Days until the certificate ends.
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Revoke a certificate: add it to the list DIR/crl.pem.
    Revoke {
        /// Folder of the authority.
        dir: PathBuf,
        /// The certificate.
        certificate: PathBuf,
    },
}

impl Keys {
    #[cfg(not(feature = "tls"))]
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let _ = self.subcommand;
        Err(crate::orb_options::usage(crate::orb_options::WITHOUT_TLS))
    }

    #[cfg(feature = "tls")]
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        use crate::output::note;
        use rtorb_tls::keys::{Authority, Purpose, Validity};

        let issued = match self.subcommand {
            Subcommands::Ca { dir, name, days } => {
                Authority::create(&dir, &name, Validity::days(days))?;
                note!("{name} is in {}: keep ca.key secret", dir.display());
                return Ok(ExitCode::SUCCESS);
            }
            Subcommands::Revoke { dir, certificate } => {
                Authority::open(&dir)?.revoke(&certificate)?;
                note!("{} is revoked", certificate.display());
                return Ok(ExitCode::SUCCESS);
            }
            Subcommands::Server {
                dir,
                name,
                hosts,
                days,
            } => Authority::open(&dir)?.issue(Purpose::Server, &name, &hosts, Validity::days(days)),
            Subcommands::Client { dir, name, days } => {
                Authority::open(&dir)?.issue(Purpose::Client, &name, &[], Validity::days(days))
            }
        }?;
        note!(
            "{} and its key {}",
            issued.certificate.display(),
            issued.key.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}
