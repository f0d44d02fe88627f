// Fills a session's parameters from a model directory's weights: each view of a parameter from the tensor of
// its name, converted while it is read, in parallel, straight into its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/load_buffers.h"
#include "checkpoints/quantized_tensors.h"
#include "io/model_weights.h"
#include "models/model.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::checkpoints {

/// Where one view of a parameter comes from.
struct WeightSource {
  const models::Parameter* parameter = nullptr;
  const models::ParameterView* view = nullptr;
  io::WeightRef weight;
  std::optional<QuantizedTensor> quantized = {};  ///< the files have it in few bits; `weight` is its codes
};

/// A model's parameters held against a directory's tensors.
struct WeightMatch {
  std::vector<WeightSource> sources;                  ///< of the right shape, in the model's order
  std::vector<const models::ParameterView*> missing;  ///< no tensor of that name
  std::vector<WeightSource> misshaped;                ///< another shape
  std::vector<WeightSource> unreadable;               ///< a dtype that is no plain float (F8_E4M3, I8, …)
  std::vector<WeightSource> otherwise;                ///< in few bits or not, against what config.json says
  std::vector<const models::ParameterView*> drawn;    ///< not read: of a fresh head, or missing beside one
  std::vector<io::WeightRef> extra;                   ///< of no parameter, and not to be ignored
  std::vector<io::WeightRef> ignored;          ///< buffers, and a tied head that is stored all the same
  std::optional<WeightSource> tied_head = {};  ///< that head, and the embedding that it must equal
  /// Rows of tensors that hold several of the model's, as tensors of their own.
  std::vector<std::shared_ptr<const io::SafetensorsTensor>> parts = {};
  BufferMatch buffers = {};

  [[nodiscard]] bool fits() const {
    return missing.empty() && misshaped.empty() && unreadable.empty() && otherwise.empty() && extra.empty() &&
           buffers.fits();
  }
};

/// A tensor may lack the family's base prefix ("model.", "transformer."), as files of base models do. A
/// head that is to be drawn is not read: it may be missing or of other labels; what is drawn beside it where
/// it is missing (Model::is_drawn_where_missing) is read where it is there, and may be missing from a model
/// without labels too. Of a model that is stored in
/// few bits quant states are read. Errors: kBadData for codes and scales that do not belong together; kIo.
Result<WeightMatch> match_weights(const models::Model& model, const io::ModelWeights& weights,
                                  bool draws_head = false);
/// The error of a match that does not fit: counts, the first few names with shapes, what to do. kBadData.
Error weights_do_not_fit(const WeightMatch& match, const io::ModelWeights& weights);

/// What keeps a match from being loaded: weights_do_not_fit, or a head of its own beside a config that ties
/// it to the embedding, of which both are read. Errors: kBadData; kIo.
Status check_match(const WeightMatch& match, const io::ModelWeights& weights);

/// Before anything is read of them: whether these are the model's weights. Errors: kBadData.
Status check_weights(const models::Model& model, const io::ModelWeights& weights, bool draws_head = false);

struct LoadReport {
  std::string path;
  int64_t num_tensors = 0;
  int64_t file_bytes = 0;    ///< read
  int64_t memory_bytes = 0;  ///< written
  double seconds = 0;
  std::vector<std::string> ignored;  ///< names of tensors that were passed over
  std::vector<std::string> drawn;    ///< names of the model's that keep their random values
};

/// Into the parameters' dtype, to nearest; with masters these take the files' values and the parameters
/// theirs; what adapters begin with and is quantised gives them their values too. Memory: beyond the session
/// 96 KiB and two of a convolution's filters a thread; the threads end before it returns. The same bits for
/// any number of threads. What is drawn keeps the values that it has. Errors: kBadData where weights and
/// model do not match, or a file was cut; kIo.
Result<LoadReport> load_weights(const models::Model& model, const io::ModelWeights& weights,
                                runtime::Session& session, int num_threads, bool draws_head = false);

}  // namespace plimsoll::checkpoints
