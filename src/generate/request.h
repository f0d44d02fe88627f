// The options of a generation, with defaults from the model's generation_config.json.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "generate/sampler.h"
#include "io/model_config.h"
#include "settings/run_config.h"

namespace plimsoll::generate {

/// Flags of `plimsoll generate`. Nothing: not given.
struct Request {
  std::string model = {};                        ///< a folder or a hub id of the local cache
  std::string adapter = {};                      ///< PEFT's directory of a LoRA; empty: none
  std::vector<std::string> prompts = {};         ///< texts; "-": standard input, to its end
  std::vector<std::string> text_files = {};      ///< a prompt each, whole
  std::vector<std::string> prompt_files = {};    ///< .txt: a prompt a line; .jsonl: as messages_files
  std::vector<std::string> messages_files = {};  ///< {"messages"}, {"prompt"} or {"ids"} a line; "-" as above
  std::vector<std::string> prompt_ids = {};      ///< "1,2,3"
  bool chat = false;                             ///< turns from standard input, unless there are prompts
  bool raw = false;                              ///< prompts go to the model as they are
  std::string system = {};                       ///< the first message of conversations without such a one
  std::string chat_template = {};                ///< a file; empty: the model's
  std::vector<std::string> stops = {};           ///< texts that end an answer and are no part of it
  std::optional<int64_t> max_new_tokens = {};
  std::optional<int64_t> context = {};  ///< positions of a chat
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, repetition_penalty = {};
  std::optional<int64_t> top_k = {};
  uint64_t seed = 42;
  std::string dtype = "fp32";                        ///< fp32, bf16: of weights, cache and products
  settings::QuantizationSettings quantization = {};  ///< of the linear maps, while loading
  std::optional<int64_t> batch_size = {};
  std::optional<int64_t> threads = {};
  std::string memory_budget = "auto";
  bool ignore_eos = false;
  bool stream = true;
  std::string dump_ir = {};
  bool timings = false;
  double process_start_seconds = 0;  ///< steady clock when the process began
  Stop stop = {};                    ///< asked often; ends it after the token at hand
  /// Takes back a Ctrl-C, which in a conversation on a terminal ends the answer alone.
  std::function<void()> forget_interrupt = {};
};

/// Whether turns come from standard input, one after the other.
bool is_interactive(const Request& request);

inline constexpr int64_t kDefaultNewTokens = 128;
inline constexpr int64_t kDefaultAnswerTokens = 512;  ///< of a turn of a chat

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
/// top_p, asks for sampling as well, and --temperature 0 for none. top_k, top_p and min_p are off unless
/// given. Errors: kInvalidArgument for flags, kBadData for files out of range.
Result<Resolved> resolve(const Request& request, const io::ConfigJson& generation,
                         const io::ConfigJson& config, int64_t vocab_size);

}  // namespace plimsoll::generate
