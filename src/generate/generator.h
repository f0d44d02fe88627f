// A batch of prompts on its way through a session's programs.
//
//   prompts ─► chunks of tokens ─► prefill ─► … ─► last token of each ─► decode ─► logits ─► sampler ─┐
//                                                       ▲                                             │
//                                                       └───────────────── next token ────────────────┘
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "generate/sampler.h"
#include "runtime/session.h"

namespace plimsoll::generate {

enum class Finish : uint8_t {
  kNone,        ///< not finished
  kEos,         ///< an end-of-sequence token came; it is the last of the ids
  kStop,        ///< by the caller, who has seen a text that ends it
  kLength,      ///< max_new_tokens
  kInterrupted  ///< by the caller
};
std::string_view name(Finish finish);

/// One prompt and what came of it.
struct Sequence {
  std::vector<int32_t> ids;  ///< the prompt, then the new tokens
  int64_t prompt_tokens = 0;
  /// Of the prompt's beginning: the row's cache holds them already, as an earlier prefill has left them.
  int64_t cached_tokens = 0;
  int64_t room_tokens = INT64_MAX;  ///< new tokens that there is room for, beside max_new_tokens
  uint32_t index = 0;               ///< among all prompts of the run: what its draws are keyed by
  Finish finish = Finish::kNone;

  [[nodiscard]] std::span<const int32_t> new_ids() const {
    return std::span(ids).subspan(static_cast<size_t>(prompt_tokens));
  }
};

struct GeneratorOptions {
  int64_t max_new_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<int32_t> eos_ids = {};
};

/// Wall seconds and tokens, summed over batches.
struct GenerationRates {
  int64_t prompt_tokens = 0, prefill_tokens = 0, new_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  double first_token_seconds = 0;  ///< of the first batch, from its beginning
  /// Growth of mappings from a batch's first token to its last, and large requests of the heap.
  int64_t allocations_after_first_token = 0;
};

/// Positions that a batch's rows need in the cache: of all tokens but the last one generated.
int64_t cache_tokens(int64_t longest_prompt, int64_t max_new_tokens);
/// Tokens of a prefill chunk for such prompts: about 256 tokens over all rows, in even shares; 0 where no
/// prompt has more than one token.
int64_t chunk_tokens(int64_t longest_prompt, int64_t batch_size, int64_t cache_tokens);

/// Drives a session of planner/programs/generation_programs.h. Allocates nothing after construction, where
/// the sequences have reserved their ids.
class Generator {
 public:
  /// Called with each new token, and once more per sequence when it has finished (`id` -1). False ends the
  /// sequence with that token.
  using OnToken = std::function<bool(const Sequence& sequence, int32_t id)>;

  /// The session must outlive the generator and have its weights.
  Generator(runtime::Session& session, const GeneratorOptions& options);
  /// Host memory that it holds.
  static int64_t memory_bytes(int64_t batch_size, int64_t vocab_size);

  /// Completes the sequences, at most as many as the programs have rows. A sequence's result depends neither
  /// on the others nor on its row. `stop` is asked before each program; once it says so, all that are not
  /// finished are kInterrupted. Errors: kBadData for logits that are not finite.
  Status run(std::span<Sequence> sequences, const OnToken& on_token, const std::function<bool()>& stop);
  [[nodiscard]] const GenerationRates& rates() const { return rates_; }

 private:
  Status prefill(std::span<const Sequence> sequences, const std::function<bool()>& stop);
  Status feed_chunk(std::span<const Sequence> sequences, int64_t start);
  Status feed_last(std::span<const Sequence> sequences);
  Status take(std::span<Sequence> sequences, const OnToken& on_token);
  Status take_token(Sequence& sequence, size_t row, const OnToken& on_token);

  runtime::Session& session_;
  GeneratorOptions options_;
  Sampler sampler_;
  std::vector<SeenTokens> seen_;  ///< by row, where there is a penalty
  int prefill_program_ = -1, decode_program_ = -1;
  int64_t cache_tokens_ = 0;
  int64_t rows_ = 0, chunk_columns_ = 0;
  runtime::BlockId chunk_, next_;  ///< of tokens and positions
  std::vector<float> logits_;      ///< rows × vocabulary
  GenerationRates rates_;
};

}  // namespace plimsoll::generate
