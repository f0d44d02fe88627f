// Pieces of what is computed from several keys, shared by the dialects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "importing/dialects.h"

namespace plimsoll::importing {

/// The key's value as a count of at least `least`; what is none is an error of the key.
std::optional<int64_t> count_of(Draft& draft, const SourceKey* key, int64_t least);
/// The key's value as true or false; what is neither is an error of the key.
std::optional<bool> switch_of(Draft& draft, const SourceKey* key);

/// A value that is a word.
inline io::Tree word(const char* text) { return io::Tree::of(std::string(text)); }

/// A batch: sequences at once times accumulation. Either key may be absent.
struct BatchKeys {
  const SourceKey* micro = nullptr;
  const SourceKey* accumulation = nullptr;
  const SourceKey* global = nullptr;
  int64_t default_micro = 1;
};
void settle_batch(Draft& draft, const BatchKeys& keys);

/// Weights kept, computed in and updated in bf16, as torch trains a model that was loaded so.
void train_in_bf16(Draft& draft, const SourceKey& key, const std::string& why);

/// A name of data: a file goes into `setting`, what lies on the hub has to be made a file.
void settle_data_file(Draft& draft, const SourceKey& key, const std::string& setting);

/// What is written of the data where no key says it.
void ask_for_data_and_model(Draft& draft);

// The parts of settle_trainer that have files of their own.
void settle_saving(Draft& draft, Dialect dialect);
void settle_sft(Draft& draft, Dialect dialect);
void settle_adapters(Draft& draft, Dialect dialect);

}  // namespace plimsoll::importing
