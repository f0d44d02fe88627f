#include "analysis/dimensions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/units.h"
#include "models/families.h"
#include "models/language_model.h"

namespace plimsoll::analysis {
namespace {

constexpr int64_t kMoreWords = 1024;

class Dimensions {
 public:
  Dimensions(const strategy::Variants& variants, const strategy::Prepared& base)
      : variants_(variants), base_(base), fields_(base.model_config.fields()) {
    if (const auto type = base.model_config.model_type())
      if (const models::Family* family = models::find_family(*type)) names_ = family->fields;
  }

  std::vector<DimensionRow> operator()() {
    one_more_sequence();
    twice_the_length();
    one_more_layer();
    wider();
    more_words();
    return std::move(rows_);
  }

 private:
  /// 0 where the configuration leaves it out.
  [[nodiscard]] int64_t size(const models::FieldNames& names) const {
    for (const std::string_view name : names)
      if (const io::Tree* value = fields_.find(name); value && value->kind == io::Tree::Kind::kInteger)
        return value->integer;
    return 0;
  }

  void set(io::Tree& overrides, const models::FieldNames& names, int64_t value) const {
    for (const std::string_view name : names)
      if (const io::Tree* field = fields_.find(name); field && !field->is_null())
        overrides.set(name, io::Tree::of(value));
  }

  /// The model with those fields over what the run puts over it.
  [[nodiscard]] strategy::SettingTexts model_with(const io::Tree& overrides) const {
    io::Tree all = variants_.config().model.overrides;
    all.merge(overrides);
    return {{"model.overrides", io::to_yaml_flow(all)}};
  }

  /// The run's split and what it computes again, by hand.
  [[nodiscard]] strategy::SettingTexts as_planned() const {
    strategy::SettingTexts settings = {
        {"training.micro_batch_size", std::to_string(base_.split.micro_batch_size)},
        {"training.gradient_accumulation_steps", std::to_string(base_.split.grad_accum_steps)}};
    if (const auto& set = base_.report.recompute_set; !set.empty() && chooses_recompute())
      settings.emplace_back("memory.recompute", fmt::format("{{layers: [{}]}}", fmt::join(set, ", ")));
    return settings;
  }

  [[nodiscard]] bool chooses_recompute() const {
    return variants_.config().memory.recompute.mode == settings::RecomputeMode::kAuto;
  }

  void add(std::string name, std::string dimension, double grows, strategy::SettingTexts changed) {
    strategy::SettingTexts settings = as_planned();
    for (auto& change : changed) {
      std::erase_if(settings, [&](const auto& s) { return s.first == change.first; });
      settings.push_back(std::move(change));
    }
    auto report = variants_.plan(settings);
    if (!report) return;
    if (!report->fits && chooses_recompute() && base_.report.recompute_set.empty()) {
      // Beyond the budget more would be computed again, and less added than the dimension takes.
      for (const planner::Budget& budget : base_.report.budgets)
        settings.emplace_back(budget.setting, std::to_string(int64_t{1} << 50));
      report = variants_.plan(settings);
      if (!report) return;
    }
    const int64_t peak = main_peak_bytes(*report);
    rows_.push_back({std::move(name), std::move(dimension), std::move(settings), peak,
                     peak - main_peak_bytes(base_.report), grows});
  }

  void one_more_sequence() {
    const int64_t micro = base_.split.micro_batch_size, count = base_.split.grad_accum_steps;
    add("one more sequence", "micro-batch size", 1.0 / static_cast<double>(micro),
        {{"training.global_batch_size", std::to_string((micro + 1) * count)},
         {"training.micro_batch_size", std::to_string(micro + 1)}});
  }

  /// Of tokens: images are of one size.
  void twice_the_length() {
    const models::LanguageModel* language = models::as_language_model(*base_.model);
    if (language == nullptr) return;
    const int64_t length = 2 * variants_.config().data.sequence_length;
    strategy::SettingTexts changed = {{"data.sequence_length", std::to_string(length)}};
    if (length > language->max_positions()) {
      io::Tree overrides = io::Tree::map();
      set(overrides, names_.positions, length);
      if (overrides.members.empty()) overrides.set(names_.positions[0], io::Tree::of(length));
      for (auto& setting : model_with(overrides)) changed.push_back(std::move(setting));
    }
    add("twice the length", "length", 1, std::move(changed));
  }

  void one_more_layer() {
    const int64_t layers = size(names_.layers);
    if (layers == 0) return;
    io::Tree overrides = io::Tree::map();
    set(overrides, names_.layers, layers + 1);
    for (const std::string_view name : names_.lists_of_layers) {
      const io::Tree* list = fields_.find(name);
      if (list == nullptr || list->kind != io::Tree::Kind::kList || list->items.empty()) continue;
      io::Tree longer = *list;
      longer.items.push_back(longer.items.back());
      overrides.set(name, std::move(longer));
    }
    add("one more layer", "number of layers", 1.0 / static_cast<double>(layers), model_with(overrides));
  }

  /// The heads keep their width and what shares a key; the rest follows in proportion.
  void wider() {
    const int64_t hidden = size(names_.hidden), heads = size(names_.heads);
    if (hidden == 0 || heads == 0) return;
    const int64_t kv = size(names_.kv_heads) == 0 ? heads : size(names_.kv_heads),
                  more = std::max<int64_t>(1, heads / kv);
    const int64_t wide = hidden * (heads + more) / heads;
    io::Tree overrides = io::Tree::map();
    set(overrides, names_.hidden, wide);
    set(overrides, names_.heads, heads + more);
    set(overrides, names_.kv_heads, kv + 1);
    set(overrides, names_.inner, size(names_.inner) * wide / hidden);
    add(fmt::format("hidden size {} for {}", wide, hidden), "hidden size",
        static_cast<double>(wide - hidden) / static_cast<double>(hidden), model_with(overrides));
  }

  void more_words() {
    const int64_t words = size(names_.vocabulary);
    if (words == 0) return;
    io::Tree overrides = io::Tree::map();
    set(overrides, names_.vocabulary, words + kMoreWords);
    add(fmt::format("{} more vocabulary entries", kMoreWords), "vocabulary",
        static_cast<double>(kMoreWords) / static_cast<double>(words), model_with(overrides));
  }

  const strategy::Variants& variants_;
  const strategy::Prepared& base_;
  const io::Tree& fields_;
  models::SizeFields names_ = {};  ///< of the family's config.json
  std::vector<DimensionRow> rows_;
};

}  // namespace

std::vector<DimensionRow> plan_dimensions(const strategy::Variants& variants,
                                          const strategy::Prepared& base) {
  return Dimensions(variants, base)();
}

io::Tree dimensions_event(const std::vector<DimensionRow>& rows) {
  std::vector<io::Tree> list;
  for (const DimensionRow& row : rows) {
    io::Tree settings = io::Tree::map();
    for (const auto& [path, value] : row.settings) settings.set(path, io::Tree::of(value));
    list.push_back(io::Tree::map({{"name", io::Tree::of(row.name)},
                                  {"settings", std::move(settings)},
                                  {"peak_bytes", io::Tree::of(row.peak_bytes)},
                                  {"added_bytes", io::Tree::of(row.added_bytes)}}));
  }
  return io::Tree::map(
      {{"event", io::Tree::of(std::string("dimensions"))}, {"rows", io::Tree::list(std::move(list))}});
}

}  // namespace plimsoll::analysis
