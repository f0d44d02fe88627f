// data.images.augment as a list of augmentations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "images/augment.h"
#include "io/suggest.h"

namespace plimsoll::images {
namespace {

using io::Tree;
using Kind = Augmentation::Kind;
using Range = Augmentation::Range;

// A parameter: where it is kept, and the least and most that it may be.
struct Parameter {
  enum class Form : uint8_t {
    kNumber,
    kInteger,
    kRange,   // [from, to]
    kFactor,  // v for [max(0, 1 - v), 1 + v], or [from, to]
    kShift,   // v for [-v, v], or [from, to]
  };
  std::string_view name;
  Form form;
  double least, most;
  double Augmentation::*number = nullptr;
  int64_t Augmentation::*integer = nullptr;
  Range Augmentation::*range = nullptr;
};

constexpr double kMost = 1e3;
constexpr Parameter kProbability = {
    .name = "p", .form = Parameter::Form::kNumber, .least = 0, .most = 1, .number = &Augmentation::p};
constexpr Parameter kScale = {.name = "scale",
                              .form = Parameter::Form::kRange,
                              .least = 1e-6,
                              .most = 1,
                              .range = &Augmentation::scale};
constexpr Parameter kRatio = {.name = "ratio",
                              .form = Parameter::Form::kRange,
                              .least = 1e-3,
                              .most = kMost,
                              .range = &Augmentation::ratio};
constexpr Parameter kBins = {.name = "num_magnitude_bins",
                             .form = Parameter::Form::kInteger,
                             .least = 2,
                             .most = 1024,
                             .integer = &Augmentation::num_magnitude_bins};
constexpr Parameter kCropParameters[] = {kScale, kRatio};
constexpr Parameter kFlipParameters[] = {kProbability};
constexpr Parameter kJitterParameters[] = {{.name = "brightness",
                                            .form = Parameter::Form::kFactor,
                                            .least = 0,
                                            .most = kMost,
                                            .range = &Augmentation::brightness},
                                           {.name = "contrast",
                                            .form = Parameter::Form::kFactor,
                                            .least = 0,
                                            .most = kMost,
                                            .range = &Augmentation::contrast},
                                           {.name = "saturation",
                                            .form = Parameter::Form::kFactor,
                                            .least = 0,
                                            .most = kMost,
                                            .range = &Augmentation::saturation},
                                           {.name = "hue",
                                            .form = Parameter::Form::kShift,
                                            .least = -0.5,
                                            .most = 0.5,
                                            .range = &Augmentation::hue}};
constexpr Parameter kEraseParameters[] = {kProbability, kScale, kRatio};
constexpr Parameter kRandParameters[] = {{.name = "num_ops",
                                          .form = Parameter::Form::kInteger,
                                          .least = 0,
                                          .most = 100,
                                          .integer = &Augmentation::num_ops},
                                         {.name = "magnitude",
                                          .form = Parameter::Form::kInteger,
                                          .least = 0,
                                          .most = 1023,
                                          .integer = &Augmentation::magnitude},
                                         kBins};
constexpr Parameter kTrivialParameters[] = {kBins};

struct Definition {
  std::string_view name;
  std::span<const Parameter> parameters;
  Augmentation defaults;
};

std::span<const Definition> definitions() {
  static const Definition kDefinitions[] = {
      {"random_resized_crop", kCropParameters, {.kind = Kind::kRandomResizedCrop}},
      {"flip", kFlipParameters, {.kind = Kind::kFlip}},
      {"vertical_flip", kFlipParameters, {.kind = Kind::kVerticalFlip}},
      {"color_jitter", kJitterParameters, {.kind = Kind::kColorJitter}},
      {"random_erasing",
       kEraseParameters,
       {.kind = Kind::kErase, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}}},
      {"rand_augment", kRandParameters, {.kind = Kind::kRandAugment}},
      {"trivial_augment", kTrivialParameters, {.kind = Kind::kTrivialAugment}},
  };
  return kDefinitions;
}

constexpr const char* kForm =
    "write names, or names with parameters: [flip, {color_jitter: {brightness: 0.4}}]; a parameter that is "
    "left "
    "out has a default";

Error wrong_augmentation(std::string what, std::string hint = kForm) {
  return {.code = ErrorCode::kInvalidArgument,
          .what = std::move(what),
          .where = "data.images.augment",
          .hint = std::move(hint)};
}

template <class Named>
std::vector<std::string> names(std::span<const Named> all) {
  std::vector<std::string> list;
  for (const Named& one : all) list.emplace_back(one.name);
  return list;
}

bool is_number(const Tree& value) {
  return value.kind == Tree::Kind::kInteger || value.kind == Tree::Kind::kNumber;
}

Error wrong_value(const Parameter& parameter, const Tree& value) {
  const bool pair = parameter.form != Parameter::Form::kNumber && parameter.form != Parameter::Form::kInteger;
  return wrong_augmentation(fmt::format("{} is {}, expected {} from {} to {}", parameter.name,
                                        value.describe(),
                                        parameter.form == Parameter::Form::kInteger ? "an integer"
                                        : pair                                      ? "a number or [from, to]"
                                                                                    : "a number",
                                        parameter.least, parameter.most));
}

Result<Range> range_of(const Parameter& parameter, const Tree& value) {
  using Form = Parameter::Form;
  const auto fits = [&](double x) { return x >= parameter.least && x <= parameter.most; };
  if (is_number(value) && value.number >= 0 && fits(value.number)) {
    if (parameter.form == Form::kFactor) return Range{std::max(0.0, 1 - value.number), 1 + value.number};
    if (parameter.form == Form::kShift) return Range{-value.number, value.number};
  }
  const bool pair = value.kind == Tree::Kind::kList && value.items.size() == 2 && is_number(value.items[0]) &&
                    is_number(value.items[1]);
  if (!pair) return wrong_value(parameter, value);
  const Range range = {value.items[0].number, value.items[1].number};
  if (!fits(range[0]) || !fits(range[1]) || range[0] > range[1]) return wrong_value(parameter, value);
  return range;
}

Status set(Augmentation& augmentation, const Parameter& parameter, const Tree& value) {
  if (parameter.range != nullptr) {
    PLIMSOLL_ASSIGN(augmentation.*parameter.range, range_of(parameter, value));
    return Ok{};
  }
  const bool whole = parameter.integer == nullptr || value.kind == Tree::Kind::kInteger;
  if (!is_number(value) || !whole || !(value.number >= parameter.least && value.number <= parameter.most))
    return wrong_value(parameter, value);
  if (parameter.integer != nullptr) {
    augmentation.*parameter.integer = value.integer;
  } else {
    augmentation.*parameter.number = value.number;
  }
  return Ok{};
}

Result<Augmentation> parse_one(std::string_view name, const Tree& parameters) {
  const auto all = definitions();
  const auto found = std::ranges::find(all, name, &Definition::name);
  if (found == all.end())
    return wrong_augmentation(fmt::format("there is no augmentation {}", name),
                              io::nearest_hint(name, names(all)));
  Augmentation augmentation = found->defaults;
  if (!parameters.is_null() && parameters.kind != Tree::Kind::kMap)
    return wrong_augmentation(
        fmt::format("{} is {}, expected its parameters by name", name, parameters.describe()));
  for (const auto& [key, value] : parameters.members) {
    const auto parameter = std::ranges::find(found->parameters, key, &Parameter::name);
    if (parameter == found->parameters.end())
      return wrong_augmentation(fmt::format("{} has no parameter {}", name, key),
                                io::nearest_hint(key, names(found->parameters)));
    PLIMSOLL_TRY(set(augmentation, *parameter, value));
  }
  if (augmentation.magnitude >= augmentation.num_magnitude_bins)
    return wrong_augmentation(fmt::format("magnitude is {}, expected less than num_magnitude_bins = {}",
                                          augmentation.magnitude, augmentation.num_magnitude_bins));
  return augmentation;
}

}  // namespace

Result<Augmentations> parse_augmentations(const Tree& list) {
  Augmentations augmentations;
  if (list.is_null()) return augmentations;
  if (list.kind != Tree::Kind::kList)
    return wrong_augmentation(fmt::format("it is {}, expected a list", list.describe()));
  constexpr size_t kMostAugmentations = 200;
  if (list.items.size() > kMostAugmentations)
    return wrong_augmentation("it names more than 200 augmentations");
  for (const Tree& item : list.items) {
    const bool named = item.kind == Tree::Kind::kMap && item.members.size() == 1;
    if (!named && item.kind != Tree::Kind::kString)
      return wrong_augmentation(
          fmt::format("an entry is {}, expected a name, or a name with its parameters", item.describe()));
    PLIMSOLL_ASSIGN(const Augmentation one, named ? parse_one(item.members[0].first, item.members[0].second)
                                                  : parse_one(item.text, Tree()));
    if (one.kind == Kind::kRandomResizedCrop && !augmentations.empty())
      return wrong_augmentation(
          "random_resized_crop stands first, since it takes the place of resize and crop");
    augmentations.push_back(one);
  }
  return augmentations;
}

}  // namespace plimsoll::images
