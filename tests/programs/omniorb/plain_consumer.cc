// Receives what plain_supplier pushes from a CosEventChannelAdmin::EventChannel, and checks that all of it comes, in order.
//
// plain_consumer REF COUNT --ready FILE [ORB options]
#include <condition_variable>
#include <mutex>

#include "cos_event.hh"
#include "peer.h"

namespace {

class Consumer : public POA_CosEventComm::PushConsumer {
 public:
  void push(const CORBA::Any& data) {
    std::lock_guard<std::mutex> lock(mutex);
    CORBA::Long number;
    const char* text;
    std::ostringstream expected;
    expected << "event " << came;
    const bool right = came % 2 ? (data >>= text) && expected.str() == text : (data >>= number) && number == came;
    if (!right) ++wrong;
    ++came;
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
  int wrong = 0;
  bool disconnected = false;
};

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 3) return 2;
  const int count = std::atoi(argv[2]);
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  CosEventChannelAdmin::EventChannel_var channel = CosEventChannelAdmin::EventChannel::_narrow(object);
  CosEventChannelAdmin::ConsumerAdmin_var admin = channel->for_consumers();
  CosEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_push_supplier();
  Consumer* servant = new Consumer;
  CORBA::Object_var own = peer::activate(orb, servant, "consumer");
  CosEventComm::PushConsumer_var consumer = CosEventComm::PushConsumer::_narrow(own);
  try {
    proxy->connect_push_consumer(CosEventComm::PushConsumer::_nil());
    peer::check(false, "a nil consumer is BAD_PARAM");
  } catch (const CORBA::BAD_PARAM&) {
    peer::check(true, "a nil consumer is BAD_PARAM");
  }
  proxy->connect_push_consumer(consumer);
  try {
    proxy->connect_push_consumer(consumer);
    peer::check(false, "connecting twice is AlreadyConnected");
  } catch (const CosEventChannelAdmin::AlreadyConnected&) {
    peer::check(true, "connecting twice is AlreadyConnected");
  }
  try {
    CosEventChannelAdmin::ProxyPullSupplier_var pull = admin->obtain_pull_supplier();
    peer::check(false, "the pull model is NO_IMPLEMENT");
  } catch (const CORBA::NO_IMPLEMENT&) {
    peer::check(true, "the pull model is NO_IMPLEMENT");
  }
  peer::publish(orb, own, peer::option(argc, argv, "--ready", "consumer.ready"));
  {
    std::unique_lock<std::mutex> lock(servant->mutex);
    const bool all = servant->changed.wait_for(lock, std::chrono::seconds(30), [&] { return servant->came >= count; });
    peer::check(all, "all events came");
    peer::check(servant->wrong == 0, "each event is what was pushed, in order");
  }
  proxy->disconnect_push_supplier();
  {
    std::unique_lock<std::mutex> lock(servant->mutex);
    const bool told = servant->changed.wait_for(lock, std::chrono::seconds(10), [&] { return servant->disconnected; });
    peer::check(told, "the channel says goodbye to a consumer that disconnects");
  }
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
