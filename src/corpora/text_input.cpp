#include "corpora/text_input.h"

#include <utility>

namespace plimsoll::corpora {

Result<TextInput> TextInput::open(const EncoderFiles& files, std::span<const std::string> paths,
                                  const TextOptions& options) {
  const tokenizers::Tokenizer& tokenizer = *files.tokenizer;
  EncoderOptions encoding;
  encoding.loss = options.loss;
  encoding.add_special_tokens = options.add_special_tokens;
  encoding.template_error = files.template_error;
  encoding.append = options.append_end;
  if (options.append_end != AppendEnd::kNever) {
    auto end = files.end_token(options.end_token);
    if (!end && options.append_end == AppendEnd::kAlways) return std::move(end).error();
    if (end) encoding.append_id = *end;
  }
  ReaderOptions reading;
  reading.on_error = options.on_error;
  reading.text_key = options.text_key;
  reading.cut = [&tokenizer](std::string_view text) { return tokenizer.last_safe_cut(text); };
  PLIMSOLL_ASSIGN(auto reader, ExampleReader::open(paths, reading));
  const datasets::ShardOptions shard{.vocab_size = tokenizer.vocab_size(),
                                     .vocabulary_hash = tokenizer.vocabulary_hash(),
                                     .with_mask = reader->has_json() && options.loss != LossScope::kAll};
  return TextInput{{tokenizer, files.chat_template.get(), encoding}, std::move(reader), shard};
}

Result<TokenizeCounts> write_tokens(TextInput& input, TokenOutput& output, const TokenizeOptions& options) {
  const TokenSink sink = [&](std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues) {
    return output.add(ids, in_loss, continues);
  };
  PLIMSOLL_ASSIGN(TokenizeCounts counts, tokenize_files(*input.reader, input.encoder, sink, options));
  if (counts.num_tokens == 0)
    return Error{ErrorCode::kBadData, "no example gave a token, so there is nothing to write",
                 input.reader->files().front(), "check that these are the files you meant"};
  PLIMSOLL_TRY(output.finish());
  return counts;
}

}  // namespace plimsoll::corpora
