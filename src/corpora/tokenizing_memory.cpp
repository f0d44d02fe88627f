#include "corpora/tokenizing_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "corpora/batch_memory.h"

namespace plimsoll::corpora {
namespace {

/// What reading and writing take whatever the number of threads: buffers of the input and of the shard.
constexpr int64_t kSharedBytes = int64_t{6} << 20;
/// A thread's stack, its cache of words and two batches on their way. Measured with GPT-2's tokenizer: 4 MiB.
constexpr int64_t kBytesPerThread = int64_t{6} << 20;

}  // namespace

Result<TokenizingMemory> tokenizing_memory(int64_t budget_bytes, int64_t resident_bytes, int num_threads,
                                           const BudgetName& name) {
  if (budget_bytes <= 0) return TokenizingMemory{num_threads, kMostBytesUnderWay};
  const int64_t least = resident_bytes + kSharedBytes + kBytesPerThread;
  if (least > budget_bytes)
    return Error{ErrorCode::kDoesNotFit,
                 fmt::format("tokenizing the data needs {} of memory, and {} is {}", to_string(Bytes(least)),
                             name.option, to_string(Bytes(budget_bytes))),
                 std::string(name.option), fmt::format("{}{}MiB", name.hint, (least >> 20) + 1)};
  const int64_t room = budget_bytes - resident_bytes - kSharedBytes;
  const auto threads = static_cast<int>(std::clamp<int64_t>(room / kBytesPerThread, 1, num_threads));
  return TokenizingMemory{threads, std::clamp(room / 4, int64_t{kTextBatchBytes}, kMostBytesUnderWay)};
}

}  // namespace plimsoll::corpora
