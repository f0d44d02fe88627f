// Files of text opened to be tokenized, and tokenized.
//
//   a model's files + settings ─► encoder ┐
//   files of text ──────────────► reader  ┴─► write_tokens ─► TokenOutput
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "corpora/encoder_files.h"
#include "corpora/example_encoder.h"
#include "corpora/example_reader.h"
#include "corpora/token_output.h"
#include "corpora/tokenize.h"
#include "datasets/shard.h"

namespace plimsoll::corpora {

struct TextOptions {
  LossScope loss = LossScope::kAuto;
  bool add_special_tokens = false;           ///< see EncoderOptions
  AppendEnd append_end = AppendEnd::kNever;  ///< end documents with a token,
  std::string end_token = {};                ///< this one; empty: the one that the tokenizer's files name
  OnError on_error = OnError::kFail;
  std::string text_key = {};  ///< see ReaderOptions
};

struct TextInput {
  ExampleEncoder encoder;
  std::unique_ptr<ExampleReader> reader;
  datasets::ShardOptions shard;  ///< of what is made of it

  /// `files` outlives the input; `paths`: files or globs. Errors: as EncoderFiles::end_token, where all
  /// documents are to end with it; as ExampleReader::open.
  static Result<TextInput> open(const EncoderFiles& files, std::span<const std::string> paths,
                                const TextOptions& options);
};

/// All of `input` into `output`, which is finished then. Errors: as tokenize_files; kBadData where no example
/// gave a token; kIo. Nothing is written unless all is.
Result<TokenizeCounts> write_tokens(TextInput& input, TokenOutput& output, const TokenizeOptions& options);

}  // namespace plimsoll::corpora
