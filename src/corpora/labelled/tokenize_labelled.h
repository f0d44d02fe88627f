// Labelled examples of files of JSON lines to tokens: a shard, a document an example, and its labels beside
// it.
//
//   files ─► RecordReader ─► parse ─► encode ─► ShardWriter (KEY.shard)
//                              │          └► types ─► ShardWriter (KEY.types)
//                              └────► RawLabel ─► LabelFileWriter (KEY.labels)
//
// Types are there for models with several token types alone. Questions become windows (question.h): an
// example is one of them, and its label where the answer begins and ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "corpora/labelled/labelled_example.h"
#include "corpora/tokenize.h"
#include "datasets/packing.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::corpora {

/// Of lines that are questions.
struct QuestionOptions {
  int64_t doc_stride = 128;  ///< WindowOptions::doc_stride
  /// For predictions: no answer is needed, the label of a window is (number of its question, place of its
  /// first token of the context, how many there are), and where those tokens stand in the context lies beside
  /// the shard (begins_beside, ends_beside).
  bool asks = false;
};

struct LabelledOptions {
  const tokenizers::Tokenizer* tokenizer = nullptr;  ///< null: lines hold input_ids alone
  LabelledFormat format = {};                        ///< vocab_size and num_token_types are the model's
  /// Texts become at most so many tokens, cut as transformers does with truncation=True; 0: whole, and
  /// whoever reads them cuts at the end.
  int64_t max_tokens = 0;
  /// Tokens of this id at the end of a row are padding, which is not kept; the first token always is.
  std::optional<int64_t> pad_token = {};
  /// Lines are questions, in windows of max_tokens; nothing: texts with labels.
  std::optional<QuestionOptions> questions = {};
  OnError on_error = OnError::kFail;
  /// Which examples: all, or one side of the split by the hash of their tokens.
  datasets::SplitSide side = datasets::SplitSide::kAll;
  double eval_fraction = 0;

  [[nodiscard]] bool has_spans() const { return questions && questions->asks; }
  /// Whether a row has types beside its ids: a model of one type needs none.
  [[nodiscard]] bool has_types() const { return format.num_token_types > 1; }
};

/// An example as its shard holds it.
struct LabelledTokens {
  std::vector<int32_t> ids = {};
  std::vector<int32_t> types = {};  ///< as many with LabelledOptions::has_types, else none
  uint64_t hash = 0;                ///< example_hash of the ids, of texts before they are cut
};

/// Of a text, or a pair, the ids with the special tokens that the tokenizer's post-processor adds, and their
/// types, as transformers' tokenizer(text, text_pair); input_ids as they are, never cut. Returns what is
/// wrong with the example, if anything.
std::optional<BadExample> encode_labelled(const LabelledExample& example, const LabelledOptions& options,
                                          LabelledTokens& tokens);

/// Whether special tokens stand behind a text: a row that is cut at its end would lose them, and
/// LabelledOptions::max_tokens keeps them.
bool ends_with_special(const tokenizers::Tokenizer& tokenizer);
/// Whether texts are cut while they are encoded (LabelledOptions::max_tokens) and not at the end of their
/// row: for models that see both ways, and where ends_with_special. Null: there are no texts.
bool cuts_texts(const tokenizers::Tokenizer* tokenizer, bool is_bidirectional);

/// By what data.eval_fraction divides examples: the hash of their tokens.
uint64_t example_hash(std::span<const int32_t> ids);

/// Where the labels of a shard lie: "…/x.shard" has "…/x.labels".
std::string labels_beside(const std::string& shard_path);
/// Where its token types lie: "…/x.types", a shard with types in place of ids.
std::string types_beside(const std::string& shard_path);
/// Where the first and the last byte of each token of the context lie, of the others 0: shards too.
std::string begins_beside(const std::string& shard_path);
std::string ends_beside(const std::string& shard_path);
/// What LabelFile::shard_hash is of a shard with that content, and of types beside it.
uint64_t labelled_hash(uint64_t shard_hash, std::optional<uint64_t> types_hash);

/// All files, the labels last; each is there whole or not at all. Determinism: what is written does not
/// depend on the number of threads. Errors: kBadData of the first line that cannot be used, with its place;
/// kBadData where no example is left; kInvalidArgument for files that are no JSON lines; kInterrupted; kIo.
Result<TokenizeCounts> tokenize_labelled(std::span<const std::string> paths, const LabelledOptions& options,
                                         const std::string& shard_path, const TokenizeOptions& tokenizing);

}  // namespace plimsoll::corpora
