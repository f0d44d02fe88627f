// The weights of the final model directory where they are not the checkpoint's own file: in another dtype, in
// several files with an index, or both. Laid out once, as transformers' save_pretrained would; written, or
// compared with existing files, piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/tensor_files.h"
#include "runtime/session.h"
#include "settings/run_config.h"

namespace plimsoll::checkpoints {

/// What final/ is stored in.
struct FinalFormat {
  ir::DType dtype = ir::DType::kF32;
  std::optional<int64_t> max_shard_bytes = {};  ///< of a file's tensors; nothing: one file
};
/// By output.dtype and output.max_shard_size. auto: what the config.json says where the weights came from a
/// folder, else what the run keeps them in.
FinalFormat final_format(const settings::RunConfig& config, const io::ConfigJson& model_config,
                         const models::Model& model);

class FinalWeights {
 public:
  /// Averages stand in place of what they average. What is rounded is rounded to nearest even, from the fp32
  /// masters where there are any. A tensor larger than a file has one of its own. Errors: as
  /// SafetensorsLayout::create.
  static Result<FinalWeights> create(const models::Model& model, const passes::SessionPlan& session,
                                     const FinalFormat& format);
  /// Whether this is a checkpoint's model.safetensors: what the parameters are kept in, in one file.
  [[nodiscard]] bool is_plain() const { return plain_; }

  /// Weights and index.
  [[nodiscard]] int64_t bytes() const;
  [[nodiscard]] size_t num_shards() const { return shards_.size(); }
  /// "model.safetensors", "model-00001-of-00002.safetensors".
  [[nodiscard]] const std::string& name(size_t shard) const { return shards_[shard].name; }
  [[nodiscard]] int64_t shard_bytes(size_t shard) const { return shards_[shard].layout.file_bytes(); }
  /// The text of model.safetensors.index.json; empty where there is one file.
  [[nodiscard]] const std::string& index() const { return index_; }

  using Take = std::function<Status(std::span<const std::byte>)>;
  /// The file's bytes, in order, through `buffer` (at least 4 KiB). Errors: of the device; kBadData for a
  /// value that fp16 cannot hold; what `take` returns.
  Status read(size_t shard, runtime::BackgroundReader& reader, std::span<std::byte> buffer,
              const Take& take) const;
  /// Whether `directory` holds these files, byte for byte, and no other weights.
  [[nodiscard]] bool are_in(const std::string& directory, runtime::Session& session) const;

 private:
  struct Tensor {
    io::SafetensorsEntry entry;
    runtime::StateRange from;
    ir::DType stored = ir::DType::kF32;   ///< of the state
    ir::DType written = ir::DType::kF32;  ///< of the file
    FileOrder order = {};
  };
  struct Shard {
    std::string name;
    io::SafetensorsLayout layout;
    std::vector<Tensor> tensors;
  };
  Status add_shards(std::vector<Tensor> tensors, int64_t limit);
  void write_index(int64_t num_parameters);
  Status read_tensor(const Tensor& tensor, runtime::BackgroundReader& reader, std::span<std::byte> buffer,
                     const Take& take) const;
  bool plain_ = true;
  std::vector<Shard> shards_;
  std::string index_;
};

}  // namespace plimsoll::checkpoints
