// Files of made-up tensors for tests of inspect.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "io/safetensors_writer.h"

namespace plimsoll::cli {

struct Numbers {
  io::SafetensorsEntry entry;
  std::vector<float> values;  ///< its bytes, whatever the entry says that they are
};

/// Returns the path.
inline std::string write_file(const std::string& path, const std::vector<Numbers>& tensors,
                              std::vector<std::pair<std::string, std::string>> metadata = {}) {
  std::vector<io::SafetensorsEntry> entries;
  for (const Numbers& tensor : tensors) entries.push_back(tensor.entry);
  auto writer = io::SafetensorsWriter::create(path, entries, std::move(metadata));
  EXPECT_TRUE(writer) << (writer ? "" : writer.error().message());
  if (!writer) return path;
  for (size_t i = 0; i < tensors.size(); ++i)
    EXPECT_TRUE(writer->write(i, std::as_bytes(std::span(tensors[i].values))));
  EXPECT_TRUE(writer->finish());
  return path;
}

}  // namespace plimsoll::cli
