// The Arrow types that have a JSON form, and the storage of extension types.
#pragma once

#include <arrow/api.h>

#include <string>
#include <string_view>

namespace plimsoll::columnar {

/// Values nested deeper than this are not read: a file may claim any depth.
inline constexpr int kMostDepth = 64;

inline constexpr std::string_view kJsonExtension = "arrow.json", kBool8Extension = "arrow.bool8",
                                  kUuidExtension = "arrow.uuid";

/// The name of a field's extension type, whether Arrow knows it or leaves it in the field's metadata; else
/// empty.
std::string extension_of(const arrow::Field& field);

/// What of the column is not read, "messages[].at, of type duration[us]": the first such part of it. Empty
/// where all of it is.
std::string unread_part(const arrow::Field& column);

}  // namespace plimsoll::columnar
