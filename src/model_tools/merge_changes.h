// A base model and its adapters: what adapters change of the base, and tables in their place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/adapter_change.h"
#include "ir/dtype.h"
#include "model_tools/merge_base.h"
#include "models/lora_config.h"

namespace plimsoll::model_tools {

class MergeChanges {
 public:
  /// The base outlives it. `is_alone`: one adapter is merged.
  MergeChanges(const MergeBase& base, bool is_alone) : base_(base), is_alone_(is_alone) {}

  /// Adds what an adapter changes, `weight` times. Errors: kInvalidArgument for what merging does not do;
  /// kBadData for an adapter of another base; kIo.
  Status add_adapter(const std::string& directory, double weight);

  /// By the base's tensor, in the order of the adapters.
  [[nodiscard]] const std::map<const io::SafetensorsTensor*, std::vector<checkpoints::AdapterChange>>&
  by_tensor() const {
    return changes_;
  }
  /// Of a tensor; none of one that no adapter changes.
  [[nodiscard]] std::vector<checkpoints::AdapterChange> of(const io::SafetensorsTensor* tensor) const;
  /// The tensor without its values, in the merged model.
  [[nodiscard]] io::SafetensorsEntry entry_of(const io::WeightRef& ref) const;
  /// Tables that an adapter brings with its vocabulary, by the base's.
  [[nodiscard]] const std::map<const io::SafetensorsTensor*, io::WeightRef>& resized() const {
    return resized_;
  }
  [[nodiscard]] const std::optional<int64_t>& vocab_size() const { return vocab_size_; }
  /// A stored tied head, of an embedding that changes: it is not written.
  [[nodiscard]] const io::SafetensorsTensor* tied_copy() const { return tied_copy_; }

 private:
  /// The parameter at hand: its adapter's file and the weight of the adapter.
  struct Source {
    const models::Model& model;
    const io::SafetensorsFile& file;
    double weight;
    [[nodiscard]] const io::SafetensorsTensor* tensor(const std::string& view) const;
    [[nodiscard]] bool brings(const std::string& view) const;
  };
  Status find_rounded(const models::LoraSpec& spec, const std::string& type);
  [[nodiscard]] Status check_parts(const models::Model& model) const;
  Status add_changes(const Source& source);
  Status add_view(const Source& source, const models::Parameter& parameter, size_t view);
  Status add_part(const Source& source, const models::Parameter& parameter, size_t view);
  Status add_resized(const Source& source, const std::string& view, const io::SafetensorsTensor* whole,
                     bool is_adapted);
  Status add_change(const models::Model& model, const std::string& view,
                    const checkpoints::AdapterChange& change);

  const MergeBase& base_;
  bool is_alone_;
  std::vector<std::unique_ptr<io::SafetensorsFile>> files_;  ///< the adapters', where changes_ points
  std::map<const io::SafetensorsTensor*, std::vector<checkpoints::AdapterChange>> changes_;
  std::map<const io::SafetensorsTensor*, io::WeightRef> resized_;
  std::optional<int64_t> vocab_size_ = {};
  const io::SafetensorsTensor* tied_copy_ = nullptr;
  std::map<std::string, ir::DType> rounded_;  ///< of the adapter at hand: what it began beside, by LoftQ
};

}  // namespace plimsoll::model_tools
