// The omniORB contestant: Cubit's servant, and a client that answers bursts (`Burst` in ../../burst.rs, and ../../../processes/questions.rs for
// their form).
//
//   cubit server [-ORBoption value ...]          prints "ready IOR", serves until shutdown() or the end of input
//   cubit client IOR [-ORBoption value ...]      reads bursts from standard input
//
// Everything that is timed is prepared outside the timed part, and answers are checked after the clock was read: as in
// the Rust client.

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cubit.hh"

namespace {

template <typename T>
T cube(T value) {
  const uint32_t wide = static_cast<uint32_t>(value);
  return static_cast<T>(wide * wide * wide);
}

Many cube_many(const Many& in) {
  Many out;
  out.o = cube(in.o);
  out.l = cube(in.l);
  out.s = cube(in.s);
  return out;
}

long_seq* cube_longs(const long_seq& in) {
  long_seq* out = new long_seq(in.length());
  out->length(in.length());
  const CORBA::Long* from = in.get_buffer();
  CORBA::Long* to = out->get_buffer();
  for (CORBA::ULong i = 0; i < in.length(); ++i) to[i] = cube(from[i]);
  return out;
}

octet_seq* cube_octets(const octet_seq& in) {
  octet_seq* out = new octet_seq(in.length());
  out->length(in.length());
  const CORBA::Octet* from = in.get_buffer();
  CORBA::Octet* to = out->get_buffer();
  for (CORBA::ULong i = 0; i < in.length(); ++i) to[i] = cube(from[i]);
  return out;
}

many_seq* cube_manies(const many_seq& in) {
  many_seq* out = new many_seq(in.length());
  out->length(in.length());
  const Many* from = in.get_buffer();
  Many* to = out->get_buffer();
  for (CORBA::ULong i = 0; i < in.length(); ++i) to[i] = cube_many(from[i]);
  return out;
}

bool equal(const Many& a, const Many& b) { return a.o == b.o && a.l == b.l && a.s == b.s; }

CORBA::ORB_var orb;

class Servant : public virtual POA_Cubit {
 public:
  void cube_oneway() override {}
  void cube_void() override {}
  CORBA::Octet cube_octet(CORBA::Octet o) override { return cube(o); }
  CORBA::Short cube_short(CORBA::Short s) override { return cube(s); }
  CORBA::Long cube_long(CORBA::Long l) override { return cube(l); }
  Many cube_struct(const Many& values) override { return cube_many(values); }

  oneof cube_union(const oneof& values) override {
    oneof out;
    switch (values._d()) {
      case e_0th: out.o(cube(values.o())); break;
      case e_1st: out.s(cube(values.s())); break;
      case e_2nd: out.l(cube(values.l())); break;
      case e_3rd: out.cm(cube_many(values.cm())); break;
    }
    return out;
  }

  CORBA::Any* cube_any(const CORBA::Any& values) override {
    CORBA::Any* out = new CORBA::Any(values);
    CORBA::Long l;
    if (values >>= l) *out <<= cube(l);
    return out;
  }

  void cube_long_sequence(const long_seq& in, long_seq_out out) override { out = cube_longs(in); }
  void cube_octet_sequence(const octet_seq& in, octet_seq_out out) override { out = cube_octets(in); }
  void cube_many_sequence(const many_seq& in, many_seq_out out) override { out = cube_manies(in); }
  void shutdown() override { orb->shutdown(false); }
};

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// The form of `Burst` in ../../burst.rs.
const char BURST[] =
    R"({"verb":"%15[a-z]","operation":"%15[a-z]","len":%zu,"warm_up":%zu,"count":%zu,"budget_ns":%lu,)"
    R"("request_bytes":%lu,"reply_bytes":%lu,"period_ns":%lu})";

struct Burst {
  std::string verb, operation;
  size_t len = 0, warm_up = 0, count = 0;
  unsigned long budget_ns = 0, request_bytes = 0, reply_bytes = 0, period_ns = 0;
};

Burst read_burst(const std::string& line) {
  Burst burst;
  char verb[16], operation[16];
  if (std::sscanf(line.c_str(), BURST, verb, operation, &burst.len, &burst.warm_up, &burst.count, &burst.budget_ns,
                  &burst.request_bytes, &burst.reply_bytes, &burst.period_ns) != 9) {
    throw std::runtime_error("not a burst: " + line);
  }
  burst.verb = verb;
  burst.operation = operation;
  return burst;
}

struct Samples {
  std::vector<uint64_t> times_ns;
  uint64_t wrong = 0, elapsed_ns = 0;
};

// Times call() as often as the burst says; is_right() looks at what it left behind.
template <typename Call, typename IsRight>
Samples timed(const Burst& burst, Call call, IsRight is_right) {
  Samples samples;
  samples.times_ns.reserve(burst.count);
  for (size_t i = 0; i < burst.warm_up; ++i) call();
  const uint64_t begin_ns = now_ns();
  for (size_t i = 0; i < burst.count; ++i) {
    const uint64_t before_ns = now_ns();
    call();
    const uint64_t after_ns = now_ns();
    if (!is_right()) ++samples.wrong;
    samples.times_ns.push_back(after_ns - before_ns);
    if (after_ns - begin_ns > burst.budget_ns) break;
  }
  samples.elapsed_ns = now_ns() - begin_ns;
  return samples;
}

Many some_many(size_t index) {
  Many many;
  many.o = static_cast<CORBA::Octet>(index);
  many.l = static_cast<CORBA::Long>(index * 7 + 3);
  many.s = static_cast<CORBA::Short>(index + 5);
  return many;
}

template <typename Sequence, typename Make>
Sequence filled(size_t length, Make make) {
  Sequence sequence;
  sequence.length(static_cast<CORBA::ULong>(length));
  for (CORBA::ULong i = 0; i < length; ++i) sequence[i] = make(i);
  return sequence;
}

template <typename Sequence>
bool same_octets(const Sequence& a, const Sequence& b) {
  if (a.length() != b.length()) return false;
  return a.length() == 0 || memcmp(a.get_buffer(), b.get_buffer(), a.length() * sizeof(a[0])) == 0;
}

bool same_manies(const many_seq& a, const many_seq& b) {
  if (a.length() != b.length()) return false;
  for (CORBA::ULong i = 0; i < a.length(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

// The three verbs on one kind of sequence: the call, the servant's work alone, writing and reading alone.
template <typename Sequence, typename Var, typename Call, typename Work, typename Same>
Samples sequence_burst(const Burst& burst, const Sequence& in, Call call, Work work, Same same) {
  const Var expected = work(in);
  Var out;
  auto is_right = [&] { return same(expected.in(), out.in()); };
  if (burst.verb == "work") return timed(burst, [&] { out = work(in); }, is_right);
  if (burst.verb == "call") return timed(burst, [&] { call(in, out); }, is_right);
  cdrMemoryStream stream;
  return timed(
      burst,
      [&] {
        stream.rewindPtrs();
        in >>= stream;
        stream.rewindInputPtr();
        Sequence* back = new Sequence;
        *back <<= stream;
        out = back;
      },
      [&] { return same(in, out.in()); });
}

Samples simple_burst(const Burst& burst, Cubit_ptr cubit) {
  const std::string& operation = burst.operation;
  auto fine = [] { return true; };
  if (operation == "void") return timed(burst, [&] { cubit->cube_void(); }, fine);
  if (operation == "octet") {
    CORBA::Octet out = 0;
    return timed(burst, [&] { out = cubit->cube_octet(7); }, [&] { return out == cube<CORBA::Octet>(7); });
  }
  if (operation == "short") {
    CORBA::Short out = 0;
    return timed(burst, [&] { out = cubit->cube_short(-117); }, [&] { return out == cube<CORBA::Short>(-117); });
  }
  if (operation == "long") {
    CORBA::Long out = 0;
    return timed(burst, [&] { out = cubit->cube_long(-117); }, [&] { return out == cube<CORBA::Long>(-117); });
  }
  const Many in = some_many(4), expected = cube_many(in);
  Many out;
  if (operation == "struct") {
    return timed(burst, [&] { out = cubit->cube_struct(in); }, [&] { return equal(out, expected); });
  }
  if (operation == "union") {
    oneof values, answer;
    values.cm(in);
    return timed(burst, [&] { answer = cubit->cube_union(values); },
                 [&] { return answer._d() == e_3rd && equal(answer.cm(), expected); });
  }
  if (operation == "any") {
    CORBA::Any values;
    values <<= static_cast<CORBA::Long>(-117);
    CORBA::Any_var answer;
    CORBA::Long l = 0;
    return timed(burst, [&] { answer = cubit->cube_any(values); },
                 [&] { return (answer.in() >>= l) && l == cube<CORBA::Long>(-117); });
  }
  throw std::runtime_error("no such operation: " + operation);
}

Samples run(const Burst& burst, Cubit_ptr cubit) {
  if (burst.operation == "longseq") {
    const long_seq in = filled<long_seq>(burst.len, [](size_t i) { return static_cast<CORBA::Long>(i * 7 + 3); });
    return sequence_burst<long_seq, long_seq_var>(
        burst, in, [&](const long_seq& values, long_seq_var& out) { cubit->cube_long_sequence(values, out.out()); },
        cube_longs, same_octets<long_seq>);
  }
  if (burst.operation == "octetseq") {
    const octet_seq in = filled<octet_seq>(burst.len, [](size_t i) { return static_cast<CORBA::Octet>(i * 7 + 3); });
    return sequence_burst<octet_seq, octet_seq_var>(
        burst, in, [&](const octet_seq& values, octet_seq_var& out) { cubit->cube_octet_sequence(values, out.out()); },
        cube_octets, same_octets<octet_seq>);
  }
  if (burst.operation == "manyseq") {
    const many_seq in = filled<many_seq>(burst.len, some_many);
    return sequence_burst<many_seq, many_seq_var>(
        burst, in, [&](const many_seq& values, many_seq_var& out) { cubit->cube_many_sequence(values, out.out()); },
        cube_manies, same_manies);
  }
  if (burst.verb != "call") throw std::runtime_error("only sequences have work and marshalling of their own");
  if (burst.operation == "oneway") {
    const uint64_t begin_ns = now_ns();
    Samples samples = timed(burst, [&] { cubit->cube_oneway(); }, [] { return true; });
    cubit->cube_void();  // Served after all that were sent before it.
    samples.elapsed_ns = now_ns() - begin_ns;
    return samples;
  }
  return simple_burst(burst, cubit);
}

int client(const char* reference) {
  CORBA::Object_var object = orb->string_to_object(reference);
  Cubit_var cubit = Cubit::_narrow(object);
  if (CORBA::is_nil(cubit)) {
    std::cout << "error not a Cubit" << std::endl;
    return 1;
  }
  cubit->cube_void();
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const Burst burst = read_burst(line);
      if (burst.period_ns > 0) throw std::runtime_error("omniORB's calls at a rate are those of rates.cc: " + line);
      const Samples samples = run(burst, cubit);
      std::cout << R"({"series":[)" << samples.times_ns.size() << R"(],"value":{"wrong":)" << samples.wrong
                << R"(,"elapsed_ns":)" << samples.elapsed_ns << "}}\n";
      std::cout.write(reinterpret_cast<const char*>(samples.times_ns.data()),
                      static_cast<std::streamsize>(samples.times_ns.size() * sizeof(uint64_t)));
    } catch (const CORBA::Exception& exception) {
      std::cout << "error omniORB: " << exception._name() << '\n';
    } catch (const std::exception& exception) {
      std::cout << "error " << exception.what() << '\n';
    }
    std::cout.flush();
  }
  return 0;
}

// Ends the server when the laboratory closes our input or is no more.
class EndOfInput : public omni_thread {
 public:
  EndOfInput() { start(); }

 private:
  void run(void*) override {
    char octet;
    while (read(STDIN_FILENO, &octet, 1) > 0) {
    }
    orb->shutdown(false);
  }
};

int server() {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::Servant_var<Servant> servant = new Servant;
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  CORBA::Object_var reference = poa->id_to_reference(id);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  CORBA::String_var text = orb->object_to_string(reference);
  std::cout << "ready " << text.in() << std::endl;
  new EndOfInput;  // Frees itself when it ends.
  orb->run();
  orb->destroy();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    orb = CORBA::ORB_init(argc, argv);
    if (argc == 2 && strcmp(argv[1], "server") == 0) return server();
    if (argc == 3 && strcmp(argv[1], "client") == 0) return client(argv[2]);
    std::cout << "error use: cubit server | cubit client IOR" << std::endl;
  } catch (const CORBA::Exception& exception) {
    std::cout << "error omniORB: " << exception._name() << std::endl;
  }
  return 2;
}
