// Reads fields that all forms of processor files share.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "images/processor.h"
#include "io/model_config.h"

namespace plimsoll::images {

inline constexpr std::string_view kProcessorHint = "correct the file, or set data.images in the run file";

/// `check` of what was read. Errors: kBadData with the file.
inline Status check_read(const Processor& processor, const io::ConfigJson& config) {
  Status status = check(processor);
  if (status) return status;
  return Error{ErrorCode::kBadData, std::move(status).error().what, config.source(),
               std::string(kProcessorHint)};
}

/// A list of three numbers, or one number for all three; `if_missing` where the field is missing or null.
/// Errors: kBadData.
inline Result<std::array<double, 3>> read_triple(const io::ConfigJson& config, std::string_view field,
                                                 const std::array<double, 3>& if_missing) {
  using io::Tree;
  constexpr std::string_view kExpected = "three numbers, for red, green and blue";
  const auto is_number = [](const Tree& tree) {
    return tree.kind == Tree::Kind::kInteger || tree.kind == Tree::Kind::kNumber;
  };
  if (!config.has(field)) return if_missing;
  const Tree& value = *config.fields().find(field);
  if (is_number(value)) return std::array{value.number, value.number, value.number};
  if (value.kind != Tree::Kind::kList || value.items.size() != 3) return config.error(field, kExpected);
  std::array<double, 3> triple{};
  for (size_t c = 0; c < triple.size(); ++c) {
    if (!is_number(value.items[c])) return config.error(field, kExpected);
    triple[c] = value.items[c].number;
  }
  return triple;
}

}  // namespace plimsoll::images
