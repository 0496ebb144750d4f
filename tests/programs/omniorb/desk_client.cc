// Calls every operation of an Exchange::Desk through omniORB and checks every answer.
//
// desk_client REF [--no-wide] [--high-char] [--called-back] [ORB options]
// REF is a file or a reference. --no-wide leaves out wide characters, which GIOP 1.0 has not and omniORB refuses in 1.1.
// --high-char sends a char above ASCII, which only a server with ISO 8859-1 takes. --called-back has the server call the
// client over the client's connection, for which omniORB needs options. One line a check; status 1 if one is wrong.
#include "exchange.hh"
#include "peer.h"

namespace {

// The client's own party.
class Called : public POA_Exchange::Party {
 public:
  char* name() { return CORBA::string_dup("the client"); }
  CORBA::Long level() { return level_; }
  void level(CORBA::Long value) { level_ = value; }

 private:
  CORBA::Long level_ = 41;
};

// The server calls back over the connection of the call.
void called_back(CORBA::ORB_ptr orb, Exchange::Desk_ptr desk) {
  static Called called;
  PortableServer::POA_var poa = peer::bidirectional_poa(orb);
  PortableServer::ObjectId_var id = poa->activate_object(&called);
  CORBA::Object_var own = poa->id_to_reference(id);
  Exchange::Party_var party = Exchange::Party::_narrow(own);
  peer::check_equal<CORBA::Long>("level_of, over the connection of the client", desk->level_of(party), 42);
}

void text(Exchange::Desk_ptr desk) {
  // ISO 8859-1, the native code set of omniORB: c, a with ring, e with acute, y with diaeresis.
  const char* texts[] = {"", "plain", "caf\xe9 \xe5ngstr\xf6m \xff", "a longer text, for its length is no multiple of four"};
  for (const char* value : texts) {
    CORBA::String_var answer = desk->echo_string(value);
    peer::check(std::strcmp(answer, value) == 0, "echo_string");
  }
  Exchange::Texts lines;
  lines.length(3);
  lines[0] = "one";
  lines[1] = "";
  lines[2] = "\xdf\xe6";
  Exchange::Texts_var answer = desk->echo_texts(lines);
  bool right = answer->length() == 3;
  for (CORBA::ULong i = 0; right && i < 3; ++i) right = std::strcmp(answer[i], lines[i]) == 0;
  peer::check(right, "echo_texts");
}

void wide_text(Exchange::Desk_ptr desk) {
  // Nothing beyond the basic plane: omniORB refuses to send it (BAD_PARAM_WCharOutOfRange).
  const CORBA::WChar* texts[] = {L"", L"plain", L"\u03b1\u03b2\u03b3", L"\u65e5\u672c", L"\ufffd"};
  for (const CORBA::WChar* value : texts) {
    CORBA::WString_var answer = desk->echo_wstring(value);
    bool right = true;
    CORBA::ULong i = 0;
    for (; right && value[i]; ++i) right = answer[i] == value[i];
    peer::check(right && answer[i] == 0, "echo_wstring");
  }
}

void person(Exchange::Desk_ptr desk, CORBA::Char initial) {
  Exchange::Person who;
  who.name = "Grace";
  who.nickname = CORBA::wstring_dup(L"\u0394");
  who.titles.length(2);
  who.titles[0] = "Rear Admiral";
  who.titles[1] = "Dr";
  who.initial = initial;
  who.mark = L'\u2713';
  who.present = true;
  who.height = 1.625;
  who.born = -1988150400LL;
  who.id = 0xfedcba9876543210ULL;
  who.weight = -0.0f;
  who.house = 65535;
  Exchange::Person_var back = desk->echo_person(who);
  peer::check(std::strcmp(back->name, "Grace") == 0 && back->titles.length() == 2 && back->initial == initial && back->mark == L'\u2713' &&
                  back->present && back->height == 1.625 && back->born == -1988150400LL && back->id == 0xfedcba9876543210ULL &&
                  back->house == 65535,
              "echo_person");
}

void directions(Exchange::Desk_ptr desk) {
  CORBA::Long both = 6;
  CORBA::String_var line;
  const CORBA::Long product = desk->mixed(7, both, line.out());
  peer::check_equal<CORBA::Long>("mixed", product, 42);
  peer::check_equal<CORBA::Long>("mixed, inout", both, 13);
  peer::check(std::strcmp(line, "given=7") == 0, "mixed, out");
  desk->level(-5);
  peer::check_equal<CORBA::Long>("level", desk->level(), -5);
  CORBA::String_var name = desk->name();
  peer::check(std::strlen(name) > 0, std::string("name is ") + name.in());
}

void exceptions(Exchange::Desk_ptr desk) {
  desk->refuse(0, "nothing");
  try {
    desk->refuse(3, "no \xe9 here");
    peer::check(false, "refuse raises Refused");
  } catch (const Exchange::Refused& e) {
    peer::check(e.code == 3 && std::strcmp(e.reason, "no \xe9 here") == 0, "refuse raises Refused");
  }
  try {
    desk->refuse(-1, "");
    peer::check(false, "refuse raises Empty");
  } catch (const Exchange::Empty&) {
    peer::check(true, "refuse raises Empty");
  }
  try {
    desk->fail(0x12345);
    peer::check(false, "fail raises NO_PERMISSION");
  } catch (const CORBA::NO_PERMISSION& e) {
    peer::check(e.minor() == 0x12345 && e.completed() == CORBA::COMPLETED_MAYBE, "fail raises NO_PERMISSION");
  }
}

void references(CORBA::ORB_ptr orb, Exchange::Desk_ptr desk) {
  CORBA::Object_var object = desk->echo_object(desk);
  peer::check(object->_is_equivalent(desk), "echo_object");
  object = desk->echo_object(CORBA::Object::_nil());
  peer::check(CORBA::is_nil(object), "echo_object of nil");
  Exchange::Desk_var same = desk->echo_desk(desk);
  peer::check_equal<CORBA::Long>("level through echo_desk", same->level(), -5);
  same = desk->echo_desk(Exchange::Desk::_nil());
  peer::check(CORBA::is_nil(same), "echo_desk of nil");
  peer::check_equal<CORBA::Long>("level_of itself, a nested call", desk->level_of(desk), -4);
  peer::check(desk->_is_a("IDL:Exchange/Party:1.0"), "_is_a its base");
  peer::check(!desk->_is_a("IDL:Exchange/Stranger:1.0"), "_is_a not what it is not");
  Exchange::Party_var party = Exchange::Party::_narrow(desk);
  peer::check(!CORBA::is_nil(party), "narrow to its base");
  CORBA::String_var text = orb->object_to_string(desk);
  CORBA::Object_var again = orb->string_to_object(text);
  peer::check(again->_is_equivalent(desk), "through a string and back");
}

void oneways(Exchange::Desk_ptr desk) {
  const CORBA::Long before = desk->noted();
  for (CORBA::Long i = 0; i < 10; ++i) desk->note(i);
  // One connection, so the question comes after the notes; a server may still dispatch them aside.
  CORBA::Long after = before;
  for (int tries = 0; tries < 500 && after != before + 10; ++tries) after = desk->noted();
  peer::check_equal<CORBA::Long>("ten notes", after, before + 10);
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc < 2) {
    std::cerr << "usage: desk_client REF [--no-wide] [--high-char] [--called-back] [ORB options]" << std::endl;
    return 2;
  }
  CORBA::Object_var object = peer::reference(orb, argv[1]);
  Exchange::Desk_var desk = Exchange::Desk::_narrow(object);
  peer::check(!CORBA::is_nil(desk), "narrow to Desk");
  if (CORBA::is_nil(desk)) return 1;
  if (peer::flag(argc, argv, "--called-back")) called_back(orb, desk);
  text(desk);
  if (!peer::flag(argc, argv, "--no-wide")) {
    wide_text(desk);
    person(desk, peer::flag(argc, argv, "--high-char") ? '\xe9' : 'G');
  }
  directions(desk);
  exceptions(desk);
  references(orb, desk);
  oneways(desk);
  orb->destroy();
  return peer::wrong ? 1 : 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
