// The data of TRL, axolotl and of transformers' example scripts: lengths, packing, targets.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

const SourceKey* raw(const Draft& draft, Dialect dialect, std::string_view pattern) {
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (source.dialect == dialect && key.pattern == pattern) return &key;
  return nullptr;
}

void settle_files(Draft& draft, Dialect dialect) {
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys) {
      const std::string& p = key.pattern;
      if (source.dialect != dialect) continue;
      if (p == "datasets[].path") {
        // "json" with data_files beside it names the format.
        const std::string files = key.name.substr(0, key.name.size() - 4) + "data_files";
        const bool has_files = std::any_of(
            source.keys.begin(), source.keys.end(),
            [&](const SourceKey& other) { return other.name == files && !other.value.is_null(); });
        if (has_files && (key.value.text == "json" || key.value.text == "text" ||
                          key.value.text == "parquet" || key.value.text == "csv"))
          draft.harmless(key, "a file is known by its name");
        else
          settle_data_file(draft, key, "data.train");
      } else if (p == "datasets[].data_files" || p == "dataset_name" || p == "pretraining_dataset[].path") {
        settle_data_file(draft, key, "data.train");
      } else if (p == "test_datasets[].path" || p == "test_datasets[].data_files") {
        settle_data_file(draft, key, "data.eval");
      } else if (p == "dataset_train_split" || p == "datasets[].split") {
        if (key.value.text == "train" || key.value.is_null())
          draft.harmless(key, "all of data.train is trained on");
        else
          draft.no_equal(key, "all of data.train is trained on: save that split as the file", "data.train");
      } else if (p == "dataset_test_split") {
        draft.harmless(key, "data.eval names what is evaluated on");
      } else if (p == "dataset_config" || p == "dataset_config_name" || p == "datasets[].name" ||
                 p == "datasets[].data_dir") {
        if (key.value.is_null())
          draft.harmless(key, "null has no effect");
        else
          draft.no_equal(key, "it is of a data set of the hub: save that part as the file", "data.train");
      }
    }
}

void settle_sequences(Draft& draft, Dialect dialect, bool is_sft) {
  const SourceKey* length = raw(draft, dialect, "max_length");
  if (length == nullptr) length = raw(draft, dialect, "max_seq_length");
  if (length == nullptr) length = raw(draft, dialect, "block_size");
  if (length != nullptr && length->value.is_null()) {
    draft.no_equal(*length, "null keeps examples whole: set data.sequence_length to the longest",
                   "data.sequence_length");
    draft.fill_in("data.sequence_length", "the longest example's tokens");
    draft.leave_out("data.sequence_length");
  } else if (length != nullptr) {
    draft.map(*length, "data.sequence_length", length->value);
    if (length->pattern == "block_size")
      draft.set_default("data.packing", "stream", "run_clm joins texts and cuts them");
  } else if (is_sft) {
    const bool is_trl = dialect == Dialect::kTrl;
    draft.set_default("data.sequence_length", is_trl ? "1024" : "512",
                      is_trl ? "TRL's default" : "axolotl's default");
  }
  const char* const name = dialect == Dialect::kAxolotl ? "axolotl" : "TRL";
  if (is_sft && dialect == Dialect::kTrl && !draft.has("data.long_documents"))
    draft.set_default("data.long_documents", "truncate,!cut", "TRL keeps the start of what is longer");
  if (dialect == Dialect::kAxolotl) draft.set_default("data.long_documents", "drop", "axolotl's default");
  if (is_sft) draft.set_default("data.packing", "pad", fmt::format("{}'s default", name));
}

void settle_packing(Draft& draft, Dialect dialect) {
  const SourceKey* packing = draft.find(dialect, "packing");
  const SourceKey* strategy = draft.find(dialect, "packing_strategy");
  const bool on = packing != nullptr && switch_of(draft, packing).value_or(false);
  if (packing != nullptr && !on) draft.map(*packing, "data.packing", word("pad"), "one example a row");
  if (!on && strategy != nullptr) draft.harmless(*strategy, "packing is off");
  if (on) {
    const std::string how = strategy == nullptr ? "bfd" : strategy->value.text;
    if (how == "wrapped") {
      draft.map(*packing, "data.packing", word("stream"));
      draft.joined(*strategy, "data.packing", "examples are joined and cut");
    } else if (how == "bfd" || how == "bfd_split" || how == "bfd-requeue" || how == "ffd") {
      draft.map(*packing, "data.packing", word("best_fit"));
      if (strategy != nullptr)
        draft.joined(*strategy, "data.packing", "best-fit decreasing, examples are kept apart");
      if (how == "bfd_split" || how == "bfd-requeue")
        draft.set_default("data.long_documents", "cut", "bfd_split cuts what is longer");
    } else {
      draft.map(*packing, "data.packing", word("best_fit"));
      draft.wrong(*strategy, "bfd, bfd_split or wrapped");
    }
  }
  if (const SourceKey* eval = draft.find(dialect, "eval_packing")) {
    if (bool_in(eval->value) == on)
      draft.harmless(*eval, "it is as packing");
    else
      draft.no_equal(*eval, "evaluation data is packed as training data is", "data.packing");
  }
}

/// TRL's two switches: assistant_only_loss is about conversations, completion_only_loss about prompts.
void settle_targets(Draft& draft) {
  const SourceKey* assistant = draft.find(Dialect::kTrl, "assistant_only_loss");
  const SourceKey* completion = draft.find(Dialect::kTrl, "completion_only_loss");
  const auto a = switch_of(draft, assistant), c = switch_of(draft, completion);
  const bool within_prompts = !c.value_or(true);
  const char* const loss =
      a.value_or(false) ? (within_prompts ? "all_assistant" : "assistant") : (within_prompts ? "all" : "trl");
  for (const SourceKey* key : {assistant, completion})
    if (key != nullptr) draft.map(*key, "data.loss", word(loss));
  draft.set_default("data.loss", loss, "TRL's default: all of conversations, completions of prompts");
  draft.set_default("data.append_eos", "trl,!true", "TRL ends texts and completions so");
  draft.set_default("data.add_special_tokens", "true", "TRL has the tokenizer add what it puts around texts");
}

void settle_axolotl_targets(Draft& draft) {
  if (const SourceKey* all = draft.find(Dialect::kAxolotl, "train_on_inputs"))
    if (const auto on = switch_of(draft, all))
      draft.map(*all, "data.loss", word(*on ? "all" : "auto"),
                *on ? "" : "the assistant's turns and completions");
  draft.set_default("data.append_eos", "auto,!true", "axolotl ends completions so");
  if (const SourceKey* patterns = draft.find(Dialect::kAxolotl, "unfrozen_parameters"))
    draft.no_equal(*patterns,
                   "its patterns are regular expressions: set training.freeze: \"*\" and training.unfreeze",
                   "training.unfreeze");
}

std::vector<const SourceKey*> text_fields(const Draft& draft, Dialect dialect) {
  std::vector<const SourceKey*> fields;
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (source.dialect == dialect && !key.value.is_null() &&
          (key.pattern == "dataset_text_field" || key.pattern == "datasets[].field"))
        fields.push_back(&key);
  return fields;
}

/// Whether every data set of a list has that field.
bool is_of_all_data(const Draft& draft, Dialect dialect, const SourceKey& field) {
  std::set<std::string> sets, with_it;
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys) {
      if (source.dialect != dialect || !key.pattern.starts_with("datasets[].")) continue;
      const std::string set = key.name.substr(0, key.name.find(']'));
      sets.insert(set);
      if (key.pattern == field.pattern && key.value.text == field.value.text) with_it.insert(set);
    }
  return sets == with_it;
}

void settle_text_key(Draft& draft, Dialect dialect) {
  for (const SourceKey* key : text_fields(draft, dialect)) {
    if (key->value.text == "text")
      draft.harmless(*key, "text is where a document is looked for anyway");
    else if (key->pattern == "datasets[].field" && !is_of_all_data(draft, dialect, *key))
      draft.no_equal(*key, "data.text_key is of all data: call the member text in that file",
                     "data.text_key");
    else
      draft.map(*key, "data.text_key", key->value);
  }
  const SourceKey* percentage = draft.find(dialect, "validation_split_percentage");
  if (percentage == nullptr) return;
  const auto share = number_in(percentage->value);
  if (draft.has("data.eval"))
    draft.harmless(*percentage, "validation_file goes before it");
  else if (!share || *share < 0 || *share > 90)
    draft.wrong(*percentage, "a number from 0 to 90");
  else
    draft.map(*percentage, "data.eval_fraction", io::Tree::of(*share / 100),
              "by the documents' hash, not the first ones");
}

}  // namespace

void settle_sft(Draft& draft, Dialect dialect) {
  const bool is_sft = dialect != Dialect::kTransformers;
  settle_files(draft, dialect);
  settle_text_key(draft, dialect);
  if (is_sft) settle_packing(draft, dialect);
  if (const SourceKey* excess = draft.find(dialect, "excess_length_strategy")) {
    const std::string& how = excess->value.text;
    draft.map_words(*excess, "data.long_documents",
                    how == "truncate" ? "truncate,!cut"
                    : how == "drop"   ? "drop"
                                      : "!drop",
                    how == "raise" ? "documents that are too long are no error" : "");
  }
  settle_sequences(draft, dialect, is_sft);
  if (dialect == Dialect::kTrl) settle_targets(draft);
  if (dialect == Dialect::kAxolotl) settle_axolotl_targets(draft);
}

}  // namespace plimsoll::importing
