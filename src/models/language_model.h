// A model over tokens: its vocabulary, its positions, its forward graph up to logits, and the cache of keys
// and values that generation keeps.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace plimsoll::models {

/// What the forward pass of a language model runs on.
struct Forward {
  ir::ValueId tokens;  ///< i32[B, T]
  /// Packed documents: i32[B, T], the index in its sequence of the first token of each token's document;
  /// positions count from there, attention sees no further. Absent: a sequence is one document.
  ir::ValueId doc_start = {};
  /// i32[B, T], of models with token types: the part of a pair that each token is of, below
  /// num_token_types(). Absent: all 0.
  ir::ValueId token_types = {};
  bool training = false;     ///< dropout; else the model is as it answers
  ir::ValueId random = {};   ///< i32[4], see ops.h: what dropout draws from; needed in training
  ir::ValueId start = {};    ///< generation: i32[B], the position of column 0 of each row; absent: 0
  int64_t cache_tokens = 0;  ///< generation: positions that the cache holds, S; 0: there is none
  ir::DType cache_dtype = ir::DType::kF32;  ///< what it holds them in

  /// What dropout draws from; absent where it does not apply.
  [[nodiscard]] ir::ValueId noise() const { return training ? random : ir::ValueId{}; }
};

class LanguageModel : public Model {
 public:
  /// A sequence classifier's head in checkpoints.
  static constexpr const char* kScore = "score.weight";

  [[nodiscard]] int64_t vocab_size() const { return vocab_size_; }
  /// The longest sequence that it takes.
  [[nodiscard]] int64_t max_positions() const { return max_positions_; }
  /// Whether a token sees those behind it too. Padding is then a document of its own (Forward::doc_start),
  /// and there is no next token to predict: no generation, no loss of causal language models.
  [[nodiscard]] virtual bool is_bidirectional() const { return false; }
  /// How many token types it has embeddings of; 0: it reads no Forward::token_types.
  [[nodiscard]] virtual int64_t num_token_types() const { return 0; }

  /// Builds the forward pass up to the final norm: the residual stream [B, T, hidden]. With a cache, keys and
  /// values of each layer go through states "cache.k.<layer>" and "cache.v.<layer>" [B, S, kv_heads,
  /// head_dim] of its dtype.
  virtual ir::ValueId stream(ir::Builder& b, const Forward& forward) const = 0;
  /// The final norm of each row of the stream, as many as there are.
  virtual ir::ValueId final_norm(ir::Builder& b, ir::ValueId stream) const = 0;
  /// Of normed rows [..., hidden] -> f32[..., vocab], or [..., num_labels].
  virtual ir::ValueId head(ir::Builder& b, ir::ValueId hidden) const = 0;
  /// All of it up to the head: [B, T, hidden].
  ir::ValueId hidden(ir::Builder& b, const Forward& forward) const {
    return final_norm(b, stream(b, forward));
  }
  ir::ValueId logits(ir::Builder& b, const Forward& forward) const { return head(b, hidden(b, forward)); }
  /// The head on one row of each sequence, i32[B] `last` -> [B, 1, vocab or num_labels]. The others go no
  /// further than the stream. An encoder's head reads the first row, and `last` may be absent.
  virtual ir::ValueId pooled_logits(ir::Builder& b, const Forward& forward, ir::ValueId last) const;
  /// Whether it has the head of a masked language model: an encoder's, when config.json names that class.
  [[nodiscard]] virtual bool has_masked_head() const { return false; }
  /// The masked language model's head on rows of each sequence, i32[B, n] as ops::gather_rows takes them ->
  /// f32[B, n, vocab].
  ir::ValueId masked_logits(ir::Builder& b, const Forward& forward, ir::ValueId rows) const;
  /// Whether its head says for each token how well an answer begins and ends there.
  [[nodiscard]] virtual bool has_span_head() const { return false; }
  /// That head on all tokens -> [B, T, 2]: begins, ends. Of a model that has it.
  [[nodiscard]] virtual ir::ValueId span_logits(ir::Builder& b, const Forward& forward) const;

 protected:
  /// The first row of each sequence, x [B, T, hidden] -> [B, 1, hidden].
  static ir::ValueId first_rows(ir::Builder& b, ir::ValueId x);
  /// The classifier's head: a linear map without bias.
  [[nodiscard]] ir::ValueId score(ir::Builder& b, ir::ValueId rows) const;

  int64_t vocab_size_ = 0;
  int64_t max_positions_ = 0;
};

/// The model as a language model; null where it is none.
const LanguageModel* as_language_model(const Model& model);

/// The same, of a model that must be one: what else came here is a bug.
const LanguageModel& language_model(const Model& model);

/// An error where it is an encoder, which predicts no next token: for what wants a causal language model.
/// Names the family of `config` and what to do. kInvalidArgument.
Status check_is_causal(const LanguageModel& model, const io::ConfigJson& config);

/// The language model of a config.json. Errors: as make_model, and kBadData for a model that is none.
Result<std::unique_ptr<LanguageModel>> make_language_model(const io::ConfigJson& config);

}  // namespace plimsoll::models
