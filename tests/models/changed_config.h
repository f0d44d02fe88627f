// A family's config.json with some fields changed.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "io/json.h"
#include "io/model_config.h"
#include "models/families.h"

namespace plimsoll::models {

/// `base` with the members of `changes` over it, whole values: nothing merges.
inline io::ConfigJson changed(std::string_view base, const std::string& changes) {
  io::Tree tree = *io::parse_json(base);
  const auto over = io::parse_json(changes);
  EXPECT_TRUE(over) << changes;
  for (const auto& [key, value] : over->members) tree.set(key, value);
  return io::ConfigJson(std::move(tree), "config.json");
}

/// As the family's own reader has it.
inline Result<DecoderConfig> parse_as(std::string_view family, const io::ConfigJson& config) {
  return find_family(family)->parse(config);
}

/// A row of a table of refusals: with these changes, an error that says `what`.
struct Refusal {
  const char* changes;
  const char* what;
};

}  // namespace plimsoll::models
