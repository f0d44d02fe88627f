// The list of augmentations in a run file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/augment.h"
#include "io/json.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;

Augmentations parsed_list(std::string_view text) {
  return parse_augmentations(*io::parse_json(text)).value();
}

std::string list_refusal(std::string_view text) {
  const auto list = parse_augmentations(*io::parse_json(text));
  return list.ok() ? "" : list.error().what + " / " + list.error().hint;
}

TEST(ParseAugmentations, NamesAloneHaveTorchvisionsDefaults) {
  const Augmentations list = parsed_list(
      R"(["random_resized_crop", "flip", "random_erasing", "rand_augment", {"trivial_augment": null}])");
  ASSERT_EQ(list.size(), 5);
  EXPECT_EQ(list[0].scale, (Augmentation::Range{0.08, 1}));
  EXPECT_EQ(list[0].ratio, (Augmentation::Range{0.75, 4.0 / 3}));
  EXPECT_EQ(list[1].p, 0.5);
  EXPECT_EQ(list[2].scale, (Augmentation::Range{0.02, 0.33}));
  EXPECT_EQ(list[2].ratio, (Augmentation::Range{0.3, 3.3}));
  EXPECT_EQ(list[3].num_ops, 2);
  EXPECT_EQ(list[3].magnitude, 9);
  EXPECT_EQ(list[4].num_magnitude_bins, 31);
  EXPECT_TRUE(parsed_list("null").empty());
}

TEST(ParseAugmentations, JitterTakesNumbersAndRanges) {
  const Augmentations list = parsed_list(
      R"([{"color_jitter": {"brightness": 0.4, "contrast": 1.5, "saturation": [0.5, 2], "hue": 0.1}}])");
  EXPECT_EQ(list[0].brightness, (Augmentation::Range{0.6, 1.4}));
  EXPECT_EQ(list[0].contrast, (Augmentation::Range{0, 2.5}));
  EXPECT_EQ(list[0].saturation, (Augmentation::Range{0.5, 2}));
  EXPECT_EQ(list[0].hue, (Augmentation::Range{-0.1, 0.1}));
}

TEST(ParseAugmentations, RefusesByName) {
  EXPECT_THAT(list_refusal(R"(["flipp"])"), HasSubstr("no augmentation flipp / the nearest is flip"));
  EXPECT_THAT(list_refusal(R"([{"flip": {"q": 1}}])"), HasSubstr("flip has no parameter q"));
  EXPECT_THAT(list_refusal(R"([{"flip": {"p": 2}}])"),
              HasSubstr("p is 2, expected a number from 0 to 1 / write names, or"));
  EXPECT_THAT(list_refusal(R"([{"color_jitter": {"hue": 0.6}}])"), HasSubstr("hue is 0.6"));
  EXPECT_THAT(list_refusal(R"([{"random_resized_crop": {"scale": [0.5, 0.1]}}])"), HasSubstr("scale is"));
  EXPECT_THAT(list_refusal(R"([{"random_resized_crop": {"scale": [0, 1]}}])"), HasSubstr("scale is"));
  EXPECT_THAT(list_refusal(R"([{"rand_augment": {"magnitude": 31}}])"),
              HasSubstr("less than num_magnitude_bins = 31"));
  EXPECT_THAT(list_refusal(R"([{"rand_augment": {"num_ops": 1.5}}])"), HasSubstr("an integer"));
  EXPECT_THAT(list_refusal(R"(["flip", "random_resized_crop"])"), HasSubstr("stands first"));
  EXPECT_THAT(list_refusal(R"([{"flip": null, "rand_augment": null}])"), HasSubstr("expected a name"));
  EXPECT_THAT(list_refusal(R"("flip")"), HasSubstr("expected a list"));
  EXPECT_THAT(list_refusal(R"([{"flip": 3}])"), HasSubstr("expected its parameters by name"));
}

}  // namespace
}  // namespace plimsoll::images
