//! Cubit over rtorb: the servant, its server, and a client that times each operation and checks every answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb::any::Any;
use rtorb::{Call, ObjectRef, Orb, OrbBuilder, OrbError, PoaPolicies, SystemException};
use rtorb_os::clock::thread_cpu_ns;
use rtorb_wire::cdr::{Decode, Encode, Reader, Writer};

use crate::contestants::burst::{Burst, Samples, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::server::Server;
use idl::{Cubit, CubitServant, Many, Oneof};

pub(in crate::contestants) mod objects;
pub(crate) mod roles;

#[allow(missing_docs, clippy::all, reason = "generated")]
pub(crate) mod idl {
    rtorb::include_idl!("cubit");
}

/// The servant: wrapping cubes of whatever it is given.
#[derive(Debug)]
pub struct Cuber {
    orb: Orb,
    /// Processor time that `cube_octet` takes beside its work, in nanoseconds.
    work_ns: Option<Arc<AtomicU64>>,
}

impl Cuber {
    /// A servant that ends this ORB when it is told to shut down.
    #[must_use]
    pub fn new(orb: Orb) -> Self {
        Self { orb, work_ns: None }
    }

    /// The same, whose `cube_octet` takes as much processor time of its thread as `work_ns` says at that moment: a servant
    /// that has something to do.
    #[must_use]
    pub fn working(orb: Orb, work_ns: Arc<AtomicU64>) -> Self {
        Self {
            orb,
            work_ns: Some(work_ns),
        }
    }
}

impl CubitServant for Cuber {
    fn cube_oneway(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_void(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_octet(&self, o: u8) -> Result<u8, SystemException> {
        if let Some(work_ns) = &self.work_ns {
            work(work_ns.load(Ordering::Relaxed));
        }
        Ok(cube_octet(o))
    }

    fn cube_short(&self, s: i16) -> Result<i16, SystemException> {
        Ok(cube_short(s))
    }

    fn cube_long(&self, l: i32) -> Result<i32, SystemException> {
        Ok(cube_long(l))
    }

    fn cube_struct(&self, values: &Many) -> Result<Many, SystemException> {
        Ok(cube_many(values))
    }

    fn cube_union(&self, values: &Oneof) -> Result<Oneof, SystemException> {
        Ok(match values {
            Oneof::O(o) => Oneof::O(cube_octet(*o)),
            Oneof::S(s) => Oneof::S(cube_short(*s)),
            Oneof::L(l) => Oneof::L(cube_long(*l)),
            Oneof::Cm(many) => Oneof::Cm(cube_many(many)),
        })
    }

    fn cube_any(&self, values: &Any) -> Result<Any, SystemException> {
        // Only a long is cubed; anything else comes back as it is.
        match values.extract::<i32>() {
            Ok(l) => Any::from_value(&cube_long(l)).map_err(SystemException::from_encode),
            Err(_) => Ok(values.clone()),
        }
    }

    fn cube_long_sequence(&self, input: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(cube_longs(input))
    }

    fn cube_octet_sequence(&self, input: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(cube_octets(input))
    }

    fn cube_many_sequence(&self, input: &[Many]) -> Result<Vec<Many>, SystemException> {
        Ok(cube_manies(input))
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}

/// Makes a server of one Cubit, in an adapter of these policies.
///
/// # Errors
/// What the ORB said, of a policy too.
pub fn open(builder: OrbBuilder, policies: PoaPolicies) -> Result<Server, OrbError> {
    let orb = builder.build()?;
    let poa = if policies.rt.is_empty() {
        orb.root_poa()?
    } else {
        orb.root_poa()?.create_poa("Cubit", policies)?
    };
    let cubit: Cubit = poa.activate(Cuber::new(orb.clone()))?;
    let reference = orb.object_to_string(cubit.as_object());
    Ok(Server::of(orb, [reference]))
}

/// A client that times calls.
#[derive(Debug)]
pub struct Bench {
    cubit: Cubit,
    /// The number of started calls that it keeps in flight; `None` makes calls that block.
    in_flight: Option<usize>,
}

/// The two ways to call a method with the same arguments.
struct Method<C, S> {
    /// Makes a call that blocks.
    call: C,
    /// Starts a call.
    start: S,
}

impl Bench {
    /// A client of the object, which is asked whether it is a Cubit unless its reference says so.
    ///
    /// # Errors
    /// That it is none, or cannot be asked.
    pub fn new(object: &ObjectRef) -> Result<Self, SystemException> {
        Ok(Self {
            cubit: Cubit::narrow(object)?,
            in_flight: None,
        })
    }

    /// The same client, which starts calls and keeps a number of them in flight. It times no oneways, and nothing at a rate.
    #[must_use]
    pub fn keeping_in_flight(mut self, calls: usize) -> Self {
        self.in_flight = Some(calls);
        self
    }

    /// Times a burst.
    ///
    /// # Errors
    /// The first exception, or that the burst makes no sense, in words.
    pub fn burst(&self, burst: &Burst) -> Result<Samples, String> {
        let mut samples = Samples::for_burst(burst);
        if burst.verb != Verb::Call && !burst.operation.is_sequence() {
            return Err("only sequences have work and marshalling of their own".to_owned());
        }
        let cubit = &self.cubit;
        match burst.operation {
            Operation::LongSequence => {
                let input: Vec<i32> = (0..burst.len).map(|index| (index * 7 + 3) as i32).collect();
                let method = Method {
                    call: || cubit.cube_long_sequence(&input),
                    start: || cubit.start().cube_long_sequence(&input),
                };
                self.sequence(&mut samples, burst, &input, cube_longs, method)?;
            }
            Operation::OctetSequence => {
                let input: Vec<u8> = (0..burst.len).map(|index| (index * 7 + 3) as u8).collect();
                let method = Method {
                    call: || cubit.cube_octet_sequence(&input),
                    start: || cubit.start().cube_octet_sequence(&input),
                };
                self.sequence(&mut samples, burst, &input, cube_octets, method)?;
            }
            Operation::ManySequence => {
                let input: Vec<Many> = (0..burst.len).map(some_many).collect();
                let method = Method {
                    call: || cubit.cube_many_sequence(&input),
                    start: || cubit.start().cube_many_sequence(&input),
                };
                self.sequence(&mut samples, burst, &input, cube_manies, method)?;
            }
            _ => self.simple(&mut samples, burst)?,
        }
        Ok(samples)
    }

    /// Has the server end.
    ///
    /// # Errors
    /// That it could not be told.
    pub fn shutdown(&self) -> Result<(), SystemException> {
        self.cubit.shutdown()
    }

    fn simple(&self, samples: &mut Samples, burst: &Burst) -> Result<(), String> {
        let cubit = &self.cubit;
        let many = some_many(4);
        let cubed = cube_many(&many);
        /// Times a method with these arguments.
        macro_rules! time {
            ($method:ident($($argument:expr),*), $is_right:expr) => {{
                let call = || cubit.$method($($argument),*);
                let start = || cubit.start().$method($($argument),*);
                self.time(samples, burst, Method { call, start }, $is_right)
            }};
        }
        match burst.operation {
            Operation::Oneway => self.oneway(samples, burst),
            Operation::Void => time!(cube_void(), |()| true),
            Operation::Octet => time!(cube_octet(7), |o| *o == cube_octet(7)),
            Operation::Short => time!(cube_short(-117), |s| *s == cube_short(-117)),
            Operation::Long => time!(cube_long(-117), |l| *l == cube_long(-117)),
            Operation::Struct => time!(cube_struct(&many), |answer| *answer == cubed),
            Operation::Union => {
                let values = Oneof::Cm(many);
                time!(cube_union(&values), |answer| *answer == Oneof::Cm(cubed))
            }
            Operation::Any => {
                let values = Any::from_value(&-117i32).map_err(|error| error.to_string())?;
                let is_right =
                    |answer: &Any| answer.extract::<i32>().is_ok_and(|l| l == cube_long(-117));
                time!(cube_any(&values), is_right)
            }
            sequence => Err(format!("{sequence} is no simple operation")),
        }
    }

    /// The samples are the times of sending; the elapsed time ends when the server has served the last.
    fn oneway(&self, samples: &mut Samples, burst: &Burst) -> Result<(), String> {
        if self.in_flight.is_some() {
            return Err("a oneway has no reply, so that it is not in flight".to_owned());
        }
        let begin_ns = rtorb_os::clock::monotonic_ns();
        samples.time(burst, || self.cubit.cube_oneway(), |()| true)?;
        // Served after everything that was sent before it on the same connection.
        self.cubit
            .cube_void()
            .map_err(|exception| exception.to_string())?;
        samples.elapsed_ns = rtorb_os::clock::monotonic_ns() - begin_ns;
        Ok(())
    }

    /// The three verbs on one kind of sequence.
    fn sequence<T>(
        &self,
        samples: &mut Samples,
        burst: &Burst,
        input: &[T],
        work: impl Fn(&[T]) -> Vec<T>,
        method: Method<impl Fn() -> Result<Vec<T>, SystemException>, impl Fn() -> Call<Vec<T>>>,
    ) -> Result<(), String>
    where
        T: PartialEq,
        [T]: Encode,
        Vec<T>: Decode,
    {
        let expected = work(input);
        match burst.verb {
            Verb::Call => self.time(samples, burst, method, |answer| *answer == expected),
            Verb::Work => samples.time(
                burst,
                || Ok::<_, String>(work(std::hint::black_box(input))),
                |answer| *answer == expected,
            ),
            Verb::Marshal => {
                let mut buffer = Vec::new();
                let round_trip = || write_and_read(input, &mut buffer);
                samples.time(burst, round_trip, |answer: &Vec<T>| answer == input)
            }
        }
    }

    /// Times calls of a method: one after another, or in flight.
    fn time<T>(
        &self,
        samples: &mut Samples,
        burst: &Burst,
        method: Method<impl Fn() -> Result<T, SystemException>, impl Fn() -> Call<T>>,
        is_right: impl Fn(&T) -> bool,
    ) -> Result<(), String> {
        match self.in_flight {
            None => samples.time(burst, method.call, is_right),
            Some(calls) => samples.time_in_flight(burst, calls, method.start, Call::wait, is_right),
        }
    }
}

/// Writes a sequence as an argument is written and reads it back; the buffer is kept from call to call.
///
/// What the writer lends instead of copying is handed to the kernel as it lies; here it is gathered, as the kernel does.
fn write_and_read<T>(input: &[T], buffer: &mut Vec<u8>) -> Result<Vec<T>, String>
where
    [T]: Encode,
    Vec<T>: Decode,
{
    let mut writer = Writer::new(std::mem::take(buffer), MARSHAL_BYTES_MAX);
    input
        .encode(&mut writer)
        .map_err(|error| error.to_string())?;
    let order = writer.order();
    let (octets, written, segments) = writer.finish();
    let gathered: Vec<u8>;
    let stream = if segments.is_empty() {
        &octets[..written]
    } else {
        let lent: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
        let mut all = Vec::with_capacity(written + lent);
        let mut from = 0;
        for segment in &segments {
            all.extend_from_slice(&octets[from..segment.after]);
            all.extend_from_slice(segment.bytes);
            from = segment.after;
        }
        all.extend_from_slice(&octets[from..written]);
        gathered = all;
        &gathered
    };
    let back =
        Decode::decode(&mut Reader::new(stream, order)).map_err(|error| error.to_string())?;
    *buffer = octets;
    Ok(back)
}

/// Takes processor time: the time in which the thread is preempted does not count.
fn work(ns: u64) {
    if ns > 0 {
        let end_ns = thread_cpu_ns() + ns;
        while thread_cpu_ns() < end_ns {}
    }
}

fn some_many(index: usize) -> Many {
    Many {
        o: index as u8,
        l: (index * 7 + 3) as i32,
        s: (index + 5) as i16,
    }
}

fn cube_octet(o: u8) -> u8 {
    o.wrapping_mul(o).wrapping_mul(o)
}

fn cube_short(s: i16) -> i16 {
    s.wrapping_mul(s).wrapping_mul(s)
}

fn cube_long(l: i32) -> i32 {
    l.wrapping_mul(l).wrapping_mul(l)
}

fn cube_many(many: &Many) -> Many {
    Many {
        o: cube_octet(many.o),
        l: cube_long(many.l),
        s: cube_short(many.s),
    }
}

fn cube_longs(input: &[i32]) -> Vec<i32> {
    input.iter().map(|l| cube_long(*l)).collect()
}

fn cube_octets(input: &[u8]) -> Vec<u8> {
    input.iter().map(|o| cube_octet(*o)).collect()
}

fn cube_manies(input: &[Many]) -> Vec<Many> {
    input.iter().map(cube_many).collect()
}

const MARSHAL_BYTES_MAX: usize = 16 << 20;
