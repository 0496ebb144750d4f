// The types of matrix.idl by the way in which C++ passes them, and its values as omniORB wants them: a class and a factory each.
#pragma once
#include "matrix.hh"
#include "peer.h"

// BASIC: by value. FIXED: of a fixed length. HEAP: of a variable length. ARRAY and HEAP_ARRAY: arrays of both kinds.
// TEXT and WIDE: strings. COUNTED: references, TypeCodes and values.
#define MATRIX_TYPES(BASIC, FIXED, HEAP, ARRAY, HEAP_ARRAY, TEXT, WIDE, COUNTED) \
  BASIC(an_octet, CORBA::Octet) \
  BASIC(a_boolean, CORBA::Boolean) \
  BASIC(a_char, CORBA::Char) \
  BASIC(a_wchar, CORBA::WChar) \
  BASIC(a_short, CORBA::Short) \
  BASIC(an_unsigned_short, CORBA::UShort) \
  BASIC(a_long, CORBA::Long) \
  BASIC(an_unsigned_long, CORBA::ULong) \
  BASIC(a_long_long, CORBA::LongLong) \
  BASIC(an_unsigned_long_long, CORBA::ULongLong) \
  BASIC(a_float, CORBA::Float) \
  BASIC(a_double, CORBA::Double) \
  TEXT(a_string, CORBA::String) \
  TEXT(a_bounded_string, CORBA::String) \
  WIDE(a_wstring, CORBA::WString) \
  WIDE(a_bounded_wstring, CORBA::WString) \
  BASIC(an_enum, Matrix::Colour) \
  FIXED(a_fixed, Matrix::Price) \
  FIXED(a_fixed_struct, Matrix::Pixel) \
  HEAP(a_variable_struct, Matrix::Entry, Matrix::Entry_out) \
  HEAP(a_nested_struct, Matrix::Line, Matrix::Line_out) \
  HEAP(a_recursive_struct, Matrix::Tree, Matrix::Tree_out) \
  HEAP(a_union_by_enum, Matrix::ByColour, Matrix::ByColour_out) \
  HEAP(a_union_by_long, Matrix::ByLong, Matrix::ByLong_out) \
  HEAP(a_union_by_boolean, Matrix::ByBoolean, Matrix::ByBoolean_out) \
  HEAP(a_union_by_char, Matrix::ByChar, Matrix::ByChar_out) \
  FIXED(a_union_by_unsigned_long_long, Matrix::ByHyper) \
  HEAP(a_sequence, Matrix::Longs, Matrix::Longs_out) \
  HEAP(a_bounded_sequence, Matrix::Shorts, Matrix::Shorts_out) \
  HEAP(a_sequence_of_octets, Matrix::Octets, Matrix::Octets_out) \
  HEAP(a_sequence_of_doubles, Matrix::Doubles, Matrix::Doubles_out) \
  HEAP(a_sequence_of_strings, Matrix::Strings, Matrix::Strings_out) \
  HEAP(a_sequence_of_wstrings, Matrix::WideStrings, Matrix::WideStrings_out) \
  HEAP(a_sequence_of_fixed_structs, Matrix::Pixels, Matrix::Pixels_out) \
  HEAP(a_sequence_of_variable_structs, Matrix::Entries, Matrix::Entries_out) \
  HEAP(a_sequence_of_sequences, Matrix::Lists, Matrix::Lists_out) \
  ARRAY(an_array, Matrix::Triple) \
  ARRAY(an_array_of_arrays, Matrix::Grid) \
  HEAP_ARRAY(an_array_of_strings, Matrix::Names) \
  HEAP_ARRAY(an_array_of_structs, Matrix::Ends) \
  HEAP(an_any, CORBA::Any, CORBA::Any_OUT_arg) \
  COUNTED(a_type_code, CORBA::TypeCode, CORBA::TypeCode_ptr, CORBA::TypeCode_OUT_arg, CORBA::TypeCode::_duplicate) \
  COUNTED(an_object, CORBA::Object, CORBA::Object_ptr, CORBA::Object_out, CORBA::Object::_duplicate) \
  COUNTED(a_reference, Matrix::Echo, Matrix::Echo_ptr, Matrix::Echo_out, Matrix::Echo::_duplicate) \
  COUNTED(a_value, Matrix::Point, Matrix::Point*, Matrix::Point_out, matrix::counted) \
  COUNTED(a_derived_value, Matrix::Pin, Matrix::Pin*, Matrix::Pin_out, matrix::counted) \
  HEAP(a_shared_value, Matrix::Shared, Matrix::Shared_out) \
  COUNTED(a_boxed_value, Matrix::Text, Matrix::Text*, Matrix::Text_out, matrix::counted)

namespace matrix {

template <class V>
V* counted(V* value) {
  CORBA::add_ref(value);
  return value;
}

class PointValue : public OBV_Matrix::Point {};
class PinValue : public OBV_Matrix::Pin {};

template <class V>
class Factory : public CORBA::ValueFactoryBase {
  CORBA::ValueBase* create_for_unmarshal() { return new V; }
};

// The factories live as long as the program.
inline void register_factories(CORBA::ORB_ptr orb) {
  orb->register_value_factory("IDL:Matrix/Point:1.0", new Factory<PointValue>);
  orb->register_value_factory("IDL:Matrix/Pin:1.0", new Factory<PinValue>);
}

}  // namespace matrix
