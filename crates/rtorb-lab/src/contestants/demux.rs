//! Objects that do nothing, with one operation or three hundred, by the million: what the experiment `orb/demux` calls.

use std::str::FromStr;

use rtorb::{Limits, Orb, SystemException};

use crate::contestants::burst::{self, Burst, Samples};
use crate::contestants::cubit::ServeError;
use crate::contestants::demux::idl::demux::{Large, LargeServant, Single, SingleServant};
use crate::contestants::server::Server;
use crate::contestants::{CALL_TIMEOUT, client_orb_builder};
use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, is_tcp, number};

#[allow(missing_docs, clippy::all, reason = "generated")]
mod idl {
    rtorb::include_idl!("demux");
}

/// A server with many objects, and a client.
pub(crate) const ROLES: &[Role] = &[
    Role::here("demux-server", |words| {
        let [endpoint, operations, objects] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        let server = open(endpoint, operations.parse()?, number(objects)?);
        server.map_err(|error| error.to_string())?.run()
    })
    .on_agent(|words| match *words {
        [endpoint, operations, objects] => {
            let is_count = number::<usize>(objects).is_ok_and(|objects| objects <= OBJECTS_MAX);
            is_tcp(endpoint) && operations.parse::<Kind>().is_ok() && is_count
        }
        _ => false,
    }),
    Role::here("demux-client", |words| {
        let [operations, ref references @ ..] = *words else {
            return Err(NOT_ITS_ARGUMENTS.to_owned());
        };
        let orb = client_orb_builder(CALL_TIMEOUT).build();
        let orb = orb.map_err(|error| error.to_string())?;
        let client = Client::new(&orb, operations.parse()?, references);
        let client = client.map_err(|error| error.to_string())?;
        burst::answer(|burst| client.burst(burst))
    }),
];

/// The objects of a server that an agent starts: as many as `orb/demux` has, which is a hundred megabytes.
const OBJECTS_MAX: usize = 1_000_000;

/// Which of the two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One operation.
    Single,
    /// [`LARGE_OPERATIONS`] operations.
    Large,
}

impl Kind {
    /// How many operations its objects have.
    #[must_use]
    pub fn operations(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Large => LARGE_OPERATIONS,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    /// By the number of its operations.
    fn from_str(operations: &str) -> Result<Self, String> {
        let operations: usize = number(operations)?;
        let mut kinds = [Self::Single, Self::Large].into_iter();
        let kind = kinds.find(|kind| kind.operations() == operations);
        kind.ok_or_else(|| format!("no object has {operations} operations"))
    }
}

/// Makes a server of `objects` objects of a kind, at least one. Its references are those of the first, the middle and the last of them.
///
/// # Errors
/// What the ORB said.
pub fn open(endpoint: &str, kind: Kind, objects: usize) -> Result<Server, ServeError> {
    let limits = Limits::with(|limits| limits.objects_max = objects + 1);
    let orb = Orb::builder().listen(endpoint).limits(limits).build()?;
    let poa = orb.root_poa()?;
    let mut references = Vec::new();
    for index in 0..objects.max(1) {
        let object = match kind {
            Kind::Single => poa
                .activate::<Single, _>(Idle)
                .map(|single| single.as_object().clone()),
            Kind::Large => poa
                .activate::<Large, _>(Idle)
                .map(|large| large.as_object().clone()),
        };
        let object = object?;
        if [0, objects / 2, objects - 1].contains(&index) {
            references.push(orb.object_to_string(&object));
        }
    }
    Ok(Server::of(orb, references))
}

/// A client that calls the objects in turn, and of large ones the first, the middle and the last operation.
#[derive(Debug)]
pub struct Client {
    singles: Vec<Single>,
    larges: Vec<Large>,
}

impl Client {
    /// A client of these references.
    ///
    /// # Errors
    /// That one of them is none, or of another type.
    pub fn new(orb: &Orb, kind: Kind, references: &[&str]) -> Result<Self, SystemException> {
        let mut client = Self {
            singles: Vec::new(),
            larges: Vec::new(),
        };
        for reference in references {
            let object = orb.string_to_object(reference)?;
            match kind {
                Kind::Single => client.singles.push(Single::narrow(&object)?),
                Kind::Large => client.larges.push(Large::narrow(&object)?),
            }
        }
        Ok(client)
    }

    /// Times a burst of calls.
    ///
    /// # Errors
    /// The first exception, in words.
    pub fn burst(&self, burst: &Burst) -> Result<Samples, String> {
        let mut samples = Samples::for_burst(burst);
        let mut turn = 0;
        let call = || {
            turn += 1;
            self.call(turn)
        };
        samples.time(burst, call, |()| true)?;
        Ok(samples)
    }

    fn call(&self, turn: usize) -> Result<(), SystemException> {
        if let Some(single) = self.singles.get(turn % self.singles.len().max(1)) {
            return single.operation_000();
        }
        let large = &self.larges[turn % self.larges.len()];
        match turn / self.larges.len() % 3 {
            0 => large.operation_000(),
            1 => large.operation_150(),
            _ => large.operation_299(),
        }
    }
}

/// The servant of every object.
#[derive(Clone, Copy, Debug)]
struct Idle;

impl SingleServant for Idle {
    fn operation_000(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Three hundred methods that do nothing.
macro_rules! idle_operations {
    ($($name:ident)*) => { $(fn $name(&self) -> Result<(), SystemException> { Ok(()) })* };
}

impl LargeServant for Idle {
    idle_operations! {
        operation_000 operation_001 operation_002 operation_003 operation_004 operation_005
        operation_006 operation_007 operation_008 operation_009 operation_010 operation_011
        operation_012 operation_013 operation_014 operation_015 operation_016 operation_017
        operation_018 operation_019 operation_020 operation_021 operation_022 operation_023
        operation_024 operation_025 operation_026 operation_027 operation_028 operation_029
        operation_030 operation_031 operation_032 operation_033 operation_034 operation_035
        operation_036 operation_037 operation_038 operation_039 operation_040 operation_041
        operation_042 operation_043 operation_044 operation_045 operation_046 operation_047
        operation_048 operation_049 operation_050 operation_051 operation_052 operation_053
        operation_054 operation_055 operation_056 operation_057 operation_058 operation_059
        operation_060 operation_061 operation_062 operation_063 operation_064 operation_065
        operation_066 operation_067 operation_068 operation_069 operation_070 operation_071
        operation_072 operation_073 operation_074 operation_075 operation_076 operation_077
        operation_078 operation_079 operation_080 operation_081 operation_082 operation_083
        operation_084 operation_085 operation_086 operation_087 operation_088 operation_089
        operation_090 operation_091 operation_092 operation_093 operation_094 operation_095
        operation_096 operation_097 operation_098 operation_099 operation_100 operation_101
        operation_102 operation_103 operation_104 operation_105 operation_106 operation_107
        operation_108 operation_109 operation_110 operation_111 operation_112 operation_113
        operation_114 operation_115 operation_116 operation_117 operation_118 operation_119
        operation_120 operation_121 operation_122 operation_123 operation_124 operation_125
        operation_126 operation_127 operation_128 operation_129 operation_130 operation_131
        operation_132 operation_133 operation_134 operation_135 operation_136 operation_137
        operation_138 operation_139 operation_140 operation_141 operation_142 operation_143
        operation_144 operation_145 operation_146 operation_147 operation_148 operation_149
        operation_150 operation_151 operation_152 operation_153 operation_154 operation_155
        operation_156 operation_157 operation_158 operation_159 operation_160 operation_161
        operation_162 operation_163 operation_164 operation_165 operation_166 operation_167
        operation_168 operation_169 operation_170 operation_171 operation_172 operation_173
        operation_174 operation_175 operation_176 operation_177 operation_178 operation_179
        operation_180 operation_181 operation_182 operation_183 operation_184 operation_185
        operation_186 operation_187 operation_188 operation_189 operation_190 operation_191
        operation_192 operation_193 operation_194 operation_195 operation_196 operation_197
        operation_198 operation_199 operation_200 operation_201 operation_202 operation_203
        operation_204 operation_205 operation_206 operation_207 operation_208 operation_209
        operation_210 operation_211 operation_212 operation_213 operation_214 operation_215
        operation_216 operation_217 operation_218 operation_219 operation_220 operation_221
        operation_222 operation_223 operation_224 operation_225 operation_226 operation_227
        operation_228 operation_229 operation_230 operation_231 operation_232 operation_233
        operation_234 operation_235 operation_236 operation_237 operation_238 operation_239
        operation_240 operation_241 operation_242 operation_243 operation_244 operation_245
        operation_246 operation_247 operation_248 operation_249 operation_250 operation_251
        operation_252 operation_253 operation_254 operation_255 operation_256 operation_257
        operation_258 operation_259 operation_260 operation_261 operation_262 operation_263
        operation_264 operation_265 operation_266 operation_267 operation_268 operation_269
        operation_270 operation_271 operation_272 operation_273 operation_274 operation_275
        operation_276 operation_277 operation_278 operation_279 operation_280 operation_281
        operation_282 operation_283 operation_284 operation_285 operation_286 operation_287
        operation_288 operation_289 operation_290 operation_291 operation_292 operation_293
        operation_294 operation_295 operation_296 operation_297 operation_298 operation_299
    }
}

/// How many operations a large object has.
pub const LARGE_OPERATIONS: usize = 300;
