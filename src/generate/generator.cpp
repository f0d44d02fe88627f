#include "generate/generator.h"

#include <algorithm>

#include "base/process.h"
#include "planner/generation_programs.h"

namespace plimsoll::generate {
namespace {}  // namespace

std::string_view name(Finish finish) {
  switch (finish) {
    case Finish::kEos:
      return "eos";
    case Finish::kLength:
      return "length";
    case Finish::kInterrupted:
      return "interrupted";
    case Finish::kNone:
      break;
  }
  return "none";
}

int64_t cache_tokens(int64_t longest_prompt, int64_t max_new_tokens) {
  return longest_prompt + max_new_tokens - 1;
}

int64_t chunk_tokens(int64_t longest_prompt, int64_t batch_size, int64_t cache_tokens) {
  // GEMMs reach their rate at some 256 rows; chunks of fewer than 64 tokens would attend in broken tiles.
  constexpr int64_t kRows = 256, kLeast = 64, kUnit = 16;
  const int64_t tokens = longest_prompt - 1;
  if (tokens <= 0) return 0;
  const int64_t most = std::max(kLeast, kRows / batch_size / kLeast * kLeast);
  const int64_t share = ceil_div(tokens, ceil_div(tokens, most));
  return std::min(round_up(share, kUnit), cache_tokens);
}

Generator::Generator(runtime::Session& session, const GeneratorOptions& options)
    : session_(session),
      options_(options),
      sampler_(options.sampling, session.state(planner::kNextLogitsState).shape().dim(-1)),
      prefill_program_(session.plan().find_program(planner::kPrefillProgram)),
      decode_program_(session.plan().find_program(planner::kDecodeProgram)),
      next_(session.state(planner::kNextState)),
      start_(session.state(planner::kStartState)),
      logits_(session.state(planner::kNextLogitsState)) {
  cache_tokens_ = session.plan().find_state("cache.k.0")->decl.type.shape.dim(1);
  if (prefill_program_ >= 0) chunk_ = session.state(planner::kChunkState);
  if (options.sampling.repetition_penalty != 1)
    seen_.assign(static_cast<size_t>(next_.shape().dim(0)), SeenTokens(logits_.shape().dim(-1)));
}

int64_t Generator::memory_bytes(int64_t batch_size, int64_t vocab_size) {
  return Sampler::memory_bytes(vocab_size) + batch_size * SeenTokens::memory_bytes(vocab_size);
}

/// All rows stand at the same place; what a row has not is token 0.
void Generator::feed_chunk(std::span<const Sequence> sequences, int64_t start) {
  const int64_t columns = chunk_.shape().dim(1);
  std::fill_n(chunk_.as<int32_t>(), chunk_.num_elements(), 0);
  std::fill_n(start_.as<int32_t>(), start_.num_elements(), static_cast<int32_t>(start));
  for (size_t row = 0; row < sequences.size(); ++row) {
    const std::vector<int32_t>& ids = sequences[row].ids;
    const int64_t end = std::min(start + columns, sequences[row].prompt_tokens - 1);
    if (start < end)
      std::copy(ids.begin() + start, ids.begin() + end,
                chunk_.as<int32_t>() + static_cast<int64_t>(row) * columns);
  }
}

/// The last chunk is moved back so that it ends with the cache: what it writes once more are the same bits.
Status Generator::prefill(std::span<const Sequence> sequences, const std::function<bool()>& stop) {
  int64_t longest = 0;
  for (const Sequence& s : sequences) longest = std::max(longest, s.prompt_tokens - 1);
  for (int64_t done = 0; done < longest && !stop();) {
    const int64_t columns = chunk_.shape().dim(1);
    feed_chunk(sequences, std::min(done, cache_tokens_ - columns));
    session_.run(prefill_program_);
    done += columns;
  }
  return Ok{};
}

/// Rows that have finished stay at their last token, and write the same once more.
void Generator::feed_last(std::span<const Sequence> sequences) {
  std::fill_n(next_.as<int32_t>(), next_.num_elements(), 0);
  std::fill_n(start_.as<int32_t>(), start_.num_elements(), 0);
  for (size_t row = 0; row < sequences.size(); ++row) {
    const Sequence& s = sequences[row];
    const size_t last = s.ids.size() - (s.finish == Finish::kNone ? 1 : 2);
    next_.as<int32_t>()[row] = s.ids[last];
    start_.as<int32_t>()[row] = static_cast<int32_t>(last);
  }
}

Status Generator::take_token(Sequence& s, size_t row, const OnToken& on_token) {
  const auto vocab = static_cast<size_t>(logits_.shape().dim(-1));
  const std::span<float> logits(logits_.as<float>() + row * vocab, vocab);
  if (!seen_.empty()) seen_[row].penalise(logits, options_.sampling.repetition_penalty);
  PLIMSOLL_ASSIGN(const int32_t id, sampler_.next(logits, s.index, static_cast<uint32_t>(s.ids.size())));
  s.ids.push_back(id);
  ++rates_.new_tokens;
  if (!seen_.empty()) seen_[row].add(id);
  const auto& eos = options_.eos_ids;
  if (std::find(eos.begin(), eos.end(), id) != eos.end())
    s.finish = Finish::kEos;
  else if (static_cast<int64_t>(s.new_ids().size()) >= options_.max_new_tokens)
    s.finish = Finish::kLength;
  on_token(s, id);
  if (s.finish != Finish::kNone) on_token(s, -1);
  return Ok{};
}

Status Generator::take(std::span<Sequence> sequences, const OnToken& on_token) {
  for (size_t row = 0; row < sequences.size(); ++row)
    if (sequences[row].finish == Finish::kNone) PLIMSOLL_TRY(take_token(sequences[row], row, on_token));
  return Ok{};
}

Status Generator::run(std::span<Sequence> sequences, const OnToken& on_token,
                      const std::function<bool()>& stop) {
  PLIMSOLL_CHECK(static_cast<int64_t>(sequences.size()) <= next_.shape().dim(0));
  double start = now_seconds();
  for (size_t row = 0; row < sequences.size(); ++row) {
    const Sequence& s = sequences[row];
    rates_.prompt_tokens += s.prompt_tokens;
    rates_.prefill_tokens += s.prompt_tokens - 1;
    if (seen_.empty()) continue;
    seen_[row].clear();
    for (const int32_t id : s.ids) seen_[row].add(id);
  }
  PLIMSOLL_TRY(prefill(sequences, stop));
  rates_.prefill_seconds += now_seconds() - start;
  const auto unfinished = [&] {
    return std::any_of(sequences.begin(), sequences.end(),
                       [](const Sequence& s) { return s.finish == Finish::kNone; });
  };
  start = now_seconds();
  int64_t virtual_first = 0, large_first = 0;
  while (unfinished() && !stop()) {
    feed_last(sequences);
    session_.run(decode_program_);
    PLIMSOLL_TRY(take(sequences, on_token));
    if (virtual_first != 0) continue;
    virtual_first = virtual_bytes();
    large_first = num_large_allocations();
    if (rates_.first_token_seconds == 0)
      rates_.first_token_seconds = rates_.prefill_seconds + now_seconds() - start;
  }
  rates_.allocations_after_first_token +=
      num_large_allocations() - large_first + (virtual_bytes() > virtual_first ? 1 : 0);
  rates_.decode_seconds += now_seconds() - start;
  for (Sequence& s : sequences)
    if (s.finish == Finish::kNone) {
      s.finish = Finish::kInterrupted;
      on_token(s, -1);
    }
  return Ok{};
}

}  // namespace plimsoll::generate
