// omniORB's counted clients: the same as those of ../../whitebox/clients.rs, in their protocol.
//
//   whitebox IOR LOW-PRIORITY HIGH-PRIORITY LOW-CLIENTS [-ORBoption value ...]
//
// Threads are told by pipes, and nothing here locks or allocates between a question and its answer: all that is counted
// then is omniORB's.

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cubit.hh"

namespace {

// `Run` in ../../whitebox.rs.
const char RUN[] = R"({"low_clients":%u,"count":%u,"high_period_ns":%u,"low_period_ns":%u})";

struct Turn {
  uint32_t count;
  uint32_t period_ns;
};

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void sleep_until(uint64_t ns) {
  const timespec until = {static_cast<time_t>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

void client(Cubit_var cubit, int priority, int turns, int finished) {
  if (priority > 0) {
    const sched_param parameters = {priority};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
  }
  Turn turn;
  while (read(turns, &turn, sizeof turn) == sizeof turn) {
    uint32_t wrong = 0;
    uint64_t next_ns = now_ns();
    for (uint32_t call = 0; call < turn.count; ++call) {
      if (turn.period_ns > 0) sleep_until(next_ns += turn.period_ns);
      try {
        wrong += cubit->cube_octet(7) != 7 * 7 * 7 % 256;
      } catch (const CORBA::Exception&) {
        ++wrong;
      }
    }
    if (write(finished, &wrong, sizeof wrong) != sizeof wrong) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc != 5) {
    std::puts("error use: whitebox IOR LOW-PRIORITY HIGH-PRIORITY LOW-CLIENTS");
    return 2;
  }
  CORBA::Object_var object = orb->string_to_object(argv[1]);
  const int low = std::atoi(argv[2]), high = std::atoi(argv[3]), lows = std::atoi(argv[4]);
  int finished[2];
  if (pipe(finished) != 0) return 1;
  std::vector<int> turns;
  for (int index = 0; index <= lows; ++index) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    turns.push_back(ends[1]);
    std::thread(client, Cubit::_narrow(object), index == 0 ? high : low, ends[0], finished[1]).detach();
  }
  std::puts("ready");
  std::fflush(stdout);
  char line[256];
  while (std::fgets(line, sizeof line, stdin)) {
    unsigned low_clients, count, high_period_ns, low_period_ns;
    if (std::sscanf(line, RUN, &low_clients, &count, &high_period_ns, &low_period_ns) != 4) {
      std::puts("error not understood");
      std::fflush(stdout);
      continue;
    }
    const int clients = static_cast<int>(low_clients) < lows ? static_cast<int>(low_clients) + 1 : lows + 1;
    for (int index = clients - 1; index >= 0; --index) {
      const Turn turn = {count, index == 0 ? high_period_ns : low_period_ns};
      if (write(turns[static_cast<size_t>(index)], &turn, sizeof turn) != sizeof turn) return 1;
    }
    uint64_t all_wrong = 0;
    for (int index = 0; index < clients; ++index) {
      uint32_t wrong;
      if (read(finished[0], &wrong, sizeof wrong) != sizeof wrong) return 1;
      all_wrong += wrong;
    }
    std::printf("{\"series\":[],\"value\":%llu}\n", static_cast<unsigned long long>(all_wrong));
    std::fflush(stdout);
  }
  std::_Exit(0);
}
