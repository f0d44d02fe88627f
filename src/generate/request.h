// What the user asks of a generation, and how the model's generation_config.json fills in what was not said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "generate/sampler.h"
#include "io/model_config.h"

namespace plimsoll::generate {

/// Flags of `plimsoll generate`. Nothing: not given.
struct Request {
  std::string model = {};                 ///< a folder or a hub id of the local cache
  std::vector<std::string> prompts = {};  ///< texts
  std::vector<std::string> prompt_files =
      {};                                    ///< .txt: a prompt a line; .jsonl: {"prompt"} or {"ids"} a line
  std::vector<std::string> prompt_ids = {};  ///< "1,2,3"
  std::optional<int64_t> max_new_tokens = {};
  std::optional<double> temperature = {}, top_p = {}, repetition_penalty = {};
  std::optional<int64_t> top_k = {};
  uint64_t seed = 42;
  std::optional<int64_t> batch_size = {};
  std::optional<int64_t> threads = {};
  std::string memory_budget = "auto";
  bool ignore_eos = false;
  bool json = false;
  bool stream = true;
  std::string dump_ir = {};
  bool timings = false;
  double process_start_seconds = 0;  ///< steady clock when the process began
};

inline constexpr int64_t kDefaultNewTokens = 128;

/// A request with the model's defaults.
struct Resolved {
  SamplingOptions sampling = {};
  int64_t max_new_tokens = kDefaultNewTokens;
  bool max_new_tokens_given = false;  ///< by flag or file: it is not shortened to fit
  std::vector<int32_t> eos_ids = {};
  std::optional<int32_t> bos_id = {};
  std::vector<std::string> notes = {};  ///< fields of generation_config.json that would act in transformers
};

/// Flags win; then generation_config.json (`generation`); then config.json (`config`: bos and eos). As in
/// transformers the model samples by itself where do_sample is true; a temperature above 0, or top_k or
/// top_p, asks for sampling as well, and --temperature 0 for none. top_k and top_p are off unless given.
/// Errors: kInvalidArgument for flags, kBadData for files out of range.
Result<Resolved> resolve(const Request& request, const ConfigJson& generation, const ConfigJson& config,
                         int64_t vocab_size);

}  // namespace plimsoll::generate
