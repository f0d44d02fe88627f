// The trace of a caller's model: the graph of its forward pass, op by op as a front end ran it, and what else
// a plan needs. Each op is typed when it is added, so that an error names the op that causes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/builder.h"
#include "ir/parameter_kind.h"
#include "library/trace_scopes.h"
#include "models/buffers.h"

namespace plimsoll::library {

using Values = std::vector<ir::ValueId>;

struct TracedInput {
  std::string name;
  ir::TensorType type;
  ir::ValueId value;
};

enum class FirstValue : uint8_t { kZeros, kOnes, kConstant, kUniform, kNormal };

struct ParameterOptions {
  FirstValue init = FirstValue::kZeros;
  double number = 0;  ///< the constant, the bound of a uniform draw, the deviation of a normal one
  bool trained = true;
  std::optional<ir::ParameterKind> kind = {};  ///< nothing: by the number of axes
  bool is_buffer = false;                      ///< no parameter: training changes it without a gradient
  bool is_count = false;                       ///< a buffer that counts batches: see TracedBuffer
  bool operator==(const ParameterOptions&) const = default;
};
/// JSON as pls_parameter takes it. Errors: kInvalidArgument.
Result<ParameterOptions> parse_parameter_options(std::string_view json);

struct TracedParameter {
  std::string name;
  ir::Shape shape;  ///< of a convolution's filters [out, in / groups, height, width]
  ParameterOptions options;
  ir::ValueId value;  ///< as it is stored
  ir::ValueId shown;  ///< as front ends see it: of that shape

  [[nodiscard]] ir::ParameterKind kind() const;
  /// Filters are stored as [out, height, width, in / groups].
  [[nodiscard]] ir::Shape stored_shape() const;
};

/// A tensor that training changes without a gradient: a running value of BatchNorm, or the number of batches
/// that running values have followed, "x.num_batches_tracked" beside "x.running_mean". The number is an int64
/// without axes, which no op reads.
struct TracedBuffer {
  std::string name;
  ir::Shape shape;
  ParameterOptions options;
  ir::ValueId value;

  [[nodiscard]] float first() const;  ///< of each element
  /// As a session keeps it: a number of batches in the words of an int64.
  [[nodiscard]] models::Buffer as_buffer() const;
};

/// A call of batch_norm with running values. In training with batch statistics the running values follow.
struct TracedNorm {
  ir::ValueId mean = {}, variance = {};  ///< of the batch; invalid: the running values are used
  ir::ValueId running_mean = {}, running_variance = {};  ///< buffers
  double eps = 1e-5, momentum = 0.1;
  int64_t count = 0;  ///< values of a channel
};

struct TracedConstant {
  std::string name;  ///< of its state
  ir::TensorType type;
  std::vector<std::byte> data;
  ir::ValueId value;
};

/// Elements of an integer input are to be in [0, below), or -100 where that is `ignored`.
struct IndexRange {
  size_t input = 0;
  int64_t below = 0;
  bool ignores = false;
};

/// A loss that is the mean of a cross-entropy: sum / count.
struct MeanLoss {
  ir::ValueId sum, count;
};

/// "float32", "int32": what front ends call a type; "bfloat16" and "float16" within autocast.
std::string_view type_name(ir::DType dtype);

class Trace {
 public:
  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // All return kInvalidArgument on error. The trace is then unchanged, but for values that nothing reads.

  Result<ir::ValueId> input(const std::string& name, std::string_view dtype, std::span<const int64_t> shape);
  Result<ir::ValueId> parameter(const std::string& name, std::span<const int64_t> shape,
                                const ParameterOptions& options);
  Result<ir::ValueId> constant(const std::string& name, std::string_view dtype,
                               std::span<const int64_t> shape, std::span<const std::byte> data);
  /// The op of that name of front_ops.h, with attributes as JSON.
  Result<Values> op(std::string_view name, std::span<const ir::ValueId> inputs, std::string_view attributes);
  Status push_scope(std::string_view kind, std::string_view argument);
  Status pop_scope() { return scopes_.pop(); }
  Status set_loss(ir::ValueId loss);
  /// Errors: kInvalidArgument for an id that is no value's.
  Result<ir::TensorType> type(ir::ValueId value) const;

  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<TracedInput>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<TracedParameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<TracedConstant>& constants() const { return constants_; }
  [[nodiscard]] const std::vector<TracedBuffer>& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<TracedNorm>& norms() const { return norms_; }
  [[nodiscard]] const std::vector<IndexRange>& ranges() const { return ranges_; }
  [[nodiscard]] const TraceScopes& scopes() const { return scopes_; }
  /// "bf16", … of autocast scopes with products that the loss is computed from. Of a trace with a loss.
  [[nodiscard]] std::set<std::string> precisions() const;
  [[nodiscard]] ir::ValueId loss() const { return loss_; }
  /// Of a loss that is a cross-entropy's mean; nothing of any other.
  [[nodiscard]] std::optional<MeanLoss> mean_loss() const;

  // For the functions of ops (front_ops.h).

  /// A constant that is no front end's; of one dtype and content there may be several.
  ir::ValueId own_constant(ir::TensorType type, std::vector<std::byte> data);
  /// i32[4]: what dropout draws from.
  ir::ValueId random();
  /// A key for the next op that draws.
  int64_t next_random_key();
  void note_mean(ir::ValueId mean, MeanLoss parts) { means_[mean.index] = parts; }
  /// `index` picks one of `below` elements, or none where `ignores` and it is ops::kIgnoreTarget. Errors:
  /// kInvalidArgument where it holds other than elements of inputs and constants, or a constant's are out of
  /// range.
  Status note_range(ir::ValueId index, int64_t below, bool ignores, std::string_view op);
  [[nodiscard]] const TracedParameter* find_parameter(ir::ValueId value) const;
  [[nodiscard]] const TracedBuffer* find_buffer(ir::ValueId value) const;
  void note_norm(const TracedNorm& norm) { norms_.push_back(norm); }
  /// `last` [N, H, W, C] has the elements of `first` [N, C, H, W].
  void note_channels_last(ir::ValueId first, ir::ValueId last) { channels_last_[first.index] = last; }
  /// Invalid where none is noted.
  [[nodiscard]] ir::ValueId find_channels_last(ir::ValueId first) const;

 private:
  Result<ir::ValueId> buffer(const std::string& name, const ir::Shape& shape,
                             const ParameterOptions& options);
  /// The filters as front ends see them.
  ir::ValueId shown_filters(ir::ValueId stored);
  /// A trace with a loss belongs to its plans, and does not change.
  [[nodiscard]] Status check_open() const;
  [[nodiscard]] Status check_values(std::string_view op, std::span<const ir::ValueId> values) const;
  ir::ValueId read_state(const std::string& name, const ir::TensorType& type, ir::StateClass state_class);

  ir::Graph graph_;
  TraceScopes scopes_;
  std::vector<TracedInput> inputs_;
  std::vector<TracedParameter> parameters_;
  std::vector<TracedConstant> constants_;
  std::vector<TracedBuffer> buffers_;
  std::vector<TracedNorm> norms_;
  std::vector<IndexRange> ranges_;
  std::map<size_t, std::string> products_;  ///< by op: the precision of its autocast scope
  std::map<int32_t, MeanLoss> means_;
  std::map<int32_t, ir::ValueId> channels_last_;
  ir::ValueId loss_, random_;
  int64_t draws_ = 0;
};

}  // namespace plimsoll::library
