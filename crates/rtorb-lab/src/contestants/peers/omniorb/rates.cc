// omniORB's clients that call at a rate, and their server (the questions are those of ../../rates.rs, the form is that of
// ../../../processes/questions.rs).
//
//   rates server OBJECT... [-ORBoption value ...]      OBJECT is PRIORITY, or PRIORITYw for one that works; prints "ready IOR..."
//   rates clients IOR... [-ORBoption value ...]        answers questions on standard input
//
// omniORB knows no priorities: the server's threads all run as the process was started; the clients' threads have theirs.

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cubit.hh"

namespace {

CORBA::ORB_var orb;

uint64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

void sleep_until(uint64_t at_ns) {
  timespec time;
  time.tv_sec = static_cast<time_t>(at_ns / 1000000000u);
  time.tv_nsec = static_cast<long>(at_ns % 1000000000u);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

// ---- server

std::atomic<uint64_t> work_ns{0};

class Servant : public virtual POA_Cubit {
 public:
  explicit Servant(bool works) : works_(works) {}

  CORBA::Octet cube_octet(CORBA::Octet o) override {
    const uint64_t work = works_ ? work_ns.load(std::memory_order_relaxed) : 0;
    if (work > 0) {
      const uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + work;
      while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
      }
    }
    return static_cast<CORBA::Octet>(static_cast<uint32_t>(o) * o * o);
  }

  // Nothing else is called here.
  void cube_oneway() override {}
  void cube_void() override {}
  CORBA::Short cube_short(CORBA::Short) override { throw CORBA::NO_IMPLEMENT(); }
  CORBA::Long cube_long(CORBA::Long) override { throw CORBA::NO_IMPLEMENT(); }
  Many cube_struct(const Many&) override { throw CORBA::NO_IMPLEMENT(); }
  oneof cube_union(const oneof&) override { throw CORBA::NO_IMPLEMENT(); }
  CORBA::Any* cube_any(const CORBA::Any&) override { throw CORBA::NO_IMPLEMENT(); }
  void cube_long_sequence(const long_seq&, long_seq_out) override { throw CORBA::NO_IMPLEMENT(); }
  void cube_octet_sequence(const octet_seq&, octet_seq_out) override { throw CORBA::NO_IMPLEMENT(); }
  void cube_many_sequence(const many_seq&, many_seq_out) override { throw CORBA::NO_IMPLEMENT(); }
  void shutdown() override { orb->shutdown(false); }

 private:
  const bool works_;
};

void answer(uint64_t value) { std::cout << R"({"series":[],"value":)" << value << '}' << std::endl; }

void answer_questions() {
  std::string line;
  while (std::getline(std::cin, line)) {
    unsigned long ns = 0;
    if (line == "\"cpu\"") {
      answer(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    } else if (sscanf(line.c_str(), R"({"work":%lu})", &ns) == 1) {
      work_ns = ns;
      answer(0);
    } else {
      std::cout << "error not understood: " << line << std::endl;
    }
  }
  orb->shutdown(false);
}

int server(int objects, char** descriptions) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  std::string references;
  for (int i = 0; i < objects; ++i) {
    const bool works = strchr(descriptions[i], 'w') != nullptr;
    PortableServer::Servant_var<Servant> servant = new Servant(works);
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    CORBA::Object_var reference = poa->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    references += std::string(" ") + text.in();
  }
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  std::cout << "ready" << references << std::endl;
  std::thread questions(answer_questions);
  orb->run();
  questions.detach();
  orb->destroy();
  return 0;
}

// ---- clients

struct Group {
  size_t object = 0;
  int priority = 0;
  size_t clients = 0;
  uint64_t period_ns = 0;
  size_t calls = 0;
  bool each = false;
};

struct Times {
  std::vector<uint64_t> sent_ns, release_ns;
  uint64_t wrong = 0, missed = 0;
  std::string error;
};

// Where the threads of a run meet their starter.
struct Barrier {
  std::mutex mutex;
  std::condition_variable changed;
  size_t ready = 0;
  bool open = false, given_up = false;
  uint64_t begin_ns = 0;
};

struct Client {
  Cubit_var cubit;
  Group group;
  size_t group_index = 0;
  uint64_t phase_ns = 0, duration_ns = 0;
  Barrier* barrier = nullptr;
  Times times;
  pthread_t thread{};

  void run() {
    try {
      for (int i = 0; i < 3; ++i) cubit->cube_octet(7);
    } catch (const CORBA::Exception& exception) {
      times.error = std::string("warm-up: omniORB: ") + exception._name();
    }
    const size_t releases = static_cast<size_t>(duration_ns / group.period_ns + 1);
    times.release_ns.reserve(releases);
    times.sent_ns.reserve(releases * group.calls);
    {
      std::unique_lock<std::mutex> lock(barrier->mutex);
      ++barrier->ready;
      barrier->changed.notify_all();
      barrier->changed.wait(lock, [&] { return barrier->open; });
    }
    if (barrier->given_up || !times.error.empty()) return;
    try {
      call_at_rate();
    } catch (const CORBA::Exception& exception) {
      times.error = std::string("a call: omniORB: ") + exception._name();
    }
  }

  void call_at_rate() {
    const uint64_t end_ns = barrier->begin_ns + duration_ns;
    uint64_t next_ns = barrier->begin_ns + phase_ns;
    while (next_ns < end_ns) {
      if (now_ns() < next_ns) sleep_until(next_ns);
      uint64_t planned_ns = next_ns;
      if (!group.each) {
        const uint64_t now = now_ns();
        if (now > next_ns) next_ns += (now - next_ns) / group.period_ns * group.period_ns;
      }
      const uint64_t scheduled_ns = next_ns;
      next_ns += group.period_ns;
      for (size_t i = 0; i < group.calls; ++i) {
        const uint64_t before_ns = now_ns();
        const CORBA::Octet answer = cubit->cube_octet(7);
        const uint64_t after_ns = now_ns();
        if (answer != static_cast<CORBA::Octet>(343)) ++times.wrong;
        push(times.sent_ns, after_ns - before_ns);
        if (i > 0) continue;
        // A skipped release is as late as the reply to the call that was made for it.
        for (; planned_ns <= scheduled_ns && planned_ns < end_ns; planned_ns += group.period_ns) {
          push(times.release_ns, after_ns - planned_ns);
          if (planned_ns < scheduled_ns) ++times.missed;
        }
      }
    }
  }

  static void push(std::vector<uint64_t>& to, uint64_t ns) {
    to.push_back(ns);
  }
};

void* run_client(void* client) {
  static_cast<Client*>(client)->run();
  return nullptr;
}

// The clients of one run, at the barrier or calling.
struct Prepared {
  Barrier barrier;
  std::vector<std::unique_ptr<Client>> clients;
  size_t groups = 0;

  ~Prepared() {
    give_up();
    join();
  }

  void start(std::unique_ptr<Client> client) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (client->group.priority > 0) {
      sched_param parameters{};
      parameters.sched_priority = client->group.priority;
      pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
      pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
      pthread_attr_setschedparam(&attributes, &parameters);
    }
    const int refused = pthread_create(&client->thread, &attributes, run_client, client.get());
    pthread_attr_destroy(&attributes);
    if (refused) throw std::runtime_error(std::string("a client's thread: ") + strerror(refused));
    clients.push_back(std::move(client));
  }

  void await_ready() {
    {
      std::unique_lock<std::mutex> lock(barrier.mutex);
      barrier.changed.wait(lock, [&] { return barrier.ready == clients.size(); });
    }
    for (const auto& client : clients) {
      if (!client->times.error.empty()) throw std::runtime_error(client->times.error);
    }
  }

  void open(uint64_t begin_ns) {
    std::lock_guard<std::mutex> lock(barrier.mutex);
    barrier.begin_ns = begin_ns;
    barrier.open = true;
    barrier.changed.notify_all();
  }

  void join() {
    if (joined_) return;
    joined_ = true;
    for (const auto& client : clients) pthread_join(client->thread, nullptr);
  }

 private:
  bool joined_ = false;

  void give_up() {
    std::lock_guard<std::mutex> lock(barrier.mutex);
    barrier.given_up = !barrier.open;
    barrier.open = true;
    barrier.changed.notify_all();
  }
};

// The forms of `Question::Prepare` and `Group` in ../../rates.rs.
const char PREPARE[] = R"({"prepare":{"duration_ns":%lu,"round":%lu,"first":"%15[a-z]","groups":[%n)";
const char GROUP[] =
    R"({"object":%lu,"priority":%d,"clients":%lu,"period_ns":%llu,"calls":%lu,"releases":"%7[a-z]"})";

Group read_group(const char* text) {
  Group group;
  char releases[8] = "";
  unsigned long object = 0, clients = 0, calls = 0;
  unsigned long long period_ns = 0;
  if (sscanf(text, GROUP, &object, &group.priority, &clients, &period_ns, &calls, releases) != 6 || period_ns == 0) {
    throw std::runtime_error(std::string("not a group: ") + text);
  }
  group.object = object;
  group.clients = clients;
  group.calls = calls;
  group.period_ns = period_ns;
  group.each = strcmp(releases, "each") == 0;
  return group;
}

std::unique_ptr<Prepared> prepare(const std::string& line, const std::vector<Cubit_var>& objects) {
  unsigned long duration_ns = 0, round = 0;
  char first[16] = "";
  int begin = 0;
  if (sscanf(line.c_str(), PREPARE, &duration_ns, &round, first, &begin) != 3 || begin == 0) {
    throw std::runtime_error("not understood, or not now: " + line);
  }
  const bool spread = strcmp(first, "spread") == 0;
  std::vector<Group> groups;
  size_t clients = 0;
  for (const char* group = line.c_str() + begin; *group == '{';) {
    groups.push_back(read_group(group));
    if (groups.back().object >= objects.size()) throw std::runtime_error("there is no such object: " + line);
    clients += groups.back().clients;
    group += strcspn(group, "}") + 1;
    if (*group == ',') ++group;
  }
  std::unique_ptr<Prepared> prepared(new Prepared);
  prepared->groups = groups.size();
  for (size_t index = 0; index < groups.size(); ++index) {
    for (size_t i = 0; i < groups[index].clients; ++i) {
      std::unique_ptr<Client> client(new Client);
      client->cubit = Cubit::_duplicate(objects[groups[index].object]);
      client->group = groups[index];
      client->group_index = index;
      client->duration_ns = duration_ns;
      client->barrier = &prepared->barrier;
      // As Run::phase_ns: multiples of the golden ratio.
      const double multiple = spread ? static_cast<double>(prepared->clients.size() + round * clients) * 0.618033988749895 : 0.0;
      client->phase_ns = static_cast<uint64_t>((multiple - std::floor(multiple)) * static_cast<double>(groups[index].period_ns));
      prepared->start(std::move(client));
    }
  }
  prepared->await_ready();
  return prepared;
}

void go(Prepared& prepared) {
  const uint64_t cpu_before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t begin_ns = now_ns() + 5000000;
  prepared.open(begin_ns);
  prepared.join();
  const uint64_t elapsed_ns = now_ns() - begin_ns;
  const uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_ns;
  std::vector<Times> groups(prepared.groups);
  for (const auto& client : prepared.clients) {
    const Times& times = client->times;
    if (!times.error.empty()) throw std::runtime_error(times.error);
    Times& all = groups[client->group_index];
    all.sent_ns.insert(all.sent_ns.end(), times.sent_ns.begin(), times.sent_ns.end());
    all.release_ns.insert(all.release_ns.end(), times.release_ns.begin(), times.release_ns.end());
    all.wrong += times.wrong;
    all.missed += times.missed;
  }
  std::string series, counts;
  for (const Times& times : groups) {
    const char* comma = series.empty() ? "" : ",";
    series += comma + std::to_string(times.sent_ns.size()) + ',' + std::to_string(times.release_ns.size());
    counts += comma + (R"({"wrong":)" + std::to_string(times.wrong)) + R"(,"missed":)" + std::to_string(times.missed) + '}';
  }
  std::cout << R"({"series":[)" << series << R"(],"value":{"elapsed_ns":)" << elapsed_ns << R"(,"cpu_ns":)" << cpu_ns
            << R"(,"groups":[)" << counts << "]}}\n";
  for (const Times& times : groups) {
    for (const auto* all : {&times.sent_ns, &times.release_ns}) {
      std::cout.write(reinterpret_cast<const char*>(all->data()), static_cast<std::streamsize>(all->size() * sizeof(uint64_t)));
    }
  }
}

int clients(int count, char** references) {
  std::vector<Cubit_var> objects;
  for (int i = 0; i < count; ++i) {
    CORBA::Object_var object = orb->string_to_object(references[i]);
    objects.push_back(Cubit::_narrow(object));
  }
  std::cout << "ready" << std::endl;
  std::unique_ptr<Prepared> prepared;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      if (line == "\"go\"" && prepared) {
        const std::unique_ptr<Prepared> run = std::move(prepared);
        go(*run);
      } else {
        prepared.reset();
        prepared = prepare(line, objects);
        std::cout << R"({"series":[],"value":null})" << '\n';
      }
    } catch (const CORBA::Exception& exception) {
      std::cout << "error omniORB: " << exception._name() << '\n';
    } catch (const std::exception& exception) {
      std::cout << "error " << exception.what() << '\n';
    }
    std::cout.flush();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    orb = CORBA::ORB_init(argc, argv);
    if (argc > 2 && strcmp(argv[1], "server") == 0) return server(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "clients") == 0) return clients(argc - 2, argv + 2);
    std::cout << "error use: rates server OBJECT... | rates clients IOR..." << std::endl;
  } catch (const CORBA::Exception& exception) {
    std::cout << "error omniORB: " << exception._name() << std::endl;
  }
  return 2;
}
