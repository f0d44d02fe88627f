// preprocessor_config.json, as transformers and as timm write it, and a list of augmentations: what is
// accepted is within the limits, and is written again as text that reads back to the same.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "images/augment.h"
#include "images/processor.h"
#include "io/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plimsoll::images;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto processor = parse_processor(text, "file")) {
    PLIMSOLL_CHECK(check(*processor).ok());
    const std::string written = processor_json(*processor);
    const auto again = parse_processor(written, "again");
    PLIMSOLL_CHECK(again.ok() && processor_json(*again) == written, "reads back differently: " + written);
  }
  const auto tree = plimsoll::io::parse_json(text);
  if (!tree) return 0;
  if (const auto processor = timm_processor(*tree, "file")) PLIMSOLL_CHECK(check(*processor).ok());
  if (const auto list = parse_augmentations(*tree)) {
    for (const Augmentation& one : *list)
      PLIMSOLL_CHECK(one.scale[0] > 0 && one.ratio[0] > 0 && one.magnitude < one.num_magnitude_bins);
  }
  return 0;
}
