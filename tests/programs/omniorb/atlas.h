// The valuetypes of Atlas as omniORB wants them: a class and a factory each.
#pragma once
#include "atlas.hh"

namespace atlas {

class PointValue : public OBV_Atlas::Point {
 public:
  PointValue() {}
  PointValue(CORBA::Long first, CORBA::Double second) {
    x(first);
    y(second);
  }
};

class PinValue : public OBV_Atlas::Pin {
 public:
  PinValue() {}
  PinValue(CORBA::Long first, CORBA::Double second, const char* name, CORBA::Long last) {
    x(first);
    y(second);
    label(name);
    PointValue* near = new PointValue(first + 1, second);
    beside(near);
    CORBA::remove_ref(near);
    after(last);
  }
};

class LinkValue : public OBV_Atlas::Link {
 public:
  LinkValue() {}
  // Takes `rest` over.
  LinkValue(CORBA::Long first, Atlas::Link* rest) {
    number(first);
    next(rest);
    CORBA::remove_ref(rest);
  }
};

template <class V>
class Factory : public CORBA::ValueFactoryBase {
  CORBA::ValueBase* create_for_unmarshal() { return new V; }
};

// The factory lives as long as the program.
template <class V>
void register_factory(CORBA::ORB_ptr orb, const char* id) {
  orb->register_value_factory(id, new Factory<V>);
}

inline void register_factories(CORBA::ORB_ptr orb) {
  register_factory<PointValue>(orb, "IDL:Atlas/Point:1.0");
  register_factory<PinValue>(orb, "IDL:Atlas/Pin:1.0");
  register_factory<LinkValue>(orb, "IDL:Atlas/Link:1.0");
}

}  // namespace atlas
