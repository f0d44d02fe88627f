#include "importing/settle.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::importing {

std::optional<int64_t> count_of(Draft& draft, const SourceKey* key, int64_t least) {
  if (key == nullptr) return {};
  const auto number = number_in(key->value);
  if (number && *number >= static_cast<double>(least) && *number < 0x1p40 && *number == std::floor(*number))
    return static_cast<int64_t>(*number);
  draft.wrong(*key, fmt::format("an integer of at least {}", least));
  return {};
}

std::optional<bool> switch_of(Draft& draft, const SourceKey* key) {
  if (key == nullptr) return {};
  const auto value = bool_in(key->value);
  if (!value) draft.wrong(*key, "true or false");
  return value;
}

void settle_batch(Draft& draft, const BatchKeys& keys) {
  const auto global = count_of(draft, keys.global, 1);
  const auto micro = count_of(draft, keys.micro, 1);
  const auto steps = count_of(draft, keys.accumulation, 1);
  if (!global && !micro && keys.default_micro == 0) {
    if (keys.accumulation != nullptr)
      draft.no_equal(*keys.accumulation, "without a batch it is not known what is accumulated");
    return draft.fill_in("training.global_batch_size", "sequences a step");
  }
  int64_t at_once = micro.value_or(keys.default_micro > 0 ? keys.default_micro : global.value_or(1));
  const int64_t all = global.value_or(at_once * steps.value_or(1));
  if (all > 1 << 24) {
    const SourceKey* key = keys.micro != nullptr ? keys.micro : keys.accumulation;
    return draft.wrong(key != nullptr ? *key : *keys.global, "a batch of at most 16777216 sequences");
  }
  if (all % at_once != 0 || (global && steps && all % (at_once * *steps) != 0)) {
    const SourceKey* key = keys.global != nullptr ? keys.global : keys.micro;
    if (key != nullptr)
      return draft.wrong(*key, fmt::format("a multiple of the {} sequences at once and {} of accumulation",
                                           at_once, steps.value_or(1)));
  }
  const auto factor = [](const SourceKey* key, int64_t value) {
    return key == nullptr ? fmt::format("{} by default", value) : fmt::format("{} {}", key->name, value);
  };
  const std::string product =
      global ? keys.global->name
             : fmt::format("{} x {}, times the devices where there were several", factor(keys.micro, at_once),
                           keys.accumulation == nullptr ? "1" : factor(keys.accumulation, steps.value_or(1)));
  draft.set("training.global_batch_size", io::Tree::of(all), product);
  if (keys.global != nullptr) draft.joined(*keys.global, "training.global_batch_size", "");
  if (keys.accumulation != nullptr)
    draft.joined(*keys.accumulation, "training.global_batch_size",
                 fmt::format("{} sequences at once make a step of {}", at_once, all));
  if (keys.micro != nullptr)
    draft.map(*keys.micro, "training.micro_batch_size", io::Tree::of(at_once),
              "auto would be the planner's choice, with bit-identical results");
}

void train_in_bf16(Draft& draft, const SourceKey& key, const std::string& why) {
  draft.map(key, "training.state.weights", io::Tree::of(std::string("bf16")), why);
  const std::string comment = "as " + key.name;
  const io::Tree bf16 = io::Tree::of(std::string("bf16"));
  draft.set("training.precision", bf16, comment);
  draft.set("training.state.master_weights", io::Tree::of(false), comment);
  draft.set("training.state.gradients", bf16, comment);
  draft.set("training.state.moments", bf16, comment);
  draft.set("training.state.rounding", io::Tree::of(std::string("nearest")), comment);
  draft.set("training.residual_in_fp32", io::Tree::of(false), comment);
}

void settle_data_file(Draft& draft, const SourceKey& key, const std::string& setting) {
  if (key.value.is_null()) return draft.harmless(key, "null has no effect");
  if (key.value.kind != io::Tree::Kind::kString && key.value.kind != io::Tree::Kind::kList)
    return draft.wrong(key, "the name of a file or a data set");
  const std::string& text = key.value.text;
  const auto ends = [&](std::string_view ending) { return text.ends_with(ending); };
  const bool is_file = key.value.kind == io::Tree::Kind::kList || ends(".jsonl") || ends(".json") ||
                       ends(".txt") || ends(".npy") || ends(".parquet") || ends(".csv") || ends(".arrow") ||
                       ends(".shard") || text.starts_with("/") || text.starts_with("./") ||
                       text.starts_with("../") || text.find('*') != std::string::npos;
  if (!is_file) {
    draft.fill_in(setting, fmt::format("{} is of the hub: save it as a file", key.value.describe()));
    return draft.no_equal(key, "nothing is downloaded: save it as JSON lines, and name the file", setting);
  }
  if (!draft.has(setting)) return draft.map(key, setting, key.value);
  // Several entries are joined.
  const Line* line = draft.line(setting);
  io::Tree list = line->value.kind == io::Tree::Kind::kList ? line->value : io::Tree::list({line->value});
  if (key.value.kind == io::Tree::Kind::kList)
    list.items.insert(list.items.end(), key.value.items.begin(), key.value.items.end());
  else
    list.items.push_back(key.value);
  draft.set(setting, list, line->comment + ", " + key.name);
  draft.joined(key, setting, "");
}

void ask_for_data_and_model(Draft& draft) {
  if (!draft.has("model.path"))
    draft.fill_in("model.path", "a Hugging Face model directory, or model.preset: a public family by name");
  if (!draft.has("data.train"))
    draft.fill_in("data.train", "a .jsonl, .csv, .parquet, .txt or .npy file, a list or a glob");
  if (!draft.has("data.sequence_length"))
    draft.fill_in("data.sequence_length", "tokens per sequence; 512 by default");
}

}  // namespace plimsoll::importing
