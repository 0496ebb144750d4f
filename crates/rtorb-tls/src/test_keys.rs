//! The keys of the unit tests.

use crate::Tls;
use crate::keys::{AUTHORITY, Authority, Purpose, Validity};
use crate::settings::TlsBuilder;
use tempfile::TempDir;

/// Makes an authority in a folder. Returns the folder, and the settings of a server at localhost that has its certificate from that authority
/// and trusts it.
pub(crate) fn server_keys() -> (TempDir, TlsBuilder) {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::create(folder.path(), "test authority", Validity::days(1));
    let authority = authority.expect("the folder can be written");
    let hosts = ["localhost".to_owned()];
    let files = authority.issue(Purpose::Server, "server", &hosts, Validity::days(1));
    let files = files.expect("the folder can be written");
    let settings = Tls::builder()
        .certificate(files.certificate, files.key)
        .authorities(folder.path().join(AUTHORITY));
    (folder, settings)
}
