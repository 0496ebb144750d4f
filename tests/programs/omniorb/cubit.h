// Cubes in wrapping arithmetic of the argument's own type, as cubit.idl demands.
#pragma once
#include "cubit.hh"

namespace peer {

inline CORBA::Octet cube(CORBA::Octet o) { return static_cast<CORBA::Octet>(o * o * o); }

inline CORBA::Long cube(CORBA::Long l) {
  CORBA::ULong u = static_cast<CORBA::ULong>(l);
  return static_cast<CORBA::Long>(u * u * u);
}

inline CORBA::Short cube(CORBA::Short s) { return static_cast<CORBA::Short>(cube(static_cast<CORBA::Long>(s))); }

inline Many cube(const Many& m) {
  Many result;
  result.o = cube(m.o);
  result.l = cube(m.l);
  result.s = cube(m.s);
  return result;
}

inline bool same(const Many& a, const Many& b) { return a.o == b.o && a.l == b.l && a.s == b.s; }

}  // namespace peer
