// Masked language modelling: tokens that are hidden are predicted from those on both sides. Devlin et al.
// 2018, arXiv:1810.04805. The head sees the rows of the hidden tokens alone.
#include <algorithm>
#include <array>
#include <utility>

#include "datasets/causal_source.h"
#include "datasets/token_masking.h"
#include "models/classifier.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

/// The order of the inputs.
struct MaskedRow {
  static constexpr size_t kTokens = 0, kPlaces = 1, kTargets = 2, kDocStart = 3;
};

/// Sequences of a language model, masked: of what is trained on anew in each epoch, of what is evaluated
/// always alike, whatever the run's seed.
class MaskedSource final : public datasets::ExampleSource {
 public:
  struct Options {
    datasets::MaskingRules rules;
    bool documents = false;  ///< attention stays within the documents of a sequence
    bool trains = false;
  };
  MaskedSource(std::unique_ptr<datasets::ExampleSource> sequences, const datasets::TokenKinds& kinds,
               const Options& options)
      : sequences_(std::move(sequences)), masker_(options.rules, kinds), options_(options) {}

  [[nodiscard]] int64_t num_examples() const override { return sequences_->num_examples(); }
  [[nodiscard]] int64_t num_units() const override { return sequences_->num_units(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return sequences_->scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const override {
    return sequences_->length(index, scratch);
  }
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> scratch) const override {
    return read_in_epoch(index, 0, row, scratch);
  }
  Result<datasets::ExampleCounts> read_in_epoch(int64_t index, int64_t epoch, datasets::ExampleRow row,
                                                std::span<std::byte> scratch) const override {
    const std::array<std::span<std::byte>, 3> parts = {
        row[MaskedRow::kTokens], {}, row[MaskedRow::kDocStart]};
    PLIMSOLL_ASSIGN(datasets::ExampleCounts counts, sequences_->read(index, parts, scratch));
    const auto count = static_cast<size_t>(counts.units);
    const auto doc_start = datasets::row_as<int32_t>(row[MaskedRow::kDocStart]);
    if (!options_.documents) std::fill_n(doc_start.begin(), count, 0);
    // Padding is documents of one token.
    for (size_t i = count; i < doc_start.size(); ++i) doc_start[i] = static_cast<int32_t>(i);
    counts.targets = masker_(index, options_.trains ? epoch : 0,
                             {.tokens = datasets::row_as<int32_t>(row[MaskedRow::kTokens]).first(count),
                              .doc_start = doc_start.first(count),
                              .places = datasets::row_as<int32_t>(row[MaskedRow::kPlaces]),
                              .targets = datasets::row_as<int32_t>(row[MaskedRow::kTargets])});
    return counts;
  }
  Status keep_within(int64_t& room) override { return sequences_->keep_within(room); }
  Result<uint64_t> fingerprint(std::span<std::byte> scratch) const override {
    return sequences_->fingerprint(scratch);
  }
  [[nodiscard]] const datasets::PackReport* pack_report() const override { return sequences_->pack_report(); }
  [[nodiscard]] std::string index_path() const override { return sequences_->index_path(); }

 private:
  std::unique_ptr<datasets::ExampleSource> sequences_;
  datasets::TokenMasker masker_;
  Options options_;
};

class MaskedLm final : public Task {
 public:
  MaskedLm(const datasets::MaskingRules& rules, bool documents, const TokenSizes& sizes)
      : rules_(rules),
        documents_(documents),
        sizes_(sizes),
        capacity_(datasets::mask_capacity(rules, sizes.longest)) {
    inputs_.push_back(datasets::token_tensor("tokens", 0));
    inputs_.push_back(
        {.name = "masked", .shape = {capacity_}, .padding_bits = datasets::element_bits(datasets::kNoPlace)});
    inputs_.push_back({.name = "targets",
                       .shape = {capacity_},
                       .padding_bits = datasets::element_bits(datasets::kNoTarget)});
    inputs_.push_back(datasets::token_tensor("doc_start", 0, datasets::Padding::kIndex));
  }
  [[nodiscard]] Unit unit() const override { return kTokens; }
  [[nodiscard]] std::string_view loss_unit() const override { return "masked tokens"; }
  [[nodiscard]] bool has_perplexity() const override { return true; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const ir::ValueId values = models::language_model(model).masked_logits(b, forward_of(inputs, operands),
                                                                           inputs[MaskedRow::kPlaces]);
    const auto scope = b.scope("lm_head");
    const auto loss =
        ops::cross_entropy(b, values, inputs[MaskedRow::kTargets], operands.grad_scale, operands.acc);
    return {loss.loss, operands.logits ? values : ir::ValueId{}};
  }
  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return models::language_model(model).masked_logits(b, forward_of(inputs, {}), inputs[MaskedRow::kPlaces]);
  }
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override {
    return {batch, capacity_, sizes_.vocab_size};
  }

  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override {
    datasets::SourceOptions own = options;
    own.vocab_size = sizes_.vocab_size;
    PLIMSOLL_ASSIGN(auto sequences, datasets::open_causal_source(files, own));
    PLIMSOLL_CHECK(options.token_kinds != nullptr, "masking without what preparing the data says of tokens");
    datasets::MaskingRules rules = rules_;
    if (!options.augments) rules.seed = 0;
    rules.source = options.source;
    return std::unique_ptr<datasets::ExampleSource>(
        std::make_unique<MaskedSource>(std::move(sequences), *options.token_kinds,
                                       MaskedSource::Options{rules, documents_, options.augments}));
  }

  /// Of which kind each id is.
  [[nodiscard]] int64_t source_bytes() const override { return sizes_.vocab_size; }

  [[nodiscard]] datasets::ExampleCounts drawn_counts() const override { return {sizes_.longest, drawn()}; }
  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    const auto next = [&] {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<int32_t>((seed >> 33) % static_cast<uint64_t>(sizes_.vocab_size));
    };
    const std::span<int32_t> tokens = datasets::row_as<int32_t>(row[MaskedRow::kTokens]),
                             places = datasets::row_as<int32_t>(row[MaskedRow::kPlaces]),
                             targets = datasets::row_as<int32_t>(row[MaskedRow::kTargets]);
    std::ranges::generate(tokens, next);
    std::ranges::fill(datasets::row_as<int32_t>(row[MaskedRow::kDocStart]), 0);
    std::ranges::fill(places, datasets::kNoPlace);
    std::ranges::fill(targets, datasets::kNoTarget);
    const auto count = std::min<size_t>(static_cast<size_t>(drawn()), tokens.size());
    for (size_t i = 0; i < count; ++i) {
      places[i] = static_cast<int32_t>(i * tokens.size() / count);
      targets[i] = next();
    }
  }

 private:
  static models::Forward forward_of(std::span<const ir::ValueId> inputs, const LossOperands& operands) {
    return {.tokens = inputs[MaskedRow::kTokens],
            .doc_start = inputs[MaskedRow::kDocStart],
            .training = operands.training,
            .random = operands.random};
  }
  /// Tokens of a drawn example that are masked: as many as are expected.
  [[nodiscard]] int64_t drawn() const {
    const auto expected = static_cast<int64_t>(rules_.probability * static_cast<double>(sizes_.longest));
    return std::clamp<int64_t>(expected, 1, capacity_);
  }

  const datasets::MaskingRules rules_;
  const bool documents_;
  const TokenSizes sizes_;
  const int64_t capacity_;
};

Result<std::unique_ptr<Task>> make_masked(const TaskInputs& inputs) {
  const models::LanguageModel& model = models::language_model(inputs.model);
  return std::unique_ptr<Task>(std::make_unique<MaskedLm>(
      inputs.masking, inputs.packs_documents,
      TokenSizes{.vocab_size = model.vocab_size(), .longest = inputs.sequence_length}));
}

Status check_masked(const io::ConfigJson& model) {
  if (models::is_encoder(model)) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "task is masked_lm, and the model is no encoder of text",
               model.source(), "name a BERT, RoBERTa or DistilBERT, or set task=causal_lm"};
}

constexpr std::array kMaskedSettings =
    joined(kTokenSettings, std::array<std::string_view, 4>{"data.long_documents", "data.packing_window",
                                                           "data.add_special_tokens", "mlm."});

}  // namespace

const TaskDef& masked_lm() {
  static constexpr TaskDef kDef = {.name = "masked_lm",
                                   .trains = "masked language model",
                                   .pipeline = "fill-mask",
                                   .preparation = Preparation::kPack,
                                   .make = make_masked,
                                   .masks = true,
                                   .is_made_for = io::is_masked_lm,
                                   .check = check_masked,
                                   .adapt = models::as_masked_lm,
                                   .settings = kMaskedSettings};
  return kDef;
}

}  // namespace plimsoll::tasks
