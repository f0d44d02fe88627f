// The dialects: a table of keys each, and what is computed from several of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "importing/draft.h"
#include "importing/source.h"

namespace plimsoll::importing {

/// What a row does with a key's value. Null is harmless, but with kNullToo.
enum class Rule {
  kSame,      ///< the setting's value is the key's
  kNullToo,   ///< the same, and null says something
  kWords,     ///< `words`: "theirs=ours|both|theirs=": the last has no equal; others are bad values
  kHarmless,  ///< for the values in `words` ("*": any), else it has no equal
  kNoEqual,   ///< but for null, false, 0, "", [] and {}, which are harmless
  kIfThere,   ///< kSame where this version has the setting, else kNoEqual
  kLater,     ///< computed with others, by the dialect's `settle`
};

/// A key of a dialect.
struct Row {
  std::string_view key;      ///< "optimizer.params.lr"; "profiler.*": all below
  std::string_view setting;  ///< what it is mapped to, or has to do with
  Rule rule = Rule::kSame;
  std::string_view words = "";
  std::string_view note = "";     ///< mapped, harmless: why or how; kNoEqual, kIfThere: what that changes
  std::string_view without = "";  ///< kHarmless, kWords: what another value, one without an equal, changes
};

/// A default of the source's that is another here.
struct Default {
  std::string_view setting;
  std::string_view words;  ///< as Draft::map_words
  std::string_view comment;
};

// Notes of several dialects' rows.
inline constexpr std::string_view kFields =
    "the columns of an example are known by their names, see docs/data.md";
inline constexpr std::string_view kAdapters = "adapters differ from those of LoRA in this";

std::span<const Row> transformers_rows();
std::span<const Row> trl_rows();
std::span<const Row> torchtune_rows();
std::span<const Row> axolotl_rows();
std::span<const Row> deepspeed_rows();

/// The dialect's own name of a key as the tables know it: of axolotl's "micro_batch_size" transformers'
/// "per_device_train_batch_size".
std::string canonical(importing::Dialect dialect, const std::string& pattern);
/// The dialect that a document's keys are of; nothing where none is its alone.
std::optional<importing::Dialect> recognised(const io::Tree& tree);

/// The row of a key, those of transformers behind the dialect's own where it stands on its Trainer.
const Row* find_row(importing::Dialect dialect, std::string_view pattern);
/// The dialect's key nearest to an unknown one; empty where none is near.
std::string nearest_key(importing::Dialect dialect, std::string_view pattern);

// What is computed from several keys, and the dialect's defaults.
void settle_trainer(importing::Draft& draft, importing::Dialect dialect);
void set_trainer_defaults(importing::Draft& draft, importing::Dialect dialect);
void settle_torchtune(importing::Draft& draft);
void settle_deepspeed(importing::Draft& draft, bool is_alone);

}  // namespace plimsoll::importing
