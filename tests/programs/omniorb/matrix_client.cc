// Sends the values of a Matrix::Samples to each Matrix::Echo of a file, and asks a Matrix::Judge whether they come back.
//
// matrix_client FILE SAMPLES JUDGE [ORB options]
// A line of FILE is a word and a reference. For each of these and each type, it prints the word, the name of the operation, and "ok", or the
// directions that are wrong, or the call that raised an exception and its name. The three are separated by tabulators.
#include "matrix.h"

#include <functional>
#include <vector>

namespace {

// The number of values that are sent. The server repeats those of a type with fewer.
const CORBA::Long VALUES = 4;

Matrix::Samples_var samples;
Matrix::Judge_var judge;
const char* call;
std::string word;

struct Wrong {
  bool result = false, both = false, made = false;

  std::string text() const {
    std::string text;
    if (result) text += " result";
    if (both) text += " inout";
    if (made) text += " out";
    return text.empty() ? "ok" : "differs:" + text;
  }
};

void run(const char* name, std::function<void(CORBA::Long, Wrong&)> one) {
  Wrong wrong;
  std::string said;
  try {
    for (CORBA::Long index = 0; index < VALUES; ++index) one(index, wrong);
    said = wrong.text();
  } catch (const CORBA::Exception& e) {
    said = std::string(call) + " " + e._name();
  }
  std::cout << word << '\t' << name << '\t' << said << std::endl;
}

void user_exception(Matrix::Echo_ptr echo, CORBA::Long index, Wrong& wrong) {
  call = "samples";
  CORBA::String_var reason = samples->a_string(index);
  CORBA::Long code = samples->a_long(index);
  Matrix::Pixel at = samples->a_fixed_struct(index);
  call = "echo";
  try {
    echo->a_user_exception(reason, code, at);
    wrong.result = true;
  } catch (const Matrix::Trouble& e) {
    call = "judge";
    wrong.result |= !judge->a_string(index, e.reason) || e.code != code || !judge->a_fixed_struct(index, e.at);
  }
}

void check(Matrix::Echo_ptr echo) {
#define CALL(NAME, V, GIVEN, BOTH, MADE, VALUE) \
  run(#NAME, [&](CORBA::Long index, Wrong& wrong) { \
    call = "samples"; \
    V given, both, made, result; /* A copy of a fixed has no digits, and omniORB aborts. An assigned one has. */ \
    given = samples->NAME(index); \
    both = samples->NAME(index + 1); \
    call = "echo"; \
    result = echo->NAME(GIVEN, BOTH, MADE); \
    call = "judge"; \
    wrong.result |= !judge->NAME(index, VALUE(result)); \
    wrong.both |= !judge->NAME(index, VALUE(both)); \
    wrong.made |= !judge->NAME(index + 1, VALUE(made)); \
  });
#define ITSELF(value) value
#define IN(value) value.in()
#define BASIC(NAME, T) CALL(NAME, T, given, both, made, ITSELF)
#define FIXED BASIC
#define VAR(NAME, T) CALL(NAME, T##_var, given.in(), both.inout(), made.out(), IN)
#define ARRAY(NAME, T) CALL(NAME, T##_var, given.in(), both.inout(), (made = T##_alloc(), made.out()), IN)
#define HEAP(NAME, T, OUT) VAR(NAME, T)
#define COUNTED(NAME, T, PTR, OUT, COUNT) VAR(NAME, T)
  MATRIX_TYPES(BASIC, FIXED, HEAP, ARRAY, VAR, VAR, VAR, COUNTED)
  run("a_user_exception", [&](CORBA::Long index, Wrong& wrong) { user_exception(echo, index, wrong); });
}

}  // namespace

int main(int argc, char** argv) try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  matrix::register_factories(orb);
  CORBA::Object_var object = orb->string_to_object(argv[2]);
  samples = Matrix::Samples::_unchecked_narrow(object);
  object = orb->string_to_object(argv[3]);
  judge = Matrix::Judge::_unchecked_narrow(object);
  std::ifstream targets(argv[1]);
  std::string reference;
  while (targets >> word >> reference) {
    object = orb->string_to_object(reference.c_str());
    Matrix::Echo_var echo = Matrix::Echo::_unchecked_narrow(object);
    check(echo);
  }
  orb->destroy();
  return 0;
} catch (const CORBA::Exception& e) {
  return peer::report(e);
}
