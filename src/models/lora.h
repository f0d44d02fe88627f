// Low-rank adapters of a model's linear layers and embeddings, as PEFT's LoraConfig describes them: the
// adapted modules, their rank and scale, and other trained parameters. Hu et al. 2021,
// arXiv:2106.09685; rank-stabilised scales: Kalajdzievski 2023, arXiv:2312.03732.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace plimsoll::models {

/// Modules as PEFT names them: a list of names, each a module's or what it ends with behind a dot; or one
/// pattern, a regular expression (ECMAScript's) of whole names.
struct ModuleNames {
  std::vector<std::string> names = {};
  bool is_pattern = false;  ///< names has one entry, written as a plain string
  [[nodiscard]] bool given() const { return !names.empty(); }
  bool operator==(const ModuleNames&) const = default;
};

enum class LoraBias : uint8_t { kNone, kAll, kLoraOnly };
/// kTrue: A uniform in ±1/sqrt(in), B zero; kGaussian: A normal with deviation 1/r, B zero; kFalse: both
/// uniform in ±1/sqrt(columns). kPissa, kOlora, kLoftq: what Factors take from the base.
enum class LoraInit : uint8_t { kTrue, kFalse, kGaussian, kPissa, kOlora, kLoftq };

/// Rows of an embedding that learn.
struct TrainableTokens {
  std::string module = {};           ///< empty: the input embedding
  std::vector<int64_t> tokens = {};  ///< ascending
  bool operator==(const TrainableTokens&) const = default;
};

/// Embedding or head that an adapter's file holds whole.
struct BroughtTensor {
  std::string view = {};  ///< of the model
  std::string key = {};   ///< of the file
  std::vector<int64_t> shape = {};
};

/// PEFT's names, meanings and defaults.
struct LoraSpec {
  int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0;
  ModuleNames target_modules = {};  ///< not given: PEFT's for the family
  ModuleNames exclude_modules = {};
  std::vector<int64_t> layers_to_transform = {};
  std::vector<std::string> layers_pattern = {};
  bool use_rslora = false;
  LoraBias bias = LoraBias::kNone;
  std::vector<std::string> modules_to_save = {};
  std::vector<std::pair<std::string, int64_t>> rank_pattern = {};  ///< by pattern of a name's end
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
  LoraInit init_lora_weights = LoraInit::kTrue;
  Loftq loftq_config = {};
  bool use_dora = false;
  bool lora_bias = false;  ///< B has one
  TrainableTokens trainable_token_indices = {};
  std::vector<BroughtTensor> brought = {};  ///< of an adapter that is opened
  bool resized = false;                     ///< its vocabulary is not the base's (fit_vocabulary)
};

/// An adapter that was trained with tokens added brings embedding and head of its own size: the base's config
/// gets that vocab_size, as PEFT's users resize the base before they open it. Whether that was so.
bool fit_vocabulary(LoraSpec& spec, io::ConfigJson& config);

/// Adds the adapters to the model. A classifier's head learns too, as PEFT's task type SEQ_CLS has it.
/// `strict`: by settings, of which each name and pattern must match something. Else by an adapter's own
/// files, which PEFT opens where some of them match nothing: Adapters::unmatched says which. Errors:
/// kInvalidArgument naming the setting and the nearest names: names that match nothing, no adapter at all, a
/// pattern that is none, a module that is both adapted and saved whole, a tied head that would learn whole;
/// not strict: kBadData.
Status add_adapters(Model& model, const LoraSpec& spec, std::string_view model_type, bool strict = true);

}  // namespace plimsoll::models
