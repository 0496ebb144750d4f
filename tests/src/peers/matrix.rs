//! Peers that echo every type of IDL and call such echoes: omniORB, JacORB and the JDK's ORB. The Java programs are compiled once, with what
//! JacORB's IDL compiler makes, and both ORBs run them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::make::{files, has, once, step};
use super::omniorb::{LIBRARIES, omniorb};
use crate::running::{Running, output_of};
use crate::skip;

/// An ORB with a client and a server of the matrix.
#[derive(Debug)]
pub struct Participant {
    /// Its name in the table.
    pub name: &'static str,
    client: Vec<String>,
    server: Vec<String>,
}

/// All peers; `None`, with a message, if one of them is missing.
///
/// # Panics
///
/// The programs cannot be built, or they are required and missing.
#[must_use]
pub fn all() -> Option<[Participant; 3]> {
    omniorb()?;
    let (Some(jacorb), Some(jdk)) = (jars("RTORB_JACORB"), jars("RTORB_JDK_ORB")) else {
        skip(
            "JacORB, the JDK's ORB or a JDK is not there: tests/programs/jacorb/pom.xml and tests/programs/jdk/pom.xml say how to fetch them",
        );
        return None;
    };
    let native = build_native();
    let classes = build_java(&jacorb);
    let program = |name: &str| text(&native.join(name)).to_owned();
    let java = |options: &[&str], jars: &str, class: &str| {
        let path = format!("{jars}:{}", text(&classes));
        let last = ["-cp", &path, class];
        let words = ["java", "-XX:TieredStopAtLevel=1"].iter();
        words
            .chain(options)
            .chain(&last)
            .map(|&it| it.to_owned())
            .collect()
    };
    let of_jacorb = [
        "-Dorg.omg.CORBA.ORBClass=org.jacorb.orb.ORB",
        "-Dorg.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton",
        "-DOAIAddr=127.0.0.1",
        "-Djacorb.log.default.verbosity=0",
    ];
    let of_jdk = [
        "-Dorg.omg.CORBA.ORBClass=com.sun.corba.se.impl.orb.ORBImpl",
        "-Dorg.omg.CORBA.ORBSingletonClass=com.sun.corba.se.impl.orb.ORBSingleton",
        "-Dcom.sun.CORBA.ORBServerHost=127.0.0.1",
    ];
    let endpoint = ["-ORBendPoint", "giop:tcp:127.0.0.1:", "--ior-file"].map(str::to_owned);
    Some([
        Participant {
            name: "omniORB",
            client: vec![program("matrix_client")],
            server: [vec![program("matrix_server")], endpoint.to_vec()].concat(),
        },
        Participant {
            name: "JacORB",
            client: java(&of_jacorb, &jacorb, "MatrixClient"),
            server: java(&of_jacorb, &jacorb, "MatrixServer"),
        },
        Participant {
            name: "JDK",
            client: java(&of_jdk, &jdk, "MatrixClient"),
            server: java(&of_jdk, &jdk, "MatrixServer"),
        },
    ])
}

/// The Python package of `bindings/python`, by the interpreter that `RTORB_PYTHON` names; `None` if it names none. `cargo xtask python`
/// installs it.
#[must_use]
pub fn python() -> Option<Participant> {
    let interpreter = env::var("RTORB_PYTHON").ok()?;
    let program = |name: &str| text(&in_package("programs/python").join(name)).to_owned();
    Some(Participant {
        name: "Python",
        client: vec![interpreter.clone(), program("matrix_client.py")],
        server: vec![interpreter, program("matrix_server.py")],
    })
}

impl Participant {
    /// Starts its server, and returns it with its reference.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    #[must_use]
    pub fn serve(&self, scratch: &Path) -> (Running, String) {
        let file = scratch.join(format!("{}.ior", self.name));
        let mut command = Command::new(&self.server[0]);
        command.args(&self.server[1..]).arg(&file);
        Running::until_written(command.stderr(Stdio::null()), &file)
    }

    /// Runs its client with the echoes in the file `targets`, and the references of the samples and of their judge. Returns its lines.
    ///
    /// # Panics
    ///
    /// The client fails as a whole.
    #[must_use]
    pub fn call(&self, targets: &Path, samples: &str, judge: &str) -> String {
        let mut command = Command::new(&self.client[0]);
        command.args(&self.client[1..]).arg(targets);
        output_of(command.args([samples, judge]))
    }
}

fn jars(variable: &str) -> Option<String> {
    let folder = env::var_os(variable).filter(|_| has("javac"))?;
    Some(format!("{}/*", folder.to_str()?))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the repository's path is UTF-8")
}

fn in_package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn build_native() -> PathBuf {
    let (idl, sources) = (in_package("idl/matrix.idl"), in_package("programs/omniorb"));
    let names = ["matrix.h", "peer.h", "matrix_client.cc", "matrix_server.cc"];
    let mut needs = names.map(|name| sources.join(name)).to_vec();
    needs.push(idl.clone());
    once("omniorb-matrix", &needs, |folder| {
        let translate = ["-bcxx", "-Wba", "-I/usr/share/idl/omniORB", text(&idl)];
        step(folder, "omniidl", translate);
        let compile = |file: &str| {
            let options = ["-std=c++17", "-O0", "-c", "-I.", "-I", text(&sources), file];
            step(folder, "g++", options);
        };
        let [client, server] = ["client", "server"]
            .map(|part| text(&sources.join(format!("matrix_{part}.cc"))).to_owned());
        for file in ["matrixSK.cc", "matrixDynSK.cc", &client, &server] {
            compile(file);
        }
        for program in ["matrix_client", "matrix_server"] {
            let object = format!("{program}.o");
            let objects = ["-o", program, &object, "matrixSK.o", "matrixDynSK.o"];
            step(folder, "g++", objects.iter().chain(LIBRARIES));
        }
    })
}

fn build_java(jars: &str) -> PathBuf {
    let idl = in_package("idl/matrix.idl");
    let sources = files(&in_package("programs/java"));
    let needs = [sources.clone(), vec![idl.clone()]].concat();
    once("java-matrix", &needs, |folder| {
        let translate = ["-cp", jars, "org.jacorb.idl.parser", "-DJACORB"];
        let places = ["-i2jpackage", "CORBA:org.omg.CORBA", "-d", "generated"];
        let words = translate.iter().chain(&places).map(OsStr::new);
        step(folder, "java", words.chain([idl.as_os_str()]));
        let options = ["-nowarn", "-cp", jars, "-d", "."].map(OsString::from);
        let java = [sources, files(&folder.join("generated/Matrix"))].concat();
        let java = java.into_iter().map(PathBuf::into_os_string);
        step(folder, "javac", options.into_iter().chain(java));
    })
}
