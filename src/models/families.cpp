#include "models/families.h"

namespace plimsoll::models {

const Family* find_family(std::string_view model_type) {
  for (const auto family : kFamilies)
    if (family().model_type == model_type) return &family();
  return nullptr;
}

bool is_image_family(const Family& family) {
  return std::ranges::any_of(kImageFamilies, [&](const FamilyFile file) { return &file() == &family; });
}

bool is_encoder_family(const Family& family) {
  return std::ranges::any_of(kEncoderFamilies, [&](const FamilyFile file) { return &file() == &family; });
}

std::string family_names() {
  std::string names;
  for (const auto family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family().model_type);
  return names;
}

}  // namespace plimsoll::models
