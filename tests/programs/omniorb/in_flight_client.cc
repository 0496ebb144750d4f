// Calls a second of 100 threads of omniORB over one UNIX socket, with a server in a process of its own.
//
// in_flight_client [--calls N]
// The threads share one connection: each call is sent beside those that wait for replies. Both processes run where this one may.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cubit.h"
#include "peer.h"

namespace {

const int threads = 100;

class Servant : public POA_Cubit {
 public:
  void cube_oneway() {}
  void cube_void() {}
  CORBA::Octet cube_octet(CORBA::Octet o) { return peer::cube(o); }
  CORBA::Short cube_short(CORBA::Short s) { return peer::cube(s); }
  CORBA::Long cube_long(CORBA::Long l) { return peer::cube(l); }
  Many cube_struct(const Many& values) { return peer::cube(values); }
  oneof cube_union(const oneof& values) { return values; }
  CORBA::Any* cube_any(const CORBA::Any& values) { return new CORBA::Any(values); }
  void cube_long_sequence(const long_seq& input, long_seq_out output) { output = new long_seq(input); }
  void cube_octet_sequence(const octet_seq& input, octet_seq_out output) { output = new octet_seq(input); }
  void cube_many_sequence(const many_seq& input, many_seq_out output) { output = new many_seq(input); }
  void shutdown() {}
};

CORBA::ORB_ptr orb_with(std::vector<const char*> options) {
  int count = static_cast<int>(options.size());
  return CORBA::ORB_init(count, const_cast<char**>(options.data()));
}

// Serves until it is killed. Writes its reference, and a zero, to `to`.
void serve(const std::string& socket, int to) {
  const std::string endpoint = "giop:unix:" + socket;
  CORBA::ORB_var orb = orb_with({"server", "-ORBendPoint", endpoint.c_str()});
  CORBA::Object_var object = peer::activate(orb, new Servant, "cubit");
  CORBA::String_var reference = orb->object_to_string(object);
  const std::string text(reference.in());
  if (write(to, text.c_str(), text.size() + 1) < 0) return;
  orb->run();
}

std::string read_reference(int from) {
  std::string text;
  char next;
  while (read(from, &next, 1) == 1 && next != 0) text += next;
  return text;
}

double call(Cubit_ptr cubit, long calls) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&] {
      for (long left = calls / threads; left > 0; --left)
        if (cubit->cube_long(3) != 27) std::abort();
    });
  for (std::thread& one : all) one.join();
  const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begun;
  return calls / threads * threads / lasted.count();
}

}  // namespace

int main(int argc, char** argv) try {
  const long calls = std::stol(peer::option(argc, argv, "--calls", "200000"));
  const std::string socket = "/tmp/rtorb-omniorb-" + std::to_string(getpid());
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t server = fork();
  if (server < 0) return 1;
  if (server == 0) {
    // However the client ends.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(socket, ends[1]);
    return 0;
  }
  close(ends[1]);
  CORBA::ORB_var orb = orb_with({"client", "-ORBoneCallPerConnection", "0", "-ORBmaxGIOPConnectionPerServer", "1"});
  CORBA::Object_var object = orb->string_to_object(read_reference(ends[0]).c_str());
  Cubit_var cubit = Cubit::_narrow(object);
  call(cubit, calls / 10);
  std::cout << static_cast<long>(call(cubit, calls)) << std::endl;
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  unlink(socket.c_str());
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& exception) {
  std::cerr << exception._name() << std::endl;
  return 1;
}
