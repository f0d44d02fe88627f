#include "analysis/propose_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "corpora/images/image_entries.h"
#include "preprocessing/image_labels.h"

namespace plimsoll::analysis {
namespace {

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += ", …";
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

}  // namespace

Status draft_images(RunDraft& draft, const settings::RunConfig& config, const io::ConfigJson& model,
                    const std::string& data) {
  corpora::ImageEntries entries;
  for (const std::string& entry : config.data.train) {
    PLIMSOLL_ASSIGN(const auto paths, io::expand_glob(entry));
    for (const std::string& path : paths) PLIMSOLL_TRY(corpora::add_images(path, {}, entries));
  }
  corpora::ImageEntries* const sources[] = {&entries};
  PLIMSOLL_ASSIGN(const std::vector<std::string> order,
                  preprocessing::name_image_ids(config, model, sources, /*training=*/true));
  corpora::LabelSummary found;
  corpora::summarize(entries, found);
  PLIMSOLL_ASSIGN(const io::Labels labels,
                  preprocessing::image_labels(config, model, found, /*training=*/true, order));
  const bool keeps_head = preprocessing::has_head_of(model, labels);
  draft.add(
      "task", "image_classification",
      fmt::format("{} classes: {}; {}", labels.count(), names_text(labels.names),
                  keeps_head ? "those of the model, which keeps its head" : "the model gets a new head"));
  const auto images = static_cast<int64_t>(entries.images.size());
  draft.add("data.train", data, fmt::format("{} images", grouped(images)));
  if (images >= 50)
    draft.add("data.eval_fraction", "0.1", "held out, by each image's name; or give data.eval a folder");
  const bool pretrained = settings::starts_pretrained(config.model), small = images < 5000;
  draft.add("training.global_batch_size", "32", "images per step; the micro-batch follows from memory");
  draft.add("training.num_epochs", small ? "10" : "3", "epochs over the data; or max_steps");
  draft.add("training.learning_rate", pretrained ? "5.0e-5" : "1.0e-3",
            pretrained ? "usual for full fine-tuning" : "usual for random weights");
  draft.add("training.lr_scheduler", "cosine", "");
  draft.add("training.warmup_ratio", "0.1", "");
  draft.add("training.weight_decay", "0.01", "");
  return Ok{};
}

}  // namespace plimsoll::analysis
