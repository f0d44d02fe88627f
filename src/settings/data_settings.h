// The settings of `data`: files, tokenization, packing, buckets, labels, images.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "io/tree.h"
#include "settings/choice.h"

namespace plimsoll::settings {

/// data.buckets: how many lengths the planner may choose, or which ones. Neither: one.
struct BucketSettings {
  int64_t count = 0;
  std::vector<int64_t> lengths = {};  ///< ascending; sequence_length comes behind them where it is missing

  [[nodiscard]] bool given() const { return count > 0 || !lengths.empty(); }
};

/// What examples are labelled with, where sequences are classified.
struct ClassificationSettings {
  std::optional<int64_t> num_labels = {};     ///< nothing: auto
  std::string problem_type = "auto";          ///< auto, or parse_problem_type's words
  std::vector<std::string> label_names = {};  ///< by id; none: auto
};

/// Where questions are answered.
struct AnswerSettings {
  int64_t doc_stride = 128;  ///< tokens of a context that neighbouring windows share
};

/// Which tokens a masked language model predicts; datasets::MaskingRules.
struct MaskingSettings {
  double probability = 0.15, mask = 0.8, random = 0.1;
  bool whole_word = false;
  std::optional<int64_t> mask_token = {};  ///< nothing: the tokenizer's
};

/// data.eval: files, and where they are sets by name, the name of each one's set.
struct EvalFiles {
  struct Set {
    std::string name = {};
    std::vector<std::string> files = {};
  };
  std::vector<std::string> files = {};
  std::vector<std::string> names = {};  ///< one a file; none: all are one set without a name

  EvalFiles() = default;
  EvalFiles(std::initializer_list<std::string> list) : files(list) {}
  operator const std::vector<std::string>&() const { return files; }
  [[nodiscard]] bool empty() const { return files.empty(); }
  void clear() { *this = {}; }
  /// In the order of the run file.
  [[nodiscard]] std::vector<Set> sets() const;
};

/// data.images.augment: names, each alone or with its parameters as a map; null: none.
struct AugmentSettings {
  io::Tree entries = {};
};

/// data.images: what is not given, preprocessor_config.json says.
struct ImageSettings {
  std::optional<int64_t> size = {};    ///< pixels of a side
  std::string resize = "auto";         ///< auto | none | shortest | exact
  std::string interpolation = "auto";  ///< auto | bilinear | bicubic | lanczos | nearest
  std::string crop = "auto";           ///< auto | center | none
  std::optional<double> rescale = {};
  std::vector<double> mean = {}, std = {};  ///< of three channels; none: auto
  std::string orientation = "auto";         ///< auto | exif | ignore
  std::string alpha = "auto";               ///< auto | drop | white
  std::optional<int64_t> max_pixels = {};
  std::string backend = "auto";  ///< auto | pil | torch
  AugmentSettings augment = {};  ///< of what is trained on
  std::string cache = "none";    ///< none | jpeg | u8
  double mixup = 0, cutmix = 0;  ///< alpha of what mixes the images of a batch; 0: none
};

struct DataSettings {
  std::vector<std::string> train = {};
  EvalFiles eval = {};
  std::vector<double> weights = {};  ///< one an entry of train; none: all entries are one source
  double eval_fraction = 0;          ///< in place of eval: this share of train's documents, by their hash
  int64_t sequence_length = 512;
  bool shuffle = true;
  std::string packing = "auto";        ///< auto | best_fit | pad | stream
  BucketSettings buckets = {};         ///< pad
  std::string long_documents = "cut";  ///< cut | drop | truncate
  int64_t packing_window = 65'536;
  std::string tokenizer = "auto";  ///< auto: the model directory's, else bytes; bytes; a path
  std::string chat_template = {};  ///< a file in place of the model's own
  std::string template_date =
      "auto";                 ///< what strftime_now gives templates: 2026-11-27; auto: the first start's
  std::string loss = "auto";  ///< auto | all | completions | assistant
  std::string text_key = {};
  std::string append_eos = "auto";              ///< parse_append_end's words
  std::optional<bool> add_special_tokens = {};  ///< see EncoderOptions; nothing: where tokens are masked
  std::string on_error = "fail";                ///< fail | skip
  /// The first so many documents of each source, or sequences of a stream; nothing: all.
  std::optional<int64_t> max_train_samples = {}, max_eval_samples = {};
  std::string cache_dir = {};  ///< empty: <output.dir>/data
  std::optional<int64_t> num_workers = {};
  int64_t prefetch_factor = 2;
  std::optional<Bytes> keep_in_memory = {};  ///< of what is trained on; nothing: it is read from its files
  ImageSettings images = {};                 ///< where images are classified

  /// Whether there is data to evaluate on.
  [[nodiscard]] bool evaluates() const { return !eval.empty() || eval_fraction > 0; }
  /// Parts of that data whose losses are told apart: named sets, or what is held out of a mixture's sources.
  [[nodiscard]] size_t num_eval_parts() const;
};

}  // namespace plimsoll::settings
