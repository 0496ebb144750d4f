// Receives what rtec_supplier pushes from a RtecEventChannelAdmin::EventChannel, and checks that all of it comes, in order.
//
// rtec_consumer REF COUNT --ready FILE [--type N] [--source N] [--interval MS] [--conjunction] [ORB options]
// With --conjunction it wants an event of the type and one of the type after it, together.
#include <condition_variable>
#include <mutex>

#include "rtec_event.hh"
#include "peer.h"

namespace {

const CORBA::Long INTERVAL_TIMEOUT = 5;
const CORBA::Long CONJUNCTION = 8;
const CORBA::Long DISJUNCTION = 9;

class Consumer : public POA_RtecEventComm::PushConsumer {
 public:
  explicit Consumer(bool together) : together_(together) {}
  void push(const RtecEventComm::EventSet& events) {
    std::lock_guard<std::mutex> lock(mutex);
    if (together_ && events.length() != 2) ++wrong;
    for (CORBA::ULong i = 0; i < events.length(); ++i) take(events[i]);
    changed.notify_all();
  }
  void disconnect_push_consumer() {
    std::lock_guard<std::mutex> lock(mutex);
    disconnected = true;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  int came = 0;
  int timeouts = 0;
  int wrong = 0;
  bool disconnected = false;

 private:
  void take(const RtecEventComm::Event& event) {
    if (event.header.type == INTERVAL_TIMEOUT) {
      ++timeouts;
      return;
    }
    if (!together_) {
      std::ostringstream expected;
      expected << "event " << came;
      const RtecEventComm::EventPayload& payload = event.data.payload;
      const std::string text(reinterpret_cast<const char*>(payload.get_buffer()), payload.length());
      const char* inside = 0;
      const bool has_text = came % 2 ? (event.data.any_value >>= inside) && text == inside : true;
      if (text != expected.str() || !has_text || event.header.creation_time != 12345) ++wrong;
    }
    ++came;
  }
  bool together_;
};

RtecEventChannelAdmin::Dependency entry(CORBA::Long type, CORBA::Long source, CORBA::ULongLong period) {
  RtecEventChannelAdmin::Dependency dependency;
  dependency.event.header.type = type;
  dependency.event.header.source = source;
  dependency.event.header.ttl = 0;
  dependency.event.header.creation_time = period;
  dependency.event.header.ec_recv_time = 0;
  dependency.event.header.ec_send_time = 0;
  dependency.event.data.pad1 = 0;
  dependency.rt_info = 0;
  return dependency;
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 3) return 2;
  const int count = std::atoi(argv[2]);
  const CORBA::Long type = std::atoi(peer::option(argc, argv, "--type", "20").c_str());
  const CORBA::Long source = std::atoi(peer::option(argc, argv, "--source", "7").c_str());
  const int interval_ms = std::atoi(peer::option(argc, argv, "--interval", "0").c_str());
  const bool together = peer::flag(argc, argv, "--conjunction");
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  RtecEventChannelAdmin::EventChannel_var channel = RtecEventChannelAdmin::EventChannel::_narrow(object);
  RtecEventChannelAdmin::ConsumerAdmin_var admin = channel->for_consumers();
  RtecEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_push_supplier();
  Consumer* servant = new Consumer(together);
  CORBA::Object_var own = peer::activate(orb, servant, "consumer");
  RtecEventComm::PushConsumer_var consumer = RtecEventComm::PushConsumer::_narrow(own);
  RtecEventChannelAdmin::ConsumerQOS qos;
  qos.is_gateway = false;
  CORBA::ULong length = 0;
  auto add = [&](const RtecEventChannelAdmin::Dependency& dependency) {
    qos.dependencies.length(length + 1);
    qos.dependencies[length++] = dependency;
  };
  if (interval_ms) add(entry(INTERVAL_TIMEOUT, 0, interval_ms * 10000ULL));
  add(entry(together ? CONJUNCTION : DISJUNCTION, together ? 2 : 1, 0));
  add(entry(type, source, 0));
  if (together) add(entry(type + 1, source, 0));
  proxy->connect_push_consumer(consumer, qos);
  peer::publish(orb, own, peer::option(argc, argv, "--ready", "consumer.ready"));
  {
    std::unique_lock<std::mutex> lock(servant->mutex);
    const bool all = servant->changed.wait_for(lock, std::chrono::seconds(30), [&] {
      return servant->came >= count && (!interval_ms || servant->timeouts >= 3);
    });
    peer::check(all, "all events and timeouts came");
    peer::check(servant->came == count, "no event came that was not pushed");
    peer::check(servant->wrong == 0, "each event is what was pushed, in order");
  }
  proxy->suspend_connection();
  proxy->resume_connection();
  peer::check(true, "suspended and resumed");
  proxy->disconnect_push_supplier();
  peer::check(true, "disconnected");
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
