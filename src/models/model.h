// What a model family tells the rest: its parameters with the checkpoint's names, its constants, and its
// forward graph. Nothing below this room knows of tokens, heads or layers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"
#include "ir/builder.h"

namespace plimsoll::models {

/// A tensor of the checkpoint as rows of a parameter's storage: rows [row, row + shape[0]) of axis 0.
struct ParameterView {
  std::string name;  ///< as transformers' named_parameters() spells it
  int64_t row = 0;
  ir::Shape shape;
};

enum class Init : uint8_t { kNormal, kOnes, kZeros };

/// One trainable storage. What one GEMM multiplies lies in one storage: q, k and v; gate and up.
struct Parameter {
  std::string name;  ///< of the state
  ir::Shape shape;
  Init init = Init::kNormal;
  double init_std = 0.02;
  std::vector<ParameterView> views;
};

/// f32 values that the host computes once; a state of class kConstant.
struct Constant {
  std::string name;
  ir::Shape shape;
  std::vector<float> data;
};

class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Constant>& constants() const { return constants_; }
  [[nodiscard]] int64_t vocab_size() const { return vocab_size_; }
  [[nodiscard]] int64_t max_positions() const { return max_positions_; }
  [[nodiscard]] int64_t num_parameters() const;
  /// Parameters that a GEMM multiplies with each token, the head included (tied or not): 2 operations each
  /// forward.
  [[nodiscard]] int64_t num_matmul_parameters() const { return num_matmul_parameters_; }
  /// Fields of the config file that were passed over, for a message.
  [[nodiscard]] const std::vector<std::string>& unknown_fields() const { return unknown_fields_; }

  /// Builds the forward pass. tokens i32[B, T] -> logits f32[B, T, vocab].
  virtual ir::ValueId logits(ir::Builder& b, ir::ValueId tokens) const = 0;

 protected:
  /// Declares a parameter's state and reads it.
  [[nodiscard]] ir::ValueId read_parameter(ir::Builder& b, std::string_view name) const;
  [[nodiscard]] ir::ValueId read_constant(ir::Builder& b, std::string_view name) const;

  std::vector<Parameter> parameters_;
  std::vector<Constant> constants_;
  std::vector<std::string> unknown_fields_;
  int64_t vocab_size_ = 0;
  int64_t max_positions_ = 0;
  int64_t num_matmul_parameters_ = 0;
};

/// The model of a config.json, by its model_type. Errors: kBadData naming the families that there are.
Result<std::unique_ptr<Model>> make_model(const ConfigJson& config);

/// One family: a file each, listed in model.cpp.
Result<std::unique_ptr<Model>> make_llama(const ConfigJson& config);
Result<std::unique_ptr<Model>> make_gpt2(const ConfigJson& config);

}  // namespace plimsoll::models
