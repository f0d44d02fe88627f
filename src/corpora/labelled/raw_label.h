// A label as it stands in a line of JSON, before it is known what the labels of the data set are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

enum class RawLabelKind : uint32_t {
  kAbsent,   ///< none, where none is needed
  kInteger,  ///< a class, or a number
  kNumber,   ///< written with a point or an exponent
  kName,
  kList,  ///< of numbers
};

struct RawLabel {
  RawLabelKind kind = RawLabelKind::kAbsent;
  std::vector<float> values = {};  ///< of a list as many as it has, else one; of a name nothing
  std::string name = {};
};

/// Longer ones are texts that stand in the wrong place.
inline constexpr size_t kMaxLabelNameBytes = 200;

/// The value of member "label", a JSON text that was scanned; empty for none. Overwrites `label`. Returns
/// what is wrong with it ("label is a map, expected …"), nothing where it is fine.
std::optional<std::string> parse_raw_label(std::string_view json, RawLabel& label);

/// A number that fits f32, as text of JSON ("NaN" and the like are none).
std::optional<float> parse_finite(std::string_view json);

}  // namespace plimsoll::corpora
