// Indices of shards: accepted exactly when a slow reading of the same rules accepts them, with the same
// entries in the same order; no file outside the folder is ever named; nothing large is allocated.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocation_bound.h"
#include "base/check.h"
#include "io/json.h"
#include "io/model_weights.h"

namespace {

using plimsoll::io::Tree;
using Entries = std::vector<std::pair<std::string, std::string>>;

/// Only what reads as a Tree can be compared: a tensor that stands twice is found when shards are opened.
std::optional<Entries> read_slowly(std::string_view json) {
  // The JSON reader takes a zero byte for the end of the text.
  if (json.find('\0') != std::string_view::npos) return std::nullopt;
  const auto tree = plimsoll::io::parse_json(json);
  if (!tree || tree->kind != Tree::Kind::kMap) return std::nullopt;
  const Tree* map = tree->find("weight_map");
  if (!map || map->kind != Tree::Kind::kMap) return std::nullopt;
  Entries entries;
  for (const auto& [name, file] : map->members) {
    if (file.kind != Tree::Kind::kString || file.text.empty() || file.text == "." || file.text == ".." ||
        file.text.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return std::nullopt;
    entries.emplace_back(name, file.text);
  }
  return entries;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  int64_t visited = 0;
  const AllocationBound bound;
  const auto counted =
      plimsoll::io::visit_safetensors_index(json, [&](const std::string&, const std::string&) {
        ++visited;
        return plimsoll::Status(plimsoll::Ok{});
      });
  bound.check(size);
  if (!counted) PLIMSOLL_CHECK(!counted.error().what.empty(), "an error that says nothing");
  Entries entries;
  const auto status =
      plimsoll::io::visit_safetensors_index(json, [&](const std::string& name, const std::string& file) {
        PLIMSOLL_CHECK(file.find('/') == std::string::npos && file != "..", "a file outside the folder");
        entries.emplace_back(name, file);
        return plimsoll::Status(plimsoll::Ok{});
      });
  PLIMSOLL_CHECK(status.ok() == counted.ok() && static_cast<int64_t>(entries.size()) == visited);
  if (const auto expected = read_slowly(json)) {
    PLIMSOLL_CHECK(status.ok(), status.ok() ? "" : status.error().message());
    PLIMSOLL_CHECK(entries == *expected);
  }
  return 0;
}
