// Defines what an entry of the list of tasks says, and the list. A new task adds its file's function at the
// end of this header.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/label_fields.h"
#include "io/model_config.h"
#include "tasks/task.h"

namespace plimsoll::tasks {

/// What is made of data.train and data.eval before a task's source opens them.
enum class Preparation : uint8_t {
  kNone,      ///< nothing: the source reads the files as they lie there
  kPack,      ///< texts are tokenized into shards, which are packed
  kLabelled,  ///< lines with labels are tokenized into shards, with the labels beside them
  kImages,    ///< images are listed and their headers read, with the labels beside the lists
};

struct ImageInputs;

/// What a task is made from: settings of the run, its model and what its data say.
struct TaskInputs {
  const models::Model& model;
  const io::ConfigJson& model_config;
  int64_t sequence_length = 0;          ///< data.sequence_length
  bool packs_documents = false;         ///< sequences hold several documents, kept apart
  const io::Labels* labels = nullptr;   ///< with Preparation::kLabelled and kImages
  const ImageInputs* images = nullptr;  ///< with Preparation::kImages
  datasets::MaskingRules masking = {};  ///< where tokens are masked
};

/// A word of the setting `task`.
struct TaskDef {
  std::string_view name;
  std::string_view trains;    ///< what a model of it is, in model cards
  std::string_view pipeline;  ///< the hub's word for what such models do
  Preparation preparation = Preparation::kNone;
  Result<std::unique_ptr<Task>> (*make)(const TaskInputs& inputs) = nullptr;
  bool asks = false;  ///< with kLabelled: lines are questions about texts, labels where answers begin and end
  bool masks = false;  ///< tokens are masked: preparing says of which kind each is (RunData::token_kinds)
  /// Whether a model with this config.json has the head of this task, so that `task: auto` means it. Null: it
  /// is what a model that no other task claims is trained for.
  bool (*is_made_for)(const io::ConfigJson& model) = nullptr;
  /// Whether such a model can be trained for it; null: any. Errors: kInvalidArgument.
  Status (*check)(const io::ConfigJson& model) = nullptr;
  /// The config.json of a model with this task's head and these labels, from one that may have another head,
  /// whose own is then drawn; null: the model is taken as it is. Errors: kBadData.
  Result<io::ConfigJson> (*adapt)(const io::ConfigJson& model, const io::Labels& labels) = nullptr;
  /// What it reads of the settings that not every task reads. A name that ends in a dot is a section.
  std::span<const std::string_view> settings = {};
};

/// Those of every task over tokens; each one's list begins with them.
inline constexpr std::array<std::string_view, 5> kTokenSettings = {
    "data.sequence_length", "data.packing", "data.buckets", "data.tokenizer", "data.text_key"};
template <size_t kFirst, size_t kMore>
constexpr std::array<std::string_view, kFirst + kMore> joined(
    const std::array<std::string_view, kFirst>& first, const std::array<std::string_view, kMore>& more) {
  std::array<std::string_view, kFirst + kMore> all;
  std::ranges::copy(more, std::ranges::copy(first, all.begin()).out);
  return all;
}

/// Null where there is none of that name.
const TaskDef* find_task(std::string_view name);
/// The tasks that there are, in the order of the list.
std::vector<std::string_view> task_names();
/// The tasks that read a setting of a run file which not every task reads; none: all of them do.
std::vector<std::string_view> readers_of(std::string_view setting);
/// The task of a run: `setting` is a name or "auto". Errors: kInvalidArgument where the model's head is
/// another task's, or there is no task of that name.
Result<const TaskDef*> choose_task(std::string_view setting, const io::ConfigJson& model);

// Each file <name>.cpp exports its definition.
const TaskDef& causal_lm();
const TaskDef& image_classification();
const TaskDef& masked_lm();
const TaskDef& question_answering();
const TaskDef& sequence_classification();
inline constexpr std::array kTaskFiles = {causal_lm, masked_lm, sequence_classification, question_answering,
                                          image_classification};

/// Every definition, in the order of the list.
template <typename Visit>
void for_each_task(Visit visit) {
  for (const auto file : kTaskFiles) visit(file());
}

}  // namespace plimsoll::tasks
