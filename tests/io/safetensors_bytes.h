// Bytes of safetensors files, whole and broken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace plimsoll::io {

/// Length field, header, payload; `claimed` puts another length in.
inline std::string safetensors_bytes(std::string_view header, std::string_view payload,
                                     uint64_t claimed = 0) {
  const uint64_t length = claimed != 0 ? claimed : header.size();
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i));
  return file.append(header).append(payload);
}

/// The header's entry of one tensor: "name":{"dtype":…,"shape":[…],"data_offsets":[begin,end]}.
inline std::string header_entry(const std::string& name, const std::string& dtype, const std::string& shape,
                                const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         offsets + "]}";
}

}  // namespace plimsoll::io
