// An Exchange::Desk served by omniORB.
//
// desk_server --ior-file FILE [--carry-threads] [--bidirectional] [ORB options]
// FILE is written when the server is ready; the object's key is "desk". It ends by a signal. With --carry-threads, its nested calls have
// the service context of a distributable thread that their request has. With --bidirectional, it calls back over the connections of its
// clients, for which omniORB needs options.
#include <omniORB4/omniInterceptors.h>
#include <omniORB4/internal/giopStrand.h>
#include <omniORB4/internal/giopStream.h>
#include <omniORB4/internal/GIOP_S.h>
#include <unistd.h>

#include "exchange.hh"
#include "peer.h"

namespace {

class Servant : public POA_Exchange::Desk {
 public:
  Servant() : level_(0), noted_(0) {}

  char* name() { return CORBA::string_dup("omniORB"); }
  CORBA::Long level() { return level_; }
  void level(CORBA::Long value) { level_ = value; }

  char* echo_string(const char* text) { return CORBA::string_dup(text); }
  CORBA::WChar* echo_wstring(const CORBA::WChar* text) { return CORBA::wstring_dup(text); }
  Exchange::Texts* echo_texts(const Exchange::Texts& lines) { return new Exchange::Texts(lines); }
  Exchange::Person* echo_person(const Exchange::Person& who) { return new Exchange::Person(who); }

  CORBA::Long mixed(CORBA::Long given, CORBA::Long& both, CORBA::String_out text) {
    const CORBA::ULong product = static_cast<CORBA::ULong>(given) * static_cast<CORBA::ULong>(both);
    std::ostringstream line;
    line << "given=" << given;
    text = CORBA::string_dup(line.str().c_str());
    both = static_cast<CORBA::Long>(static_cast<CORBA::ULong>(both) + static_cast<CORBA::ULong>(given));
    return static_cast<CORBA::Long>(product);
  }

  void refuse(CORBA::Long code, const char* reason) {
    if (code == -1) throw Exchange::Empty();
    if (code != 0) throw Exchange::Refused(reason, code);
  }

  void fail(CORBA::ULong minor_code) { throw CORBA::NO_PERMISSION(minor_code, CORBA::COMPLETED_MAYBE); }

  CORBA::Object_ptr echo_object(CORBA::Object_ptr any_object) { return CORBA::Object::_duplicate(any_object); }
  Exchange::Desk_ptr echo_desk(Exchange::Desk_ptr other) { return Exchange::Desk::_duplicate(other); }
  CORBA::Long level_of(Exchange::Party_ptr other) { return other->level() + 1; }

  void note(CORBA::Long) { ++noted_; }
  CORBA::Long noted() { return noted_; }
  void sleep(CORBA::ULong milliseconds) { usleep(milliseconds * 1000); }

 private:
  CORBA::Long level_;
  CORBA::Long noted_;
};

// rtorb's context of a distributable thread, and that of the request which the calling thread serves.
const CORBA::ULong thread_context = 0x72746210;
thread_local IOP::ServiceContext* carried = nullptr;

CORBA::Boolean note_thread(omni::omniInterceptors::serverReceiveRequest_T::info_T& info) {
  delete carried;
  carried = nullptr;
  const IOP::ServiceContextList& contexts = info.giop_s.service_contexts();
  for (CORBA::ULong i = 0; i < contexts.length(); ++i)
    if (contexts[i].context_id == thread_context) carried = new IOP::ServiceContext(contexts[i]);
  return 1;
}

CORBA::Boolean carry_thread(omni::omniInterceptors::clientSendRequest_T::info_T& info) {
  if (!carried) return 1;
  const CORBA::ULong count = info.service_contexts.length();
  info.service_contexts.length(count + 1);
  info.service_contexts[count] = *carried;
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (peer::flag(argc, argv, "--carry-threads")) {
    omni::omniInterceptors* interceptors = omniORB::getInterceptors();
    interceptors->serverReceiveRequest.add(note_thread);
    interceptors->clientSendRequest.add(carry_thread);
  }
  CORBA::Object_var object;
  if (peer::flag(argc, argv, "--bidirectional")) {
    PortableServer::POA_var poa = peer::bidirectional_poa(orb);
    PortableServer::ObjectId_var id = poa->activate_object(new Servant);
    object = poa->id_to_reference(id);
  } else {
    object = peer::activate(orb, new Servant, "desk");
  }
  peer::publish(orb, object, peer::option(argc, argv, "--ior-file", "desk.ior"));
  orb->run();
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
