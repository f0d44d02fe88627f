// A reader of safetensors for tests, written against the format's description and not against our writer: an
// 8-byte little-endian length, that many bytes of JSON, then the data that the JSON's offsets cover without
// gap.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "io/json.h"

namespace plimsoll::e2e {

struct Tensor {
  std::string dtype;  ///< "F32", "BF16", "F16", "U8", "I64"
  std::vector<int64_t> shape;
  std::string bytes;

  [[nodiscard]] std::vector<float> values() const {
    EXPECT_EQ(dtype, "F32");
    std::vector<float> result(bytes.size() / sizeof(float));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  bool operator==(const Tensor&) const = default;
};

using Tensors = std::map<std::string, Tensor>;

/// One entry of the header; `data` is what follows the header.
inline Tensor read_entry(const std::string& name, const io::Tree& entry, const std::string& data) {
  Tensor tensor;
  tensor.dtype = entry.find("dtype")->text;
  EXPECT_TRUE(tensor.dtype == "F32" || tensor.dtype == "BF16" || tensor.dtype == "F16" ||
              tensor.dtype == "U8" || tensor.dtype == "I64")
      << name;
  int64_t elements = 1;
  for (const io::Tree& extent : entry.find("shape")->items) {
    tensor.shape.push_back(extent.integer);
    elements *= extent.integer;
  }
  const int64_t begin = entry.find("data_offsets")->items.at(0).integer;
  const int64_t end = entry.find("data_offsets")->items.at(1).integer;
  const int64_t bytes = tensor.dtype == "I64" ? 8 : tensor.dtype == "F32" ? 4 : tensor.dtype == "U8" ? 1 : 2;
  EXPECT_EQ(end - begin, elements * bytes) << name;
  EXPECT_LE(end, static_cast<int64_t>(data.size())) << name;
  tensor.bytes = data.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  return tensor;
}

/// All tensors of a file's content; nothing, and a failed test, where it is no safetensors of floats.
inline Tensors read_tensors(const std::string& content) {
  uint64_t header_bytes = 0;
  if (content.size() > 8) std::memcpy(&header_bytes, content.data(), 8);
  if (header_bytes == 0 || header_bytes > content.size() - 8) {
    ADD_FAILURE() << "no safetensors: " << content.size() << " bytes";
    return {};
  }
  const auto header = io::parse_json(std::string_view(content).substr(8, header_bytes));
  if (!header) {
    ADD_FAILURE() << header.error().message();
    return {};
  }
  const std::string data = content.substr(8 + header_bytes);
  Tensors tensors;
  size_t covered = 0;
  for (const auto& [name, entry] : header->members) {
    if (name == "__metadata__") continue;
    tensors[name] = read_entry(name, entry, data);
    covered += tensors[name].bytes.size();
  }
  EXPECT_EQ(covered, data.size());
  return tensors;
}

/// Those under a prefix, without it.
inline Tensors under(const Tensors& tensors, const std::string& prefix) {
  Tensors result;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) result[name.substr(prefix.size())] = tensor;
  return result;
}

}  // namespace plimsoll::e2e
