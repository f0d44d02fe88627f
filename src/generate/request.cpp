#include "generate/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plimsoll::generate {
namespace {

struct Range {
  const char* flag;
  double least, most;
  bool above_least = false;  ///< the lower end itself is excluded
};

Status check_flag(const std::optional<double>& value, const Range& r) {
  if (!value ||
      (std::isfinite(*value) && (r.above_least ? *value > r.least : *value >= r.least) && *value <= r.most))
    return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is {}", r.flag, *value),
               {},
               fmt::format("give a number {} {}{}", r.above_least ? "above" : "from", r.least,
                           r.most < 1e6 ? fmt::format(" to {}", r.most) : "")};
}

std::optional<double> as_number(const std::optional<int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

Status check_flags(const Request& r) {
  constexpr double kMost = 1e9;
  PLIMSOLL_TRY(check_flag(r.temperature, {"--temperature", 0, kMost}));
  PLIMSOLL_TRY(check_flag(r.top_p, {"--top-p", 0, 1, true}));
  PLIMSOLL_TRY(check_flag(r.min_p, {"--min-p", 0, 1}));
  PLIMSOLL_TRY(check_flag(r.repetition_penalty, {"--repetition-penalty", 0, kMost, true}));
  PLIMSOLL_TRY(check_flag(as_number(r.top_k), {"--top-k", 0, kMost}));
  PLIMSOLL_TRY(check_flag(as_number(r.max_new_tokens), {"--max-new-tokens", 1, kMost}));
  PLIMSOLL_TRY(check_flag(as_number(r.batch_size), {"--batch-size", 1, 65536}));
  PLIMSOLL_TRY(check_flag(as_number(r.context), {"--context", 2, kMost}));
  return check_flag(as_number(r.threads), {"--threads", 1, 1024});
}

Error usage(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), "plimsoll generate", std::move(hint)};
}

/// Flags that contradict each other.
Status check_together(const Request& r) {
  if (r.raw && (r.chat || !r.system.empty() || !r.chat_template.empty()))
    return usage("--raw turns the chat template off, which --chat, --system and --chat-template need",
                 "give one or the other");
  if (r.context && !is_interactive(r))
    return usage("--context is for a chat from standard input",
                 "prompts use the memory that they and --max-new-tokens need");
  for (const std::string& stop : r.stops)
    if (stop.empty()) return usage("a --stop text is empty", "name the text that ends an answer");
  const auto from_stdin = std::ranges::count(r.prompts, "-") + std::ranges::count(r.messages_files, "-");
  if (from_stdin > 1) return usage("standard input is named twice", "it can be read once: give one '-'");
  return Ok{};
}

/// What transformers takes where a model samples and its file does not say (GenerationConfig).
constexpr int64_t kTopKOfTransformers = 50;
/// Below it the likeliest token alone is left, and quotients of logits overflow.
constexpr double kLeastTemperature = 1e-6;

Result<SamplingOptions> sampling(const Request& r, const io::ConfigJson& file) {
  SamplingOptions s{.seed = r.seed};
  PLIMSOLL_ASSIGN(const bool samples, file.boolean("do_sample", false));
  PLIMSOLL_ASSIGN(const double temperature, file.number("temperature", {0, 1e9}, 1.0));
  PLIMSOLL_ASSIGN(const int64_t top_k,
                  file.integer("top_k", {0, int64_t{1} << 30}, samples ? kTopKOfTransformers : 0));
  PLIMSOLL_ASSIGN(const double top_p, file.number("top_p", {0, 1}, 1.0));
  PLIMSOLL_ASSIGN(const double min_p, file.number("min_p", {0, 1}, 0.0));
  PLIMSOLL_ASSIGN(const double penalty, file.number("repetition_penalty", {1e-6, 1e9}, 1.0));
  const bool asked = (r.top_k && *r.top_k > 0) || (r.top_p && *r.top_p < 1) || (r.min_p && *r.min_p > 0);
  s.temperature = r.temperature.value_or(samples || asked ? temperature : 0.0);
  if (s.temperature < kLeastTemperature) s.temperature = 0;
  s.top_k = r.top_k.value_or(top_k);
  s.top_p = r.top_p.value_or(top_p);
  s.min_p = r.min_p.value_or(min_p);
  s.repetition_penalty = r.repetition_penalty.value_or(penalty);
  return s;
}

/// Fields that change what transformers generates, with the value that changes nothing.
Status note_unused(const io::ConfigJson& file, Resolved& resolved) {
  constexpr std::pair<const char*, double> kNeutral[] = {
      {"num_beams", 1},      {"num_beam_groups", 1}, {"no_repeat_ngram_size", 0},
      {"typical_p", 1},      {"epsilon_cutoff", 0},  {"eta_cutoff", 0},
      {"min_length", 0},     {"min_new_tokens", 0},  {"penalty_alpha", 0},
      {"guidance_scale", 1}, {"top_h", 0},           {"diversity_penalty", 0}};
  for (const auto& [field, neutral] : kNeutral) {
    const io::Tree* value = file.fields().find(field);
    const bool acts = value != nullptr && !value->is_null() && value->number != neutral;
    if (acts) resolved.notes.push_back(fmt::format("generation_config.json: {} is not used", field));
  }
  for (const char* field : {"bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias",
                            "forced_bos_token_id", "forced_eos_token_id", "stop_strings"})
    if (file.has(field))
      resolved.notes.push_back(fmt::format("generation_config.json: {} is not used", field));
  return Ok{};
}

/// From the first of the two files that has the field; ids of the vocabulary.
Result<std::vector<int32_t>> token_ids(const char* field, const io::ConfigJson& generation,
                                       const io::ConfigJson& config, int64_t vocab_size) {
  const io::ConfigJson& file = generation.has(field) ? generation : config;
  std::vector<int32_t> ids;
  // Configurations of test models name special tokens of vocabularies larger than theirs: those never come.
  PLIMSOLL_ASSIGN(const std::vector<int64_t> all, file.integers(field, {-1, INT32_MAX}));
  for (const int64_t id : all)
    if (id >= 0 && id < vocab_size) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

}  // namespace

bool is_interactive(const Request& r) {
  return r.chat && r.prompts.empty() && r.text_files.empty() && r.prompt_files.empty() &&
         r.messages_files.empty() && r.prompt_ids.empty();
}

Result<Resolved> resolve(const Request& request, const io::ConfigJson& generation,
                         const io::ConfigJson& config, int64_t vocab_size) {
  PLIMSOLL_TRY(check_flags(request));
  PLIMSOLL_TRY(check_together(request));
  Resolved resolved;
  PLIMSOLL_ASSIGN(resolved.sampling, sampling(request, generation));
  PLIMSOLL_ASSIGN(const auto in_file, generation.optional_integer("max_new_tokens", {1, 1'000'000'000}));
  const std::optional<int64_t> given = request.max_new_tokens ? request.max_new_tokens : in_file;
  resolved.max_new_tokens =
      given.value_or(is_interactive(request) ? kDefaultAnswerTokens : kDefaultNewTokens);
  resolved.max_new_tokens_given = given.has_value();
  if (!request.ignore_eos) {
    PLIMSOLL_ASSIGN(resolved.eos_ids, token_ids("eos_token_id", generation, config, vocab_size));
  }
  PLIMSOLL_ASSIGN(const auto bos, token_ids("bos_token_id", generation, config, vocab_size));
  if (!bos.empty()) resolved.bos_id = bos.front();
  PLIMSOLL_TRY(note_unused(generation, resolved));
  return resolved;
}

}  // namespace plimsoll::generate
