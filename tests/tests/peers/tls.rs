//! TLS with other ORBs, both ways, where both sides show certificates.

use rtorb::{Orb, OrbBuilder};
use rtorb_tests::ours::{Ours, check_cubit};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb, tls_options};
use rtorb_tests::running::output_of;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tls::Tls;
use rtorb_tls::keys::{AUTHORITY, Authority, IssuedFiles, Purpose, Validity};
use std::process::Command;

/// An authority in a folder, with the certificate of a server and of a client.
struct Keys {
    folder: Scratch,
    server: IssuedFiles,
    client: IssuedFiles,
}

impl Keys {
    fn new() -> Self {
        let folder = Scratch::new();
        let authority = Authority::create(&folder, "peers", Validity::days(2)).expect("a folder");
        let issue = |purpose, name, hosts: &[String]| {
            let issued = authority.issue(purpose, name, hosts, Validity::days(1));
            issued.expect("the folder can be written")
        };
        Self {
            server: issue(Purpose::Server, "server", &["127.0.0.1".to_owned()]),
            client: issue(Purpose::Client, "client", &[]),
            folder,
        }
    }

    /// An ORB of ours with one of the certificates.
    fn ours(&self, files: &IssuedFiles) -> OrbBuilder {
        let tls = Tls::builder()
            .certificate(&files.certificate, &files.key)
            .authorities(self.folder.join(AUTHORITY))
            .build();
        Orb::builder().secure_transport(tls.expect("right files").transport())
    }

    /// The options of omniORB for one of the certificates. Both sides must show one.
    fn of_omniorb(&self, files: &IssuedFiles) -> Vec<String> {
        let authority = self.folder.join(AUTHORITY);
        tls_options(&authority, &files.certificate, &files.key)
    }
}

#[test]
fn we_call_omniorb_over_tls() {
    let Some(omniorb) = omniorb() else { return };
    let (keys, scratch) = (Keys::new(), Scratch::new());
    let options = keys.of_omniorb(&keys.server);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let (_server, reference) = omniorb.serve("cubit_server", &scratch, Endpoint::Tls, &options);
    let orb = keys.ours(&keys.client).build().expect("an ORB");
    let object = orb.string_to_object(&reference).expect("a reference");
    check_cubit(&Cubit::unchecked_narrow(object), &[0, 1, 100_000]);
}

#[test]
fn omniorb_calls_us_over_tls() {
    let Some(omniorb) = omniorb() else { return };
    let keys = Keys::new();
    let server = keys.ours(&keys.server).listen("ssliop://127.0.0.1:0");
    let ours = Ours::serve_as(server);
    let options = keys.of_omniorb(&keys.client);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let reference = ours.text(ours.cubit.as_object());
    let lines = omniorb.call("cubit_client", &reference, &options);
    assert!(!lines.is_empty());
}

/// The properties of JacORB for one of the certificates, which it reads from a store of keys. Both sides must show one.
fn of_jacorb(keys: &Keys, files: &IssuedFiles) -> Vec<String> {
    let store = files.certificate.with_extension("p12");
    let authority = keys.folder.join(AUTHORITY);
    let [certificate, key, store_text] =
        [&files.certificate, &files.key, &store].map(|file| file.to_string_lossy().into_owned());
    let password = "pass:secret";
    output_of(Command::new("openssl").args([
        "pkcs12",
        "-export",
        "-in",
        &certificate,
        "-inkey",
        &key,
        "-name",
        "own",
        "-out",
        &store_text,
        "-passout",
        password,
    ]));
    output_of(
        Command::new("keytool")
            .args(["-importcert", "-noprompt", "-alias", "authority", "-file"])
            .arg(&authority)
            .args(["-keystore", &store_text, "-storepass", "secret"]),
    );
    let mut properties: Vec<_> = [
        "-Djacorb.security.support_ssl=on",
        "-Djacorb.ssl.socket_factory=org.jacorb.security.ssl.sun_jsse.SSLSocketFactory",
        "-Djacorb.ssl.server_socket_factory=org.jacorb.security.ssl.sun_jsse.SSLServerSocketFactory",
        "-Djacorb.security.ssl.client.supported_options=60",
        "-Djacorb.security.ssl.client.required_options=60",
        "-Djacorb.security.ssl.server.supported_options=60",
        "-Djacorb.security.ssl.server.required_options=60",
        "-Djacorb.security.keystore_password=secret",
        "-Djacorb.security.jsse.trustees_from_ks=on",
    ]
    .map(str::to_owned)
    .to_vec();
    properties.push(format!("-Djacorb.security.keystore={store_text}"));
    properties
}

#[test]
fn we_call_jacorb_over_tls() {
    let Some(jacorb) = jacorb() else { return };
    let (keys, scratch) = (Keys::new(), Scratch::new());
    let properties = of_jacorb(&keys, &keys.server);
    let properties: Vec<_> = properties.iter().map(String::as_str).collect();
    let (_server, reference) = jacorb.serve_with(&properties, "CubitServer", &scratch);
    let orb = keys.ours(&keys.client).build().expect("an ORB");
    let object = orb.string_to_object(&reference).expect("a reference");
    check_cubit(&Cubit::unchecked_narrow(object), &[0, 1, 100_000]);
}

#[test]
fn jacorb_calls_us_over_tls() {
    let Some(jacorb) = jacorb() else { return };
    let keys = Keys::new();
    let server = keys.ours(&keys.server).listen("ssliop://127.0.0.1:0");
    let ours = Ours::serve_as(server);
    let properties = of_jacorb(&keys, &keys.client);
    let properties: Vec<_> = properties.iter().map(String::as_str).collect();
    let reference = ours.text(ours.cubit.as_object());
    let lines = jacorb.call_with(&properties, "CubitClient", &reference);
    assert!(!lines.is_empty());
}
