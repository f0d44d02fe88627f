// Opens the examples of a language model: streams of tokens, or documents packed into sequences.
#pragma once

#include <memory>
#include <vector>

#include "datasets/example_source.h"

namespace plimsoll::datasets {

/// The order of a language model's tensors, i32 each, as many values each: sequence_length, or fewer that
/// hold the sequence's tokens. The last is there where it is asked for; whoever wants no targets gives an
/// empty part of them.
enum CausalTensor : uint8_t { kTokensRow, kTargetsRow, kDocStartRow };
/// "tokens" and "targets" (the next token, or kNoTarget), with `documents` also "doc_start": where each
/// token's document begins; all of a stream is one document.
std::vector<TensorSpec> causal_tensors(bool documents);

/// Streams (.npy, .bin, texts as bytes) or shards, as examples of these tensors. Errors: as
/// TrainingData::open.
Result<std::unique_ptr<ExampleSource>> open_causal_source(const DataFiles& files,
                                                          const SourceOptions& options);

}  // namespace plimsoll::datasets
