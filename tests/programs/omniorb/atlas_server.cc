// An Atlas::Guide served by omniORB.
//
// atlas_server --ior-file FILE [ORB options]
// FILE is written when the server is ready; the object's key is "guide". It ends by a signal.
#include "atlas.h"
#include "peer.h"

namespace {

class Servant : public POA_Atlas::Guide {
 public:
  Atlas::Route* echo_route(const Atlas::Route& given) { return new Atlas::Route(given); }

  Atlas::Link* echo_link(Atlas::Link* given, Atlas::Text* label, Atlas::Text_out back) {
    CORBA::add_ref(label);
    back = label;
    CORBA::add_ref(given);
    return given;
  }

  Atlas::Pin* echo_pin(Atlas::Pin* given) {
    CORBA::add_ref(given);
    return given;
  }

  Atlas::Point* find() { return new atlas::PinValue(5, 0.5, "a pin in truth", 7); }
};

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  atlas::register_factories(orb);
  CORBA::Object_var object = peer::activate(orb, new Servant, "guide");
  peer::publish(orb, object, peer::option(argc, argv, "--ior-file", "guide.ior"));
  orb->run();
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
