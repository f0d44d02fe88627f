// The one conversion from signed indices and ids to what vectors are indexed with.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace plimsoll {

/// `i` as an index of a vector. Precondition: it is not negative.
template <class T>
requires std::integral<T> || std::is_enum_v<T>
constexpr size_t at(T i) { return static_cast<size_t>(i); }
/// The same of an id of a value or an op.
template <class Id>
requires requires(Id id) {
  { id.index } -> std::convertible_to<std::ptrdiff_t>;
}
constexpr size_t at(Id id) { return static_cast<size_t>(id.index); }

}  // namespace plimsoll
