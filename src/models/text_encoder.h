// The bidirectional encoder of BERT's kind: sums of embeddings, layers that norm behind each residual sum,
// and a head on the first token. What families of the kind differ in is data in TextEncoderConfig.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/activation.h"
#include "models/language_model.h"

namespace plimsoll::models {

/// What a family calls the modules of a layer, behind "<prefix><layers>.<n>.".
struct TextLayerNames {
  std::string_view query, key, value, out, attention_norm, up, down, output_norm;
};

/// The classifier's head: [dropout] - dense - activation - dropout - out. Where `dense` is of the base, by
/// its prefix (BERT's pooler), it is there without labels too, and no part of a fresh head.
struct TextHead {
  std::string dense;  ///< a module [hidden, hidden]; empty: none
  std::string out;    ///< a module [labels, hidden]
  Activation activation = {Activation::Kind::kTanh};
  bool drops_features = false;  ///< dropout before `dense` too
  double dropout = 0;
};

/// The head of a masked language model: dense - activation - norm - the table of words, and a bias.
struct MaskedHead {
  std::string dense;  ///< a module [hidden, hidden]; empty: there is no such head
  std::string norm;   ///< a module [hidden]
  std::string bias;   ///< a tensor [vocab]
  std::string table;  ///< what checkpoints call the table of words where they save it once more
  Activation activation = {};
};

struct TextEncoderConfig {
  std::string prefix;  ///< of all tensors but the head's: "bert."
  std::string layers;  ///< "encoder.layer"
  TextLayerNames names = {};
  TextHead head = {};
  MaskedHead masked = {};
  bool answers = false;  ///< `head` is on all tokens: where answers begin and end
  int64_t vocab_size = 0, hidden = 0, num_layers = 0, heads = 0, inner = 0;
  int64_t position_rows = 0;   ///< of the table of positions
  int64_t first_position = 0;  ///< the row of a document's first token; rows before it are of no token
  int64_t token_types = 0;     ///< 0: there are no embeddings of token types
  std::optional<int64_t> pad_token = {};  ///< whose embedding learns nothing
  Activation activation = {};
  double eps = 1e-12;
  double initializer_range = 0.02;
  double hidden_dropout = 0;              ///< of the embeddings and of what the MLP adds
  double attention_output_dropout = 0;    ///< of what attention adds
  double attention_dropout = 0;           ///< of its weights
  std::vector<std::string> ignored = {};  ///< starts of names of other heads' tensors, and of buffers
  int64_t num_labels = 0;
  std::vector<std::string> unknown_fields = {};
};

/// A size by the family's own name or the one that all families share. Errors: kBadData, also where the two
/// differ.
Result<int64_t> read_size(const io::ConfigJson& config, std::string_view own, std::string_view common,
                          io::IntegerRange range, int64_t if_missing);

/// Reads the fields of BERT and of those that took its config over, RoBERTa and its kin, with the names of
/// the layers. `vocab_size` and `pad_token` are the class's defaults. Errors: kBadData naming the field.
Result<TextEncoderConfig> read_text_encoder(const io::ConfigJson& config, int64_t vocab_size,
                                            int64_t pad_token);

/// The row of nn.Embedding(padding_idx): `if_missing` where the field is left out, none where it is null.
Result<std::optional<int64_t>> read_padding_row(const io::ConfigJson& config, int64_t vocab_size,
                                                int64_t if_missing);

/// Refuses what would make the model another and is not supported, and returns the fields that nobody read.
/// The last call of a reader.
Result<std::vector<std::string>> finish_text_encoder(const io::ConfigJson& config);

/// Takes `head` in place of the classifier's where config.json names a masked language model, and ignores
/// what the file then has of others: names that begin with `others`. Errors: kBadData where its table is not
/// the embeddings'.
Status take_masked_head(const io::ConfigJson& config, MaskedHead head, std::vector<std::string> others,
                        TextEncoderConfig& c);

/// The same where it names a model that answers questions: a linear map to two logits a token behind that
/// dropout.
void take_span_head(const io::ConfigJson& config, double dropout, std::vector<std::string> others,
                    TextEncoderConfig& c);

/// RoBERTa's reader, which its kin share; they differ in the size of the vocabulary that a config may leave
/// out.
Result<std::unique_ptr<Model>> make_roberta_model(const io::ConfigJson& config, int64_t vocab_size);

/// The model of a config that a family's reader made.
std::unique_ptr<LanguageModel> make_text_encoder(TextEncoderConfig config);

}  // namespace plimsoll::models
