// A model directory written again, tensor by tensor: the weights' files keep their names, what stands beside
// them is copied, and the folder gets its name when everything is written and verified.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/model_config.h"
#include "io/model_weights.h"
#include "io/safetensors_writer.h"

namespace plimsoll::model_tools {

/// What the tensors of a directory become. As it stands: copies.
class TensorRewrite {
 public:
  virtual ~TensorRewrite() = default;
  /// The tensors in this one's place; none where another's holds it.
  [[nodiscard]] virtual std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const;
  /// Writes their payloads, that of entry i from byte at[i] of the file on.
  virtual Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out);
  /// The text of config.json.
  [[nodiscard]] virtual Result<std::string> config(const io::ConfigJson& config, std::string text) const;
  /// A folder whose tokenizer's files take the place of the model's; empty: the model's go along.
  [[nodiscard]] virtual std::string tokenizer_folder() const { return {}; }
  /// The text of another file beside the weights.
  [[nodiscard]] virtual Result<std::string> beside(const std::string& name, std::string text) const;
  /// Holds what lies in the folder `written` against what was meant, before it has its name.
  virtual Status prove(const std::string& written);
};

struct RewriteReport {
  int64_t num_read = 0;  ///< tensors
  int64_t num_written = 0;
  int64_t bytes_before = 0;  ///< of the weights' files
  int64_t bytes = 0;
};

/// Before anything is read. `what` it is to be: "merged model". Errors: kInvalidArgument where the output is
/// there and not empty, the source above all; kIo where it could not be written.
Status check_rewrite_output(const std::string& source, const std::string& output, const std::string& what);

/// Writes `output`. Memory: what `rewrite` takes for a tensor, and a piece of a copied one. Errors: kIo; what
/// `rewrite` returns. Nothing is left then.
Result<RewriteReport> rewrite_model(const io::ModelWeights& weights, const std::string& output,
                                    TensorRewrite& rewrite);

/// The text of an object with a member as given, JSON; without it where that is empty. As it is spelt
/// otherwise, where it had none.
std::string with_member(std::string text, const std::string& name, const std::string& value);
/// The text of config.json with `quantization_config` as given, JSON, or without one where that is empty. As
/// it is spelt otherwise, where it had none.
std::string with_quantization(std::string text, const std::string& quantization);

}  // namespace plimsoll::model_tools
