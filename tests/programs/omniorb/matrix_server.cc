// A Matrix::Echo served by omniORB.
//
// matrix_server --ior-file FILE [ORB options]
// FILE is written when the server is ready; the object's key is "echo". It ends by a signal.
#include "matrix.h"

namespace {

class Servant : public POA_Matrix::Echo {
 public:
#define BASIC(NAME, T) \
  T NAME(T given, T& both, T& made) { \
    made = both; \
    both = given; \
    return given; \
  }
#define FIXED(NAME, T) \
  T NAME(const T& given, T& both, T& made) { \
    made = both; \
    both = given; \
    return given; \
  }
#define HEAP(NAME, T, OUT) \
  T* NAME(const T& given, T& both, OUT made) { \
    made = new T(both); \
    both = given; \
    return new T(given); \
  }
#define ARRAY(NAME, T) \
  T##_slice* NAME(const T given, T both, T made) { \
    T##_copy(made, both); \
    T##_copy(both, given); \
    return T##_dup(given); \
  }
#define HEAP_ARRAY(NAME, T) \
  T##_slice* NAME(const T given, T both, T##_out made) { \
    made = T##_dup(both); \
    T##_copy(both, given); \
    return T##_dup(given); \
  }
#define TEXT(NAME, T) \
  char* NAME(const char* given, char*& both, CORBA::String_out made) { \
    made = both; \
    both = CORBA::string_dup(given); \
    return CORBA::string_dup(given); \
  }
#define WIDE(NAME, T) \
  CORBA::WChar* NAME(const CORBA::WChar* given, CORBA::WChar*& both, CORBA::WString_out made) { \
    made = both; \
    both = CORBA::wstring_dup(given); \
    return CORBA::wstring_dup(given); \
  }
#define COUNTED(NAME, T, PTR, OUT, COUNT) \
  PTR NAME(PTR given, PTR& both, OUT made) { \
    made = both; \
    both = COUNT(given); \
    return COUNT(given); \
  }
  MATRIX_TYPES(BASIC, FIXED, HEAP, ARRAY, HEAP_ARRAY, TEXT, WIDE, COUNTED)

  void a_user_exception(const char* reason, CORBA::Long code, const Matrix::Pixel& at) {
    throw Matrix::Trouble(reason, code, at);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  matrix::register_factories(orb);
  CORBA::Object_var object = peer::activate(orb, new Servant, "echo");
  peer::publish(orb, object, peer::option(argc, argv, "--ior-file", "echo.ior"));
  orb->run();
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
