// Pushes events to a RtecEventChannelAdmin::EventChannel through omniORB.
//
// rtec_supplier REF COUNT [--type N] [--source N] [ORB options]
#include "rtec_event.hh"
#include "peer.h"

namespace {

class Supplier : public POA_RtecEventComm::PushSupplier {
 public:
  void disconnect_push_supplier() {}
};

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 3) return 2;
  const int count = std::atoi(argv[2]);
  const CORBA::Long type = std::atoi(peer::option(argc, argv, "--type", "20").c_str());
  const CORBA::Long source = std::atoi(peer::option(argc, argv, "--source", "7").c_str());
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  RtecEventChannelAdmin::EventChannel_var channel = RtecEventChannelAdmin::EventChannel::_narrow(object);
  peer::check(!CORBA::is_nil(channel), "narrow to EventChannel");
  RtecEventChannelAdmin::SupplierAdmin_var admin = channel->for_suppliers();
  RtecEventChannelAdmin::ProxyPushConsumer_var proxy = admin->obtain_push_consumer();
  CORBA::Object_var own = peer::activate(orb, new Supplier, "supplier");
  RtecEventComm::PushSupplier_var supplier = RtecEventComm::PushSupplier::_narrow(own);
  RtecEventComm::Event event;
  event.header.type = type;
  event.header.source = source;
  event.header.ttl = 1;
  event.header.creation_time = 12345;
  event.header.ec_recv_time = 0;
  event.header.ec_send_time = 0;
  event.data.pad1 = 0;
  RtecEventChannelAdmin::SupplierQOS qos;
  qos.is_gateway = false;
  qos.publications.length(1);
  qos.publications[0].event = event;
  qos.publications[0].dependency_info.dependency_type = RtecBase::ONE_WAY_CALL;
  qos.publications[0].dependency_info.number_of_calls = 1;
  qos.publications[0].dependency_info.rt_info = 0;
  qos.publications[0].dependency_info.rt_info_depended_on = 0;
  qos.publications[0].dependency_info.enabled = RtecBase::DEPENDENCY_ENABLED;
  proxy->connect_push_supplier(supplier, qos);
  try {
    proxy->connect_push_supplier(supplier, qos);
    peer::check(false, "connecting twice is AlreadyConnected");
  } catch (const RtecEventChannelAdmin::AlreadyConnected&) {
    peer::check(true, "connecting twice is AlreadyConnected");
  }
  for (int i = 0; i < count;) {
    // Sets of one, two and three events.
    RtecEventComm::EventSet set;
    const int together = std::min(count - i, 1 + i % 3);
    set.length(together);
    for (int j = 0; j < together; ++j, ++i) {
      std::ostringstream text;
      text << "event " << i;
      set[j] = event;
      set[j].data.payload.length(text.str().size());
      std::memcpy(set[j].data.payload.get_buffer(), text.str().data(), text.str().size());
      if (i % 2) set[j].data.any_value <<= text.str().c_str();
    }
    proxy->push(set);
  }
  // A two-way call behind the oneways of this connection: they have arrived.
  peer::check(!proxy->_non_existent(), "pushed");
  proxy->disconnect_push_consumer();
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
