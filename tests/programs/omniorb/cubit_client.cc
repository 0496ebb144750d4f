// Calls every operation of a Cubit through omniORB and checks every answer.
//
// cubit_client REF [--lengths N,N...] [--any] [--shutdown] [--times N] [ORB options]
// REF is a file or a reference. --lengths are those of the sequences (0,1,4,1021,4096). One line a check; status 1 if
// one is wrong. With --times it prints the median and the 99th percentile of N calls in nanoseconds instead.
#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "cubit.h"
#include "peer.h"

namespace {

template <class Number>
void numbers(const char* name, Cubit_ptr cubit, Number (_objref_Cubit::*call)(Number)) {
  const Number least = std::numeric_limits<Number>::min();
  const Number greatest = std::numeric_limits<Number>::max();
  const Number values[] = {0, 1, 2, 7, 100, least, greatest, static_cast<Number>(greatest - 1), static_cast<Number>(-3)};
  for (Number value : values) {
    std::ostringstream what;
    what << name << "(" << +value << ")";
    peer::check_equal<Number>(what.str(), (cubit->*call)(value), peer::cube(value));
  }
}

Many many(CORBA::Octet o, CORBA::Long l, CORBA::Short s) {
  Many m;
  m.o = o;
  m.l = l;
  m.s = s;
  return m;
}

void structs(Cubit_ptr cubit) {
  const Many values[] = {many(4, 5, 6), many(255, std::numeric_limits<CORBA::Long>::min(), -1),
                         many(0, 0, std::numeric_limits<CORBA::Short>::min())};
  for (const Many& value : values)
    peer::check(peer::same(cubit->cube_struct(value), peer::cube(value)), "cube_struct");
}

void unions(Cubit_ptr cubit) {
  oneof value, answer;
  value.o(9);
  answer = cubit->cube_union(value);
  peer::check(answer._d() == e_0th && answer.o() == peer::cube(CORBA::Octet(9)), "cube_union of an octet");
  value.s(-9);
  answer = cubit->cube_union(value);
  peer::check(answer._d() == e_1st && answer.s() == -729, "cube_union of a short");
  value.l(3);
  answer = cubit->cube_union(value);
  peer::check(answer._d() == e_2nd && answer.l() == 27, "cube_union of a long");
  value.cm(many(7, 5, 3));
  answer = cubit->cube_union(value);
  peer::check(answer._d() == e_3rd && peer::same(answer.cm(), peer::cube(value.cm())), "cube_union of a struct");
}

void anys(Cubit_ptr cubit) {
  CORBA::Any value;
  CORBA::Long l = 0;
  const Many* m = 0;
  value <<= CORBA::Long(-11);
  CORBA::Any_var answer = cubit->cube_any(value);
  peer::check((answer.in() >>= l) && l == -1331, "cube_any of a long");
  value <<= many(7, 5, 3);
  answer = cubit->cube_any(value);
  peer::check((answer.in() >>= m) && peer::same(*m, peer::cube(many(7, 5, 3))), "cube_any of a struct");
}

bool same(const Many& a, const Many& b) { return peer::same(a, b); }
bool same(CORBA::Long a, CORBA::Long b) { return a == b; }
bool same(CORBA::Octet a, CORBA::Octet b) { return a == b; }

// Whether the answer is the input cubed, element by element.
template <class Sequence>
void compare(const char* name, const Sequence& input, const Sequence& output) {
  bool right = output.length() == input.length();
  for (CORBA::ULong i = 0; right && i < input.length(); ++i) right = same(output[i], peer::cube(input[i]));
  std::ostringstream what;
  what << name << " of " << input.length();
  peer::check(right, what.str());
}

void sequences(Cubit_ptr cubit, CORBA::ULong length) {
  long_seq longs(length);
  octet_seq octets(length);
  many_seq manys(length);
  longs.length(length);
  octets.length(length);
  manys.length(length);
  for (CORBA::ULong i = 0; i < length; ++i) {
    CORBA::ULong mixed = i * 2654435761u;
    longs[i] = static_cast<CORBA::Long>(mixed);
    octets[i] = static_cast<CORBA::Octet>(mixed >> 24);
    manys[i] = many(CORBA::Octet(i), static_cast<CORBA::Long>(mixed), static_cast<CORBA::Short>(mixed >> 16));
  }
  long_seq_var longs_out;
  octet_seq_var octets_out;
  many_seq_var manys_out;
  cubit->cube_long_sequence(longs, longs_out.out());
  compare("cube_long_sequence", longs, longs_out.in());
  cubit->cube_octet_sequence(octets, octets_out.out());
  compare("cube_octet_sequence", octets, octets_out.in());
  cubit->cube_many_sequence(manys, manys_out.out());
  compare("cube_many_sequence", manys, manys_out.in());
}

// Prints the median and the 99th percentile of the times of so many calls, in nanoseconds.
void times(Cubit_ptr cubit, long calls) {
  std::vector<long> all;
  all.reserve(calls);
  for (long number = -calls / 10; number < calls; ++number) {
    const auto begun = std::chrono::steady_clock::now();
    if (cubit->cube_long(3) != 27) std::abort();
    const std::chrono::nanoseconds lasted = std::chrono::steady_clock::now() - begun;
    if (number >= 0) all.push_back(lasted.count());
  }
  std::sort(all.begin(), all.end());
  std::cout << all[calls / 2] << " " << all[calls * 99 / 100] << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 2) {
    std::cerr << "usage: cubit_client REF [--lengths N,N...] [--any] [--shutdown] [--times N] [ORB options]" << std::endl;
    return 2;
  }
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  Cubit_var cubit = Cubit::_narrow(object);
  peer::check(!CORBA::is_nil(cubit), "narrow to Cubit");
  if (CORBA::is_nil(cubit)) return 1;
  const long calls = std::stol(peer::option(argc, argv, "--times", "0"));
  if (calls > 0) {
    times(cubit, calls);
    orb->destroy();
    return 0;
  }
  peer::check(!cubit->_non_existent(), "_non_existent is false");
  cubit->cube_void();
  peer::check(true, "cube_void");
  cubit->cube_oneway();
  peer::check(true, "cube_oneway");
  numbers<CORBA::Octet>("cube_octet", cubit, &_objref_Cubit::cube_octet);
  numbers<CORBA::Short>("cube_short", cubit, &_objref_Cubit::cube_short);
  numbers<CORBA::Long>("cube_long", cubit, &_objref_Cubit::cube_long);
  structs(cubit);
  unions(cubit);
  if (peer::flag(argc, argv, "--any")) anys(cubit);
  std::istringstream lengths(peer::option(argc, argv, "--lengths", "0,1,4,1021,4096"));
  for (std::string length; std::getline(lengths, length, ',');) sequences(cubit, std::strtoul(length.c_str(), 0, 10));
  if (peer::flag(argc, argv, "--shutdown")) {
    cubit->shutdown();
    peer::check(true, "shutdown");
  }
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
