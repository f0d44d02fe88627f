// Images made ready: listed once, their headers read, the lists and their labels in the cache. Images
// themselves stay where they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/images/image_entries.h"
#include "corpora/images/image_list.h"
#include "corpora/images/scan_images.h"
#include "preprocessing/data_cache.h"
#include "preprocessing/run_data.h"
#include "tasks/image_classification.h"

namespace plimsoll::preprocessing {

/// Makes the data ready; runs in the child.
class ImagePreparation {
 public:
  /// `model`: the model's config.json. `lease`: of the cache folder; null: none. All outlive it.
  ImagePreparation(const settings::RunConfig& config, const PrepareDataOptions& options,
                   const io::ConfigJson& model, const CacheLease* lease = nullptr)
      : config_(config), options_(options), model_(model), lease_(lease) {}

  /// Everything that RunData has of it. Errors: as prepare_data; kBadData for images that cannot be used and
  /// for labels, with file and row.
  Result<RunData> operator()();
  /// The same as far as it is known without reading images: the labels, and where all lists lie in the cache
  /// their sources and what reading takes. Writes nothing. Errors: as above.
  Result<RunData> look();

 private:
  /// Files that become one source.
  struct Source {
    corpora::ImageEntries entries = {};
    double weight = 1;
    bool eval = false;
    std::string set = {};  ///< of data.eval
  };
  Status collect();
  Status collect_train(datasets::SplitSide side, bool eval);
  Status name_classes();
  Result<Source> collect(const std::vector<std::string>& entries, datasets::SplitSide side, bool eval) const;
  Result<io::Labels> labels() const;
  /// The list of a source, made where it is missing or damaged; empty where it is only looked for.
  Result<std::string> listed(Source& source);
  [[nodiscard]] bool is_packed(const Source& source) const;
  Status pack(Source& source, const std::string& path, corpora::ScannedImages& scanned) const;
  Status make_list(Source& source, const std::string& path) const;
  [[nodiscard]] std::string path_of(const Source& source) const;
  Status check(const RunData& ready) const;

  const settings::RunConfig& config_;
  const PrepareDataOptions& options_;
  const io::ConfigJson& model_;
  const CacheLease* const lease_;
  tasks::ImageInputs images_;
  std::vector<Source> sources_;
  std::vector<std::string> class_order_;  ///< of name_image_ids
  bool lists_ = true;                     ///< false: only looks what is there
};

}  // namespace plimsoll::preprocessing
