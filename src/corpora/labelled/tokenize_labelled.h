// Labelled examples of files of JSON lines to tokens: a shard, a document an example, and its labels beside
// it.
//
//   files ─► RecordReader ─► parse ─► encode ─► ShardWriter (KEY.shard)
//                              └────► RawLabel ─► LabelFileWriter (KEY.labels)
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

struct LabelledOptions {
  const tokenizers::Tokenizer* tokenizer = nullptr;  ///< null: lines hold input_ids alone
  LabelledFormat format = {};                        ///< vocab_size is the model's
  /// Tokens of this id at the end of a row are padding, which is not kept; the first token always is.
  std::optional<int64_t> pad_token = {};
  OnError on_error = OnError::kFail;
  /// Which examples: all, or one side of the split by the hash of their tokens.
  datasets::SplitSide side = datasets::SplitSide::kAll;
  double eval_fraction = 0;
};

/// An example's ids as its shard holds them: of a text, or a pair, with the special tokens that the
/// tokenizer's post-processor adds, as transformers' tokenizer(text, text_pair); input_ids as they are.
/// Whole: whoever reads them cuts. Returns what is wrong with the example, if anything.
std::optional<BadExample> encode_labelled(const LabelledExample& example, const LabelledOptions& options,
                                          std::vector<int32_t>& ids);

/// By what data.eval_fraction divides examples: the hash of their tokens.
uint64_t example_hash(std::span<const int32_t> ids);

/// Where the labels of a shard lie: "…/x.shard" has "…/x.labels".
std::string labels_beside(const std::string& shard_path);

/// Both files, the labels last; each is there whole or not at all. Determinism: what is written does not
/// depend on the number of threads. Errors: kBadData of the first line that cannot be used, with its place;
/// kBadData where no example is left; kInvalidArgument for files that are no JSON lines; kInterrupted; kIo.
Result<TokenizeCounts> tokenize_labelled(std::span<const std::string> paths, const LabelledOptions& options,
                                         const std::string& shard_path, const TokenizeOptions& tokenizing);

}  // namespace plimsoll::corpora
