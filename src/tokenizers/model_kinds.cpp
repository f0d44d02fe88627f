#include "tokenizers/model_kinds.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tokenizers/bpe_model.h"
#include "tokenizers/unigram_model.h"
#include "tokenizers/word_piece_model.h"

namespace plimsoll::tokenizers {
namespace {

/// Files of 2020 do not name the kind.
Result<std::string> kind_of(const Document& document, const Field& model) {
  const Field type = model.member("type");
  if (!type.absent()) return type.string();
  if (document.has_merges) return std::string("BPE");
  if (document.has_scores) return std::string("Unigram");
  if (!model.member("max_input_chars_per_word").absent()) return std::string("WordPiece");
  return type.expected("BPE, WordPiece or Unigram");
}

template <typename Model>
Result<std::unique_ptr<const WordModel>> as_word_model(Result<Model> model) {
  if (!model) return std::move(model).error();
  return std::unique_ptr<const WordModel>(std::make_unique<Model>(std::move(model).value()));
}

}  // namespace

Result<std::unique_ptr<const WordModel>> build_model(const Document& document, const Field& model,
                                                     bool byte_level, const Vocabulary& vocabulary) {
  PLIMSOLL_ASSIGN(const std::string kind, kind_of(document, model));
  if (kind == "BPE") return as_word_model(BpeModel::build(document, model, byte_level, vocabulary));
  if (byte_level)
    return model.member("type").error(
        fmt::format("is {} behind a ByteLevel pre-tokenizer, which is not supported", kind));
  if (kind == "Unigram") return as_word_model(UnigramModel::build(document, model, vocabulary));
  return as_word_model(WordPieceModel::build(document, model, vocabulary));
}

Status check_model(const Document& document, const Field& model) {
  PLIMSOLL_TRY(model.check_map());
  PLIMSOLL_ASSIGN(const std::string kind, kind_of(document, model));
  if (kind != "BPE" && kind != "WordPiece" && kind != "Unigram")
    return model.member("type").error(
        fmt::format("is '{}'; supported models are BPE, WordPiece and Unigram", kind.substr(0, 60)));
  if (kind == "Unigram") {
    if (document.has_scores) return Ok{};
    return model.member("vocab").error("is not there, or is no list of pieces with scores");
  }
  if (!document.has_vocab)
    return model.member("vocab").error("is not there, or is no map from tokens to ids");
  if (kind == "BPE" && !document.has_merges)
    return model.member("merges").error("is not there, or is no list");
  return Ok{};
}

}  // namespace plimsoll::tokenizers
