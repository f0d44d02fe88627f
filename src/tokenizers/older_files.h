// Tokenizers of folders without a tokenizer.json, as transformers' classes make them of older files:
// vocab.json and merges.txt (GPT-2, Qwen2), tokenizer.model (Llama 2, Mistral), vocab.txt (BERT),
// sentencepiece.bpe.model (XLM-RoBERTa, CamemBERT), spiece.model (T5, ALBERT).
#pragma once

#include <string>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/named_tokens.h"
#include "tokenizers/tokenizer_class.h"

namespace plimsoll::tokenizers {

/// Whether a file's name is that of an older file.
bool is_older_file(const std::string& path);
/// The older file that a folder's tokenizer is read from; empty where there is none.
std::string older_file(const std::string& folder);

/// The document that says the same as the older files. What the class and the files name beside is put into
/// `files.config`: its special tokens where none are given; into `files.pieces` the control pieces of
/// a sentencepiece model. Source: transformers 5.23, GPT2Tokenizer, Qwen2Tokenizer, LlamaTokenizer,
/// BertTokenizer, SentencePieceExtractor, and unigram_classes.h. Errors: kBadData for what is broken or of a
/// kind that is not read; kIo.
Result<Document> read_older_files(const std::string& file, ConfigFiles& files);

/// Puts the post-processor's template into a document of older files, where tokenizer_config.json asks for
/// the first or the last token of a text (add_bos_token, add_eos_token), which transformers does not heed
/// beside a tokenizer.json; of BertTokenizer and the classes of unigram_classes.h their own template, with
/// and without a tokenizer.json. `named`: as named_tokens.
Status set_text_ends(const ConfigFiles& files, const std::vector<NamedToken>& named, Document& document);

}  // namespace plimsoll::tokenizers
