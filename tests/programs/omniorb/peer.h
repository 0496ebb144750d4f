// What the servers and clients of this folder share: options, the reference file, and checks that are printed.
#pragma once
#include <omniORB4/CORBA.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace peer {

// The value of option NAME among the arguments that ORB_init left, or FALLBACK.
inline std::string option(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return fallback;
}

inline bool flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return true;
  return false;
}

// Writes the reference beside its place and moves it there, so that a reader never sees half of it.
inline void publish(CORBA::ORB_ptr orb, CORBA::Object_ptr object, const std::string& file) {
  CORBA::String_var text = orb->object_to_string(object);
  std::string draft = file + ".draft";
  {
    std::ofstream out(draft.c_str());
    out << text.in() << std::endl;
  }
  if (std::rename(draft.c_str(), file.c_str()) != 0) {
    std::perror(file.c_str());
    std::exit(2);
  }
}

// A servant activated under a key that is exactly NAME, which is how omniORB lets a corbaloc name it.
inline CORBA::Object_ptr activate(CORBA::ORB_ptr orb, PortableServer::ServantBase* servant, const char* name) {
  CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
  poa->activate_object_with_id(id, servant);
  PortableServer::POAManager_var poa_manager = poa->the_POAManager();
  poa_manager->activate();
  return poa->id_to_reference(id);
}

// An adapter with BidirectionalPolicy BOTH.
inline PortableServer::POA_ptr bidirectional_poa(CORBA::ORB_ptr orb) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var root = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = root->the_POAManager();
  CORBA::Any both;
  both <<= BiDirPolicy::BOTH;
  CORBA::PolicyList policies;
  policies.length(1);
  policies[0] = orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, both);
  PortableServer::POA_var poa = root->create_POA("bidirectional", manager, policies);
  manager->activate();
  return poa._retn();
}

// The reference in a file, or the argument itself if it is one.
inline CORBA::Object_ptr reference(CORBA::ORB_ptr orb, const std::string& argument) {
  std::ifstream in(argument.c_str());
  std::string text;
  if (in && std::getline(in, text)) return orb->string_to_object(text.c_str());
  return orb->string_to_object(argument.c_str());
}

inline int wrong = 0;

// One line a check; a wrong one is counted, and is the exit status.
inline void check(bool right, const std::string& what) {
  std::cout << (right ? "ok " : "WRONG ") << what << std::endl;
  if (!right) ++wrong;
}

template <class T>
void check_equal(const std::string& what, const T& seen, const T& expected) {
  std::ostringstream text;
  text << what << " answers " << +seen << ", expected " << +expected;
  check(seen == expected, text.str());
}

// Prints what ended a program before its time.
inline int report(const CORBA::Exception& e) {
  const CORBA::SystemException* system = CORBA::SystemException::_downcast(&e);
  std::cout << "WRONG " << e._name();
  if (system) std::cout << " minor 0x" << std::hex << system->minor() << " completed " << std::dec << system->completed();
  std::cout << std::endl;
  return 1;
}

}  // namespace peer
