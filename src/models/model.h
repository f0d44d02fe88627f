// The interface of a model family: its parameters with the checkpoint's names and its constants. Kinds of
// models define forward and its inputs: a language model runs on tokens (models/language_model.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"
#include "ir/builder.h"
#include "ir/parameter_kind.h"
#include "models/buffers.h"

namespace plimsoll::models {

/// How files have a tensor where that is not as its storage has it.
enum class FileForm : uint8_t {
  kAsStored,
  kFilters,     ///< [out, in / groups, height, width], stored as [out, height, width, in / groups]
  kAxisBefore,  ///< behind an axis of one: [1, tokens, hidden], stored as [tokens, hidden]
};

/// A tensor of the checkpoint as rows of a parameter's storage: rows [row, row + shape[0]) of axis 0.
struct ParameterView {
  std::string name;  ///< as transformers' named_parameters() spells it
  int64_t row = 0;
  ir::Shape shape;  ///< in the storage
  FileForm form = FileForm::kAsStored;

  /// The shape that files have it in.
  [[nodiscard]] ir::Shape file_shape() const;
};

using ir::ParameterKind;

/// kNormal: of deviation init_std around 0. kUniform: in ±init_std. kConstant: all of it init_std.
enum class Init : uint8_t { kNormal, kOnes, kZeros, kUniform, kConstant };

/// One storage of weights. What one GEMM multiplies lies in one storage: q, k and v; gate and up. Where the
/// tensors of such a storage are not trained alike it is divided, a storage each (Model::divide).
struct Parameter {
  std::string name;  ///< of the state
  ParameterKind kind;
  ir::Shape shape;
  Init init = Init::kNormal;
  double init_std = 0.02;
  std::vector<ParameterView> views;
  /// What it is kept in: f32, bf16 or f16 (Model::keep_in), or a block type, whose components lie in the
  /// one storage (ir/dtype.h).
  ir::DType dtype = ir::DType::kF32;
  int32_t block = ir::kNoBlock;  ///< the repeated block that it belongs to
  bool trained = true;           ///< else it is frozen: no gradient, no master, no optimizer state
  int32_t group = 0;             ///< 0: the run's hyper-parameters; n: those of training.param_groups[n - 1]
  std::string part_of = {};      ///< the storage that it was divided from, whose parts follow each other
  bool transposed = false;       ///< [in, out], as GPT-2's Conv1D
  bool is_hidden = false;        ///< the optimizer treats it as a parameter of a repeated block (Muon)
  bool is_stored = false;        ///< of a block type, which the base's files have it in
  /// Of an adapter: not in the base's files. Its first values are drawn by the host.
  bool is_adapter = false;
};

/// Whether it is a linear map of a block, or several side by side: what may be kept in few bits.
inline bool is_linear_map(const Parameter& p) {
  return !p.is_adapter && p.kind == ParameterKind::kLinear && p.block >= 0;
}

/// Adapters of the linear maps that lie in one storage, y_i += scale_i B_i A_i x: their A's are rows of one
/// storage, so that one GEMM makes what all of them project from.
struct Adapter {
  struct Part {
    int64_t out = 0;   ///< rows of the base's tensor, in the order of its views
    int64_t rank = 0;  ///< 0: this tensor has none
    double scale = 1;
    std::string b = {};          ///< the parameter [out, rank]
    std::string b_bias = {};     ///< B's bias [out]; empty: it has none
    std::string magnitude = {};  ///< DoRA's [out]; empty: plain
  };
  std::string weight;  ///< the storage of the base; of a tied head the name that it has in checkpoints
  std::string a;       ///< the parameter [sum of ranks, in]; of a table's adapter [rank, rows of the table]
  std::vector<Part> parts;
};

/// Rows of a table that learn, in place of those of their tokens.
struct TokenRows {
  std::string rows = {};             ///< the parameter [tokens, width]; empty: there are none
  std::vector<int64_t> tokens = {};  ///< ascending
};

/// What adapters begin as where that is taken from the base, which loses it: the largest r of the singular
/// value decomposition (PiSSA, arXiv:2404.02948), or the first r of Q R (OLoRA, arXiv:2406.01775).
/// kLoftq: what of the base its rounding to few bits loses, as far as r singular triples hold it (LoftQ,
/// arXiv:2310.08659); the base is rounded so that the two together come near it.
enum class Factors : uint8_t { kNone, kSvd, kQr, kLoftq };

/// How LoftQ rounds.
struct Loftq {
  int64_t bits = 0;        ///< 4, 8; 0: what the base is quantised to
  int64_t iterations = 1;  ///< of rounding and decomposing in turn
  /// What an adapter's file says of the base that it began beside; nothing: it does not say.
  std::optional<ir::DType> dtype = {};
  std::vector<std::string> skip_modules = {};
  bool operator==(const Loftq&) const = default;
};

/// What models/lora.h adds to a model.
struct Adapters {
  std::vector<Adapter> linears;
  double dropout = 0;  ///< of what enters the A's, in training
  TokenRows token_rows = {};
  Factors factors = Factors::kNone;
  Loftq loftq = {};
  /// Embedding and head that an opened adapter's file has whole (PEFT's save_embedding_layers, a vocabulary
  /// that was resized): views that are read from there and not from the base's files.
  std::set<std::string, std::less<>> brought = {};
  std::set<std::string, std::less<>> still = {};  ///< of `keys`, those that do not learn
  /// Of `keys`, those that modules_to_save takes by an ending within a name: files that this program wrote
  /// before it went by them lack all of these.
  std::set<std::string, std::less<>> by_ending = {};
  std::vector<std::string> unmatched = {};  ///< what an opened adapter's files name and no module has
  /// By the names of parameters' views: those that learn and are saved, and what PEFT's file calls them.
  std::map<std::string, std::string, std::less<>> keys;
};

/// How one tensor of the checkpoint is trained.
struct Role {
  bool trained = true;
  int32_t group = 0;
  bool is_apart = false;  ///< in a storage of its own
  bool operator==(const Role&) const = default;
};

/// f32 values that the host computes once; a state of class kConstant.
struct Constant {
  std::string name;
  ir::Shape shape;
  std::vector<float> data;
};

/// A head that is the embedding: its name in checkpoints that store it all the same, and the parameter's.
struct TiedHead {
  std::string_view head, embedding;
};

class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Constant>& constants() const { return constants_; }
  [[nodiscard]] const std::vector<Buffer>& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<BatchNormLayer>& batch_norms() const { return batch_norms_; }
  [[nodiscard]] const BatchNormLayer& batch_norm(std::string_view name) const;
  [[nodiscard]] int64_t num_parameters() const;
  [[nodiscard]] int64_t num_trained() const;  ///< of them
  [[nodiscard]] int32_t num_blocks() const;   ///< that the parameters are of
  /// All parameters become states of that dtype, in graphs built from now on; where there are adapters, what
  /// is saved with them stays f32.
  void keep_in(ir::DType dtype);
  /// Adds adapters and their parameters; once.
  void adapt(Adapters adapters, std::vector<Parameter> parameters);
  /// Nothing where the whole model is trained and saved.
  [[nodiscard]] const std::optional<Adapters>& adapters() const { return adapters_; }
  /// The adapter of a storage's linear maps, or null.
  [[nodiscard]] const Adapter* adapter_of(std::string_view weight) const;
  /// What a view is called in the files that training writes; empty where it is not in them.
  [[nodiscard]] std::string saved_name(std::string_view view) const;
  /// Keeps the linear maps of blocks that `takes` says of in a block type, of those that learn none. Each
  /// tensor of such a storage becomes a storage of its own, as scales are a tensor's; what is `stored` so is
  /// turned to [out, in]. Returns how many tensors there are.
  int64_t quantize(ir::DType dtype, const std::function<bool(const ParameterView&)>& takes, bool learns,
                   bool stored = false);
  /// Gives each tensor its role, in the order of parameters and views. A storage whose tensors have one role
  /// takes it; any other becomes one storage a tensor, named as that is.
  void divide(std::span<const Role> roles);
  /// Where each BatchNorm layer takes its statistics from in training; nothing: frozen where neither its
  /// weight nor its bias is trained. After `divide`.
  void set_norm_statistics(std::optional<NormStatistics> asked, int64_t ranks = 1);
  /// Whether a step depends on the size of a micro-batch: a layer takes its statistics from it, or the run's
  /// settings say so (settings::micro_batch_dependence).
  [[nodiscard]] bool couples_micro_batch() const;
  /// Whether a BatchNorm layer takes its statistics from the micro-batch.
  [[nodiscard]] bool takes_batch_statistics() const;
  void couple_micro_batch() { scales_by_micro_batch_ = true; }
  /// Fields of the config file that were passed over, for a message.
  [[nodiscard]] const std::vector<std::string>& unknown_fields() const { return unknown_fields_; }

  /// Labels that the head scores, where the model classifies; 0: it does not.
  [[nodiscard]] int64_t num_labels() const { return num_labels_; }

  /// Declares a parameter's state and reads it; of one that was divided, its parts joined.
  [[nodiscard]] ir::ValueId read_parameter(ir::Builder& b, std::string_view name) const;
  /// The parts of a parameter that is kept in a block type, in its order; empty of any other.
  [[nodiscard]] std::vector<const Parameter*> quantized_parts(std::string_view name) const;

  /// Nothing where the head has weights of its own.
  [[nodiscard]] virtual std::optional<TiedHead> tied_head() const { return {}; }
  /// What the names of all but the head's tensors start with; checkpoints of the bare model lack it.
  [[nodiscard]] virtual std::string_view base_prefix() const { return {}; }
  /// What other files call the tensor or buffer that files of transformers call `name`: those of timm and
  /// torchvision, and old ones; empty where that is not known. timm's wrapper in transformers puts
  /// "timm_model." before it.
  [[nodiscard]] virtual std::string other_name(std::string_view /*name*/) const { return {}; }
  /// Whether a tensor of that name, which is no parameter, may stand in a checkpoint: buffers that older
  /// versions of transformers saved, a language model's head where this one classifies.
  [[nodiscard]] virtual bool ignores_tensor(std::string_view /*name*/) const { return false; }

  /// A classifier's head in checkpoints: the module whose tensors are `<module>.weight` and, where it has
  /// one, `<module>.bias`.
  [[nodiscard]] virtual std::string_view head_module() const { return "score"; }
  /// Whether that is the name of a tensor of the head.
  [[nodiscard]] virtual bool is_of_head(std::string_view name) const;
  /// Whether a file that gets a fresh head may lack that tensor, which is no part of the head: it is drawn
  /// then, as the head is. BERT's pooler, which models without a use for it do not save.
  [[nodiscard]] virtual bool is_drawn_where_missing(std::string_view /*name*/) const { return false; }

 protected:
  [[nodiscard]] ir::ValueId read_constant(ir::Builder& b, std::string_view name) const;
  /// Adds the layer with its parameters "<name>.weight", "<name>.bias" and its buffers.
  void add_batch_norm(BatchNormLayer layer);
  /// Parameters from the index `first` on are the block's.
  void put_in_block(size_t first, int64_t block);

  std::vector<Parameter> parameters_;
  std::vector<Constant> constants_;
  std::vector<Buffer> buffers_;
  std::vector<BatchNormLayer> batch_norms_;
  bool scales_by_micro_batch_ = false;
  std::optional<Adapters> adapters_;
  std::vector<std::string> unknown_fields_;
  int64_t num_labels_ = 0;
};

/// The model of a config.json, by its model_type. Errors: kBadData naming the families that there are.
Result<std::unique_ptr<Model>> make_model(const io::ConfigJson& config);

}  // namespace plimsoll::models
