// A Cubit served by omniORB.
//
// cubit_server --ior-file FILE [ORB options]
// FILE is written when the server is ready; the object's key is "cubit". It ends on `shutdown` or by a signal.
#include "cubit.h"
#include "peer.h"

namespace {

class Servant : public POA_Cubit {
 public:
  explicit Servant(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

  void cube_oneway() {}
  void cube_void() {}
  CORBA::Octet cube_octet(CORBA::Octet o) { return peer::cube(o); }
  CORBA::Short cube_short(CORBA::Short s) { return peer::cube(s); }
  CORBA::Long cube_long(CORBA::Long l) { return peer::cube(l); }
  Many cube_struct(const Many& values) { return peer::cube(values); }

  oneof cube_union(const oneof& values) {
    oneof result;
    switch (values._d()) {
      case e_0th: result.o(peer::cube(values.o())); break;
      case e_1st: result.s(peer::cube(values.s())); break;
      case e_2nd: result.l(peer::cube(values.l())); break;
      case e_3rd: result.cm(peer::cube(values.cm())); break;
    }
    return result;
  }

  CORBA::Any* cube_any(const CORBA::Any& values) {
    CORBA::Any_var result = new CORBA::Any;
    CORBA::Octet o;
    CORBA::Short s;
    CORBA::Long l;
    const Many* many;
    if (values >>= CORBA::Any::to_octet(o)) result.inout() <<= CORBA::Any::from_octet(peer::cube(o));
    else if (values >>= s) result.inout() <<= peer::cube(s);
    else if (values >>= l) result.inout() <<= peer::cube(l);
    else if (values >>= many) result.inout() <<= peer::cube(*many);
    else throw CORBA::BAD_PARAM(1, CORBA::COMPLETED_NO);
    return result._retn();
  }

  void cube_long_sequence(const long_seq& input, long_seq_out output) { output = cubed<long_seq>(input); }
  void cube_octet_sequence(const octet_seq& input, octet_seq_out output) { output = cubed<octet_seq>(input); }
  void cube_many_sequence(const many_seq& input, many_seq_out output) { output = cubed<many_seq>(input); }

  void shutdown() { orb_->shutdown(false); }

 private:
  template <class Sequence>
  static Sequence* cubed(const Sequence& input) {
    Sequence* output = new Sequence(input.length());
    output->length(input.length());
    for (CORBA::ULong i = 0; i < input.length(); ++i) (*output)[i] = peer::cube(input[i]);
    return output;
  }

  CORBA::ORB_var orb_;
};

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  CORBA::Object_var object = peer::activate(orb, new Servant(orb), "cubit");
  peer::publish(orb, object, peer::option(argc, argv, "--ior-file", "cubit.ior"));
  orb->run();
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
