// The threads that tokenize, and how much text they hold at once, within a budget of memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace plimsoll::corpora {

struct TokenizingMemory {
  int num_threads = 1;
  int64_t most_bytes_under_way = 0;  ///< no further batch is read while batches of so many bytes are held
};

/// What messages call the budget.
struct BudgetName {
  std::string_view option = "memory.budget";
  /// What the hint says before the smallest budget that would do.
  std::string_view hint = "tokenize the data before the run (plimsoll data tokenize), or set memory.budget=";
};

/// Divides what `budget_bytes` leaves beside `resident_bytes` (the program, the tokenizer's tables) among at
/// most `num_threads` threads. A budget of 0 bounds nothing. A single record may be larger than what is left,
/// up to ReaderOptions::max_record_bytes. Errors: kDoesNotFit where not even one thread has room.
Result<TokenizingMemory> tokenizing_memory(int64_t budget_bytes, int64_t resident_bytes, int num_threads,
                                           const BudgetName& name = {});

}  // namespace plimsoll::corpora
