#include "tokenizers/class_parts.h"

#include <fmt/format.h>

#include <utility>

#include "base/host.h"
#include "tokenizers/config_files.h"
#include "tokenizers/split_rules.h"
#include "tokenizers/unigram_classes.h"

namespace plimsoll::tokenizers {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581

io::Tree text(std::string_view value) { return io::Tree::of(std::string(value)); }

io::Tree byte_level(bool prefix_space, bool use_regex) {
  return io::Tree::map({{"type", text("ByteLevel")},
                        {"add_prefix_space", io::Tree::of(prefix_space)},
                        {"trim_offsets", io::Tree::of(true)},
                        {"use_regex", io::Tree::of(use_regex)}});
}

io::Tree bpe(bool fuse_unknown, bool byte_fallback) {
  return io::Tree::map({{"type", text("BPE")},
                        {"fuse_unk", io::Tree::of(fuse_unknown)},
                        {"byte_fallback", io::Tree::of(byte_fallback)}});
}

void set_gpt2_parts(bool prefix_space, io::Tree& root) {
  root.set("model", bpe(false, false));
  root.set("normalizer", io::Tree());
  root.set("pre_tokenizer", byte_level(prefix_space, true));
  root.set("decoder", byte_level(true, true));
}

void set_qwen2_parts(bool prefix_space, io::Tree& root) {
  io::Tree split =
      io::Tree::map({{"type", text("Split")},
                     {"pattern", io::Tree::map({{"Regex", text(pattern_of(SplitRule::kQwen2))}})},
                     {"behavior", text("Isolated")},
                     {"invert", io::Tree::of(false)}});
  root.set("model", bpe(false, false));
  root.set("normalizer", io::Tree::map({{"type", text("NFC")}}));
  root.set("pre_tokenizer",
           io::Tree::map(
               {{"type", text("Sequence")},
                {"pretokenizers", io::Tree::list({std::move(split), byte_level(prefix_space, false)})}}));
  root.set("decoder", byte_level(true, true));
}

io::Tree replace(std::string_view pattern, std::string_view content) {
  return io::Tree::map({{"type", text("Replace")},
                        {"pattern", io::Tree::map({{"String", text(pattern)}})},
                        {"content", text(content)}});
}

/// A text's first word has a blank before it (every stretch between special tokens where `legacy` says so).
void set_llama_parts(bool prefix_space, bool legacy, io::Tree& root) {
  const char* scheme = !prefix_space ? "never" : legacy ? "always" : "first";
  root.set("model", bpe(true, true));
  root.set("normalizer", io::Tree());
  root.set("pre_tokenizer", io::Tree::map({{"type", text("Metaspace")},
                                           {"replacement", text(kMark)},
                                           {"prepend_scheme", text(scheme)},
                                           {"split", io::Tree::of(false)}}));
  io::Tree decoders = io::Tree::list({replace(kMark, " "), io::Tree::map({{"type", text("ByteFallback")}}),
                                      io::Tree::map({{"type", text("Fuse")}})});
  if (prefix_space)
    decoders.items.push_back(io::Tree::map({{"type", text("Strip")},
                                            {"content", text(" ")},
                                            {"start", io::Tree::of(int64_t{1})},
                                            {"stop", io::Tree::of(int64_t{0})}}));
  root.set("decoder", io::Tree::map({{"type", text("Sequence")}, {"decoders", std::move(decoders)}}));
}

/// A note where a tokenizer.json says otherwise, because it is easily overlooked.
void set_bert_parts(const ConfigFiles& files, io::Tree& root) {
  const bool lowers = files.flag("do_lower_case", true);
  if (const io::Tree* before = root.find("normalizer"); before != nullptr) {
    const io::Tree* says = before->find("lowercase");
    if (says != nullptr && says->kind == io::Tree::Kind::kBool && says->boolean != lowers)
      note(fmt::format(
          "{}: the tokenizer {} letters, because tokenizer_config.json {} and BertTokenizer heeds "
          "that alone; the normalizer of tokenizer.json says otherwise",
          files.folder, lowers ? "lowers" : "keeps the case of",
          files.config.find("do_lower_case") != nullptr ? "says so in do_lower_case"
                                                        : "has no do_lower_case"));
  }
  const io::Tree* accents = files.config.find("strip_accents");
  const std::string* unknown = special_text(files, "unk_token");
  root.set("model", io::Tree::map({{"type", text("WordPiece")},
                                   {"unk_token", text(unknown == nullptr ? "[UNK]" : *unknown)},
                                   {"continuing_subword_prefix", text("##")},
                                   {"max_input_chars_per_word", io::Tree::of(int64_t{100})}}));
  root.set("normalizer",
           io::Tree::map({{"type", text("BertNormalizer")},
                          {"clean_text", io::Tree::of(true)},
                          {"handle_chinese_chars", io::Tree::of(files.flag("tokenize_chinese_chars", true))},
                          {"strip_accents", accents == nullptr ? io::Tree() : *accents},
                          {"lowercase", io::Tree::of(lowers)}}));
  root.set("pre_tokenizer", io::Tree::map({{"type", text("BertPreTokenizer")}}));
  root.set(
      "decoder",
      io::Tree::map({{"type", text("WordPiece")}, {"prefix", text("##")}, {"cleanup", io::Tree::of(true)}}));
}

}  // namespace

void set_class_parts(TokenizerClass kind, const ConfigFiles& files, bool prefix_space, io::Tree& root) {
  switch (kind) {
    case TokenizerClass::kAny:
    case TokenizerClass::kXlmRoberta:  // set_unigram_parts
    case TokenizerClass::kCamembert:
    case TokenizerClass::kT5:
    case TokenizerClass::kAlbert:
      return;
    case TokenizerClass::kGpt2:
      return set_gpt2_parts(files.flag("add_prefix_space", false), root);
    case TokenizerClass::kQwen2:
      return set_qwen2_parts(files.flag("add_prefix_space", false), root);
    case TokenizerClass::kLlama:
      return set_llama_parts(files.flag("add_prefix_space", prefix_space), files.flag("legacy", false), root);
    case TokenizerClass::kBert:
      return set_bert_parts(files, root);
  }
}

void set_default_tokens(TokenizerClass kind, ConfigFiles& files) {
  const auto set = [&](std::string_view name, std::string_view token) {
    if (files.config.find(name) == nullptr) files.config.set(name, text(token));
  };
  if (kind == TokenizerClass::kAny) return;
  if (is_unigram_class(kind)) return set_unigram_tokens(kind, files);
  if (kind == TokenizerClass::kBert) {
    for (const auto& [name, token] : {std::pair{"unk_token", "[UNK]"},
                                      {"sep_token", "[SEP]"},
                                      {"pad_token", "[PAD]"},
                                      {"cls_token", "[CLS]"},
                                      {"mask_token", "[MASK]"}})
      set(name, token);
    return;
  }
  const bool is_llama = kind == TokenizerClass::kLlama;
  set("unk_token", is_llama ? "<unk>" : "<|endoftext|>");
  set("eos_token", is_llama ? "</s>" : "<|endoftext|>");
  if (is_llama) set("bos_token", "<s>");
  if (kind == TokenizerClass::kGpt2) set("bos_token", "<|endoftext|>");
  if (kind == TokenizerClass::kQwen2) set("pad_token", "<|endoftext|>");
}

TokenizerClass class_of_json(const ConfigFiles& files, std::string_view json) {
  const TokenizerClass kind = tokenizer_class(files);
  if (kind == TokenizerClass::kLlama && json.find("\"ByteLevel\"") != json.npos) return TokenizerClass::kAny;
  return kind;
}

}  // namespace plimsoll::tokenizers
