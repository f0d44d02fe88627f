// Documents as the package writes them, byte for byte in meaning.
#include "tokenizer_training/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/tree.h"
#include "tokenizers/split_rules.h"

namespace plimsoll::tokenizer_training {
namespace {

io::Tree text(std::string_view value) { return io::Tree::of(std::string(value)); }

io::Tree byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return io::Tree::map({{"type", text("ByteLevel")},
                        {"add_prefix_space", io::Tree::of(add_prefix_space)},
                        {"trim_offsets", io::Tree::of(trim_offsets)},
                        {"use_regex", io::Tree::of(use_regex)}});
}

io::Tree behind(io::Tree first) {
  return io::Tree::map(
      {{"type", text("Sequence")},
       {"pretokenizers", io::Tree::list({std::move(first), byte_level(false, true, false)})}});
}

io::Tree split_by(tokenizers::SplitRule rule) {
  return behind(io::Tree::map({{"type", text("Split")},
                               {"pattern", io::Tree::map({{"Regex", text(tokenizers::pattern_of(rule))}})},
                               {"behavior", text("Isolated")},
                               {"invert", io::Tree::of(false)}}));
}

struct Preset {
  std::string_view name;
  io::Tree (*pre_tokenizer)();
  bool nfc;
};

constexpr std::array kPresets = {
    Preset{"gpt2", [] { return byte_level(false, true, true); }, false},
    Preset{"llama3", [] { return split_by(tokenizers::SplitRule::kLlama3); }, false},
    Preset{"qwen2", [] { return split_by(tokenizers::SplitRule::kQwen2); }, true},
    Preset{"smollm",
           [] {
             const io::Tree digits =
                 io::Tree::map({{"type", text("Digits")}, {"individual_digits", io::Tree::of(true)}});
             return io::Tree::map(
                 {{"type", text("Sequence")},
                  {"pretokenizers", io::Tree::list({digits, byte_level(false, true, true)})}});
           },
           false},
    Preset{"gpt4o", [] { return split_by(tokenizers::SplitRule::kGpt4o); }, false},
};

io::Tree added_tokens(const std::vector<std::string>& special_tokens) {
  io::Tree list = io::Tree::list();
  for (size_t i = 0; i < special_tokens.size(); ++i)
    list.items.push_back(io::Tree::map({{"id", io::Tree::of(static_cast<int64_t>(i))},
                                        {"content", text(special_tokens[i])},
                                        {"single_word", io::Tree::of(false)},
                                        {"lstrip", io::Tree::of(false)},
                                        {"rstrip", io::Tree::of(false)},
                                        {"normalized", io::Tree::of(false)},
                                        {"special", io::Tree::of(true)}}));
  return list;
}

io::Tree model(const TrainedBpe& trained) {
  io::Tree vocab = io::Tree::map();
  for (size_t id = 0; id < trained.tokens.size(); ++id)
    vocab.members.emplace_back(trained.tokens[id], io::Tree::of(static_cast<int64_t>(id)));
  io::Tree merges = io::Tree::list();
  const auto token = [&](int32_t id) { return text(trained.tokens[static_cast<size_t>(id)]); };
  for (const auto& [left, right] : trained.merges)
    merges.items.push_back(io::Tree::list({token(left), token(right)}));
  return io::Tree::map({{"type", text("BPE")},
                        {"dropout", {}},
                        {"unk_token", {}},
                        {"continuing_subword_prefix", {}},
                        {"end_of_word_suffix", {}},
                        {"fuse_unk", io::Tree::of(false)},
                        {"byte_fallback", io::Tree::of(false)},
                        {"ignore_merges", io::Tree::of(false)},
                        {"vocab", std::move(vocab)},
                        {"merges", std::move(merges)}});
}

struct Part {
  std::string_view name;
  std::array<std::string_view, 8> spellings;  // the first of them that is there
};

constexpr std::array kParts = {
    Part{"bos_token",
         {"<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<|bos|>", "[BOS]", "<|endoftext|>"}},
    Part{"eos_token",
         {"</s>", "<eos>", "<|end_of_text|>", "<|eos|>", "[EOS]", "<|endoftext|>", "<|im_end|>"}},
    Part{"pad_token", {"<pad>", "<|pad|>", "[PAD]", "<|padding|>", "<|endoftext|>"}},
};

}  // namespace

std::vector<std::string> pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Result<std::string> tokenizer_json(const TrainedBpe& trained, const std::vector<std::string>& special_tokens,
                                   std::string_view pre_tokenizer) {
  const auto* const preset = std::find_if(kPresets.begin(), kPresets.end(),
                                          [&](const Preset& each) { return each.name == pre_tokenizer; });
  if (preset == kPresets.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no pre-tokenizer '{}'", pre_tokenizer.substr(0, 60)),
                 "--pre-tokenizer", fmt::format("choose one of {}", fmt::join(pre_tokenizer_names(), ", "))};
  const io::Tree normalizer = preset->nfc ? io::Tree::map({{"type", text("NFC")}}) : io::Tree();
  return io::to_json(io::Tree::map({{"version", text("1.0")},
                                    {"truncation", {}},
                                    {"padding", {}},
                                    {"added_tokens", added_tokens(special_tokens)},
                                    {"normalizer", normalizer},
                                    {"pre_tokenizer", preset->pre_tokenizer()},
                                    {"post_processor", byte_level(true, false, true)},
                                    {"decoder", byte_level(true, true, true)},
                                    {"model", model(trained)}})) +
         "\n";
}

std::string tokenizer_config_json(const std::vector<std::string>& special_tokens) {
  io::Tree config = io::Tree::map({{"tokenizer_class", text("PreTrainedTokenizerFast")},
                                   {"add_prefix_space", io::Tree::of(false)},
                                   {"clean_up_tokenization_spaces", io::Tree::of(false)}});
  for (const Part& part : kParts)
    for (const std::string_view spelling : part.spellings) {
      if (spelling.empty() ||
          std::find(special_tokens.begin(), special_tokens.end(), spelling) == special_tokens.end())
        continue;
      config.set(part.name, text(spelling));
      break;
    }
  return io::to_json(config) + "\n";
}

}  // namespace plimsoll::tokenizer_training
