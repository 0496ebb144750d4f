// Pushes longs and texts to a CosEventChannelAdmin::EventChannel through omniORB.
//
// plain_supplier REF COUNT [ORB options]
#include "cos_event.hh"
#include "peer.h"

namespace {

class Supplier : public POA_CosEventComm::PushSupplier {
 public:
  void disconnect_push_supplier() { disconnected = true; }
  bool disconnected = false;
};

bool is_disconnected(CosEventChannelAdmin::ProxyPushConsumer_ptr proxy, const CORBA::Any& any) {
  try {
    proxy->push(any);
    return false;
  } catch (const CosEventComm::Disconnected&) {
    return true;
  } catch (const CORBA::OBJECT_NOT_EXIST&) {
    return true;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 3) return 2;
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  CosEventChannelAdmin::EventChannel_var channel = CosEventChannelAdmin::EventChannel::_narrow(object);
  peer::check(!CORBA::is_nil(channel), "narrow to EventChannel");
  CosEventChannelAdmin::SupplierAdmin_var admin = channel->for_suppliers();
  CosEventChannelAdmin::ProxyPushConsumer_var proxy = admin->obtain_push_consumer();
  CORBA::Any any;
  any <<= CORBA::Long(-1);
  peer::check(is_disconnected(proxy, any), "a push before connecting is refused");
  Supplier* servant = new Supplier;
  CORBA::Object_var own = peer::activate(orb, servant, "supplier");
  CosEventComm::PushSupplier_var supplier = CosEventComm::PushSupplier::_narrow(own);
  proxy->connect_push_supplier(supplier);
  try {
    proxy->connect_push_supplier(supplier);
    peer::check(false, "connecting twice is AlreadyConnected");
  } catch (const CosEventChannelAdmin::AlreadyConnected&) {
    peer::check(true, "connecting twice is AlreadyConnected");
  }
  try {
    CosEventChannelAdmin::ProxyPullConsumer_var pull = admin->obtain_pull_consumer();
    peer::check(false, "the pull model is NO_IMPLEMENT");
  } catch (const CORBA::NO_IMPLEMENT&) {
    peer::check(true, "the pull model is NO_IMPLEMENT");
  }
  const int count = std::atoi(argv[2]);
  for (int i = 0; i < count; ++i) {
    if (i % 2) {
      std::ostringstream text;
      text << "event " << i;
      any <<= text.str().c_str();
    } else {
      any <<= CORBA::Long(i);
    }
    proxy->push(any);
  }
  peer::check(true, "pushed");
  proxy->disconnect_push_consumer();
  peer::check(is_disconnected(proxy, any), "a push after disconnecting is refused");
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
