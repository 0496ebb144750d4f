// Asks an Atlas::Guide for values, and checks what comes back.
//
// atlas_client REFERENCE [ORB options]
#include "atlas.h"
#include "peer.h"

namespace {

void check_route(Atlas::Guide_ptr guide) {
  Atlas::Route route;
  route.target = new atlas::PointValue(1, 0.25);
  route.stops.length(3);
  route.stops[0] = new atlas::PointValue(1, 0.25);
  CORBA::add_ref(route.target.in());
  route.stops[1] = route.target.in();
  route.stops[2] = 0;
  Atlas::Route_var back = guide->echo_route(route);
  peer::check_equal("the target's x", back->target->x(), 1);
  peer::check(back->target->y() == 0.25, "the target's y");
  peer::check(back->stops.length() == 3 && back->stops[2].in() == 0, "three stops, the last nil");
  peer::check(back->stops[1].in() == back->target.in(), "a shared value is shared again");
  peer::check(back->stops[0].in() != back->target.in(), "an equal value is one of its own");
}

void check_link(Atlas::Guide_ptr guide) {
  Atlas::Link* chain = 0;
  for (CORBA::Long number = 0; number < 20; ++number) chain = new atlas::LinkValue(number, chain);
  Atlas::Link_var given = chain;
  Atlas::Text_var label = new Atlas::Text("boxed");
  Atlas::Text_var back;
  Atlas::Link_var answer = guide->echo_link(given, label, back.out());
  CORBA::Long number = 20;
  for (Atlas::Link* link = answer.in(); link; link = link->next()) --number;
  peer::check_equal("links missing", number, 0);
  peer::check(back.in() && std::strcmp(back->_value(), "boxed") == 0, "the boxed text");
  Atlas::Text_var nothing;
  Atlas::Link_var none = guide->echo_link(0, 0, nothing.out());
  peer::check(!none.in() && !nothing.in(), "nil stays nil");
}

void check_pin(Atlas::Guide_ptr guide) {
  Atlas::Pin_var given = new atlas::PinValue(3, 0.75, "chunked", 9);
  Atlas::Pin_var answer = guide->echo_pin(given);
  peer::check_equal("the pin's x", answer->x(), 3);
  peer::check(std::strcmp(answer->label(), "chunked") == 0, "the pin's label");
  peer::check_equal("what is beside it", answer->beside()->x(), 4);
  peer::check_equal("what stands after", answer->after(), 9);
  Atlas::Point_var found = guide->find();
  peer::check_equal("the place found", found->x(), 5);
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  atlas::register_factories(orb);
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  Atlas::Guide_var guide = Atlas::Guide::_narrow(object);
  check_route(guide);
  check_link(guide);
  check_pin(guide);
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
