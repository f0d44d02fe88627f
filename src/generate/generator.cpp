#include "generate/generator.h"

#include <algorithm>

#include "base/process.h"
#include "planner/programs/generation_programs.h"

namespace plimsoll::generate {
std::string_view name(Finish finish) {
  switch (finish) {
    case Finish::kEos:
      return "eos";
    case Finish::kStop:
      return "stop";
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
      sampler_(options.sampling, session.type(planner::kNextLogitsState).shape.dim(-1)),
      prefill_program_(session.plan().find_program({passes::ProgramRole::kPrefill})),
      decode_program_(session.plan().find_program({passes::ProgramRole::kDecode})),
      rows_(session.type(planner::kNextState).shape.dim(0)),
      next_(session.make_block({planner::kNextState, planner::kStartState})) {
  const ir::TensorType& logits = session.type(planner::kNextLogitsState);
  logits_.resize(static_cast<size_t>(logits.num_elements()));
  cache_tokens_ = session.type("cache.k.0").shape.dim(1);
  if (prefill_program_ >= 0) {
    chunk_ = session.make_block({planner::kChunkState, planner::kStartState});
    chunk_columns_ = session.type(planner::kChunkState).shape.dim(1);
  }
  if (options.sampling.repetition_penalty != 1)
    seen_.assign(static_cast<size_t>(rows_), SeenTokens(logits.shape.dim(-1)));
}

int64_t Generator::memory_bytes(int64_t batch_size, int64_t vocab_size) {
  return Sampler::memory_bytes(vocab_size) + batch_size * SeenTokens::memory_bytes(vocab_size) +
         batch_size * vocab_size * static_cast<int64_t>(sizeof(float));
}

/// All rows stand at the same place; what a row has not is token 0.
Status Generator::feed_chunk(std::span<const Sequence> sequences, int64_t start) {
  PLIMSOLL_TRY(session_.begin(chunk_));
  const std::span<int32_t> tokens = session_.of<int32_t>(chunk_, 0);
  std::ranges::fill(tokens, 0);
  std::ranges::fill(session_.of<int32_t>(chunk_, 1), static_cast<int32_t>(start));
  for (size_t row = 0; row < sequences.size(); ++row) {
    const std::vector<int32_t>& ids = sequences[row].ids;
    const int64_t end = std::min(start + chunk_columns_, sequences[row].prompt_tokens - 1);
    if (start < end)
      std::copy(ids.begin() + start, ids.begin() + end,
                tokens.begin() + static_cast<int64_t>(row) * chunk_columns_);
  }
  return session_.commit(chunk_);
}

/// The last chunk is moved back so that it ends with the cache: what it writes once more are the same bits.
Status Generator::prefill(std::span<const Sequence> sequences, const std::function<bool()>& stop) {
  int64_t longest = 0, cached = cache_tokens_;
  for (const Sequence& s : sequences) {
    longest = std::max(longest, s.prompt_tokens - 1);
    cached = std::min(cached, s.cached_tokens);
  }
  for (int64_t done = cached; done < longest && !stop();) {
    PLIMSOLL_TRY(feed_chunk(sequences, std::min(done, cache_tokens_ - chunk_columns_)));
    PLIMSOLL_TRY(session_.run(prefill_program_));
    done += chunk_columns_;
  }
  return session_.synchronize();
}

/// Rows that have finished stay at their last token, and write the same once more.
Status Generator::feed_last(std::span<const Sequence> sequences) {
  PLIMSOLL_TRY(session_.begin(next_));
  const std::span<int32_t> next = session_.of<int32_t>(next_, 0), start = session_.of<int32_t>(next_, 1);
  std::ranges::fill(next, 0);
  std::ranges::fill(start, 0);
  for (size_t row = 0; row < sequences.size(); ++row) {
    const Sequence& s = sequences[row];
    const size_t last = s.ids.size() - (s.finish == Finish::kNone ? 1 : 2);
    next[row] = s.ids[last];
    start[row] = static_cast<int32_t>(last);
  }
  return session_.commit(next_);
}

Status Generator::take_token(Sequence& s, size_t row, const OnToken& on_token) {
  const size_t vocab = logits_.size() / static_cast<size_t>(rows_);
  const std::span<float> logits = std::span(logits_).subspan(row * vocab, vocab);
  if (!seen_.empty()) seen_[row].penalise(logits, options_.sampling.repetition_penalty);
  PLIMSOLL_ASSIGN(const int32_t id, sampler_.next(logits, s.index, static_cast<uint32_t>(s.ids.size())));
  s.ids.push_back(id);
  ++rates_.new_tokens;
  if (!seen_.empty()) seen_[row].add(id);
  const auto& eos = options_.eos_ids;
  if (std::find(eos.begin(), eos.end(), id) != eos.end())
    s.finish = Finish::kEos;
  else if (static_cast<int64_t>(s.new_ids().size()) >= std::min(options_.max_new_tokens, s.room_tokens))
    s.finish = Finish::kLength;
  if (!on_token(s, id) && s.finish != Finish::kEos) s.finish = Finish::kStop;
  if (s.finish != Finish::kNone) on_token(s, -1);
  return Ok{};
}

Status Generator::take(std::span<Sequence> sequences, const OnToken& on_token) {
  PLIMSOLL_TRY(session_.read(planner::kNextLogitsState, std::as_writable_bytes(std::span(logits_))));
  for (size_t row = 0; row < sequences.size(); ++row)
    if (sequences[row].finish == Finish::kNone) PLIMSOLL_TRY(take_token(sequences[row], row, on_token));
  return Ok{};
}

Status Generator::run(std::span<Sequence> sequences, const OnToken& on_token,
                      const std::function<bool()>& stop) {
  PLIMSOLL_CHECK(static_cast<int64_t>(sequences.size()) <= rows_);
  double start = now_seconds();
  for (size_t row = 0; row < sequences.size(); ++row) {
    const Sequence& s = sequences[row];
    rates_.prompt_tokens += s.prompt_tokens;
    rates_.prefill_tokens += s.prompt_tokens - 1 - s.cached_tokens;
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
    PLIMSOLL_TRY(feed_last(sequences));
    PLIMSOLL_TRY(session_.run(decode_program_));
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
