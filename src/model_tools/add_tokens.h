// Writes a model directory with additional tokens: the tokenizer has them, and embedding and head have rows
// for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::model_tools {

struct AddTokensRequest {
  std::string model = {};  ///< a folder, or a Hub id that is already cached
  std::string output = {};
  std::vector<std::string> tokens = {};          ///< added to tokenizer.json as ordinary text
  std::vector<std::string> special_tokens = {};  ///< as special ones, which decoding may leave out
  std::string tokenizer = {};  ///< a folder whose tokenizer replaces the model's; empty: none
  int64_t multiple_of = 1;     ///< the rows are rounded up to a multiple
};

struct AddTokensReport {
  int64_t num_tokens = 0;   ///< that the tokenizer has now, ids without a token counted
  int64_t num_added = 0;    ///< tokens of the request
  int64_t rows_before = 0;  ///< of embedding and head
  int64_t rows = 0;
  double seconds = 0;
};

/// Writes `output`. Each new row of embedding and head is the mean of the rows that there were, as
/// transformers' resize_token_embeddings (mean_resizing) has it but for its noise of 3e-5 standard
/// deviations; a tokenizer that fits the rows that there are changes no weight. Memory: tokenizer.json as a
/// tree, a row of a tensor in f64, a piece of a file. Errors: kInvalidArgument where nothing is asked for, a
/// token is empty, asked for twice or there already, the output is there and not empty; kBadData where the
/// model has no tokenizer.json, or is damaged; kIo.
Result<AddTokensReport> add_tokens(const AddTokensRequest& request);

}  // namespace plimsoll::model_tools
