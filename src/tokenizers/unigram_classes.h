// The tokenizer classes of transformers over a Unigram model: XLMRobertaTokenizer, CamembertTokenizer,
// T5Tokenizer and AlbertTokenizer. They rebuild all parts but the vocabulary, whatever tokenizer.json says,
// and make tokenizers of sentencepiece models. Source: transformers 5.23, their __init__, and
// convert_from_spm of their converters.
#pragma once

#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/named_tokens.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/tokenizer_class.h"

namespace plimsoll::tokenizers {

bool is_unigram_class(TokenizerClass kind);

/// Gives tokenizer_config.json the special tokens that the class has where none are given, and
/// `files.class_tokens` the extra ones.
void set_unigram_tokens(TokenizerClass kind, ConfigFiles& files);

/// Sets the model's flags, normalizer, pre_tokenizer and decoder of the document. Of its own normalizer the
/// charsmap stays.
void set_unigram_parts(TokenizerClass kind, const ConfigFiles& files, Document& document);

/// The post-processor's template of the class; AlbertTokenizer keeps the one that the document has. `named`:
/// as named_tokens. Errors: kBadData for a special token that the tokenizer does not have.
Status set_unigram_template(TokenizerClass kind, const ConfigFiles& files,
                            const std::vector<NamedToken>& named, Document& document);

/// The document of a model: pieces moved and added as the class does it (fairseq's order of the special
/// tokens of XLM-RoBERTa and CamemBERT, T5's <extra_id_99> to <extra_id_0>). `files`: as set_unigram_tokens,
/// and the model's control and user-defined pieces. Errors: kBadData for a score that is no finite number.
Result<Document> unigram_document(TokenizerClass kind, const SentencePieceModel& model, ConfigFiles& files);

}  // namespace plimsoll::tokenizers
