#include "training/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/host.h"
#include "corpora/encoder_files.h"
#include "corpora/pad_token.h"
#include "io/file.h"
#include "io/hub_cache.h"
#include "io/json.h"
#include "io/label_fields.h"
#include "io/python_json.h"
#include "models/classifier.h"
#include "preprocessing/image_processor.h"
#include "preprocessing/run_data.h"
#include "templates/template_files.h"
#include "tokenizer_training/tokenizer_files.h"
#include "tokenizers/config_files.h"
#include "tokenizers/older_files.h"
#include "tokenizers/tokenizer_class.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::training {
namespace {

namespace fs = std::filesystem;

/// Copied where they are there, whatever reads them.
constexpr const char* kCopied[] = {"added_tokens.json", "vocab.json",      "merges.txt",
                                   "vocab.txt",         "tokenizer.model", "sentencepiece.bpe.model",
                                   "spiece.model"};

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return !a.empty() && !b.empty() && fs::equivalent(a, b, ignored);
}

/// The text of the token that a field names; empty where it names none.
std::string token_text(const io::Tree& config, std::string_view field) {
  const std::string* text = tokenizers::token_text(config.find(field));
  return text != nullptr ? *text : std::string();
}

/// What a disk did not give is not taken for what is not there; a file that this program does not understand
/// is copied as it is.
template <class T>
Status was_read(const Result<T>& result) {
  if (!result && result.error().code == ErrorCode::kIo) return result.error();
  return Ok{};
}

class Gathering {
 public:
  Gathering(const settings::RunConfig& config, const io::ConfigJson& model, std::span<const int32_t> row_ends)
      : config_(config), model_(model), row_ends_(row_ends) {}

  Result<checkpoints::ModelFileSet> operator()() {
    PLIMSOLL_ASSIGN(model_folder_, settings::model_directory(config_.model));
    if (models::is_image_model(model_)) return of_images();
    PLIMSOLL_ASSIGN(tokenizer_, preprocessing::tokenizer_path(config_));
    if (config_.data.tokenizer != "bytes") PLIMSOLL_TRY(add_tokenizer());
    PLIMSOLL_TRY(add_generation());
    if (corpora::lacks_pad_token(model_)) PLIMSOLL_TRY(settle_pad_token());
    tell_of_vocabulary();
    if (encoder_) PLIMSOLL_TRY(was_read(*encoder_));
    return checkpoints::ModelFileSet{std::move(files_), pad_token_, std::move(notes_)};
  }

 private:
  /// How pixels were made, so that transformers makes the same.
  Result<checkpoints::ModelFileSet> of_images() const {
    PLIMSOLL_ASSIGN(const images::Processor processor, preprocessing::image_processor(config_, model_));
    return checkpoints::ModelFileSet{
        .files = {{.name = "preprocessor_config.json", .text = images::processor_json(processor)}}};
  }
  [[nodiscard]] std::string at(const char* name) const { return folder_ + "/" + name; }
  void copy_where_there(const char* name) {
    if (io::is_file(at(name))) files_.push_back({name, {}, at(name)});
  }

  Status add_tokenizer() {
    PLIMSOLL_TRY(find_folder());
    if (folder_.empty()) return Ok{};
    for (const char* name : kCopied) copy_where_there(name);
    if (!is_read_) {  // one that this program does not read
      for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
        copy_where_there(name);
      return Ok{};
    }
    if (!json_.empty()) files_.push_back({"tokenizer.json", {}, json_});
    PLIMSOLL_TRY(add_tokenizer_config());
    return add_special_tokens();
  }

  Status find_folder() {
    if (tokenizer_ == "bytes") {
      folder_ = model_folder_;
    } else if (io::is_file(tokenizer_)) {
      folder_ = io::folder_of(tokenizer_);
      is_read_ = true;
      if (!tokenizers::is_older_file(tokenizer_)) json_ = tokenizer_;
    } else {
      PLIMSOLL_ASSIGN(folder_, io::find_model_folder(tokenizer_));
      if (io::is_file(at("tokenizer.json"))) json_ = at("tokenizer.json");
      is_read_ = !tokenizers::tokenizer_file(folder_).empty();
    }
    is_replaced_ = !is_same_folder(folder_, model_folder_);
    return Ok{};
  }

  /// The tokenizer itself, read when it is first asked for. Null where it cannot be read, which is no error
  /// of a run that has not needed it.
  const corpora::EncoderFiles* encoder() {
    if (!encoder_) encoder_ = corpora::EncoderFiles::open(tokenizer_, config_.data.chat_template);
    return encoder_->ok() ? &**encoder_ : nullptr;
  }

  /// Pretrained weights know the ids of the tokenizer that lies beside them.
  void tell_of_vocabulary() {
    if (!is_read_ || !is_replaced_ || !settings::starts_pretrained(config_.model) ||
        tokenizers::tokenizer_file(model_folder_).empty() || encoder() == nullptr)
      return;
    const auto beside = corpora::EncoderFiles::open(model_folder_);
    if (!beside || beside->tokenizer->vocabulary_hash() == encoder()->tokenizer->vocabulary_hash()) return;
    notes_.push_back(
        fmt::format("data.tokenizer has another vocabulary ({} ids) than the tokenizer of the pretrained "
                    "model ({} ids), so its weights belong to other tokens",
                    encoder()->tokenizer->vocab_size(), beside->tokenizer->vocab_size()));
  }

  Status add_tokenizer_config() {
    bool is_new = !io::is_file(at("tokenizer_config.json"));
    auto there = tokenizers::read_config_object(at("tokenizer_config.json"), ErrorCode::kIo);
    if (!is_new) PLIMSOLL_TRY(was_read(there));
    if (is_new)
      PLIMSOLL_TRY(make_tokenizer_config());
    else if (there)
      tokenizer_config_ = std::move(*there);
    if (is_new || there) {
      PLIMSOLL_ASSIGN(const bool is_set, set_pad_token());
      is_new = is_set || is_new;
    }
    auto used = templates::read_template_files(folder_, config_.data.chat_template);
    if (!used && !config_.data.chat_template.empty()) return std::move(used).error();
    PLIMSOLL_TRY(was_read(used));
    if (used && (is_new || there)) is_new = set_template(*used) || is_new;
    if (is_new)
      files_.push_back({"tokenizer_config.json", io::to_json(tokenizer_config_) + "\n"});
    else
      copy_where_there("tokenizer_config.json");
    return Ok{};
  }

  Status settle_pad_token() {
    if (!pad_token_ && is_read_ && encoder() != nullptr) {
      PLIMSOLL_ASSIGN(pad_token_, corpora::pad_token_for(*encoder(), model_, row_ends_));
    }
    return Ok{};
  }

  /// transformers' tokenizers fill up no batch without one. Whether tokenizer_config.json is another now.
  Result<bool> set_pad_token() {
    if (!corpora::lacks_pad_token(model_)) return false;
    PLIMSOLL_TRY(settle_pad_token());
    if (!pad_token_ || encoder() == nullptr || !token_text(tokenizer_config_, "pad_token").empty())
      return false;
    const std::string_view text = encoder()->tokenizer->token(static_cast<int32_t>(*pad_token_));
    tokenizer_config_.set("pad_token", io::Tree::of(std::string(text)));
    return true;
  }

  /// Of a tokenizer.json alone: parts by the usual spellings of its special tokens.
  Status make_tokenizer_config() {
    if (json_.empty()) {  // older files, whose class follows from the model's family
      PLIMSOLL_ASSIGN(const auto files, tokenizers::ConfigFiles::read(folder_));
      tokenizer_config_ = io::Tree::map({{"tokenizer_class", io::Tree::of(class_of_older_files(files))}});
      return Ok{};
    }
    const corpora::EncoderFiles* files = encoder();
    std::vector<std::string> special;
    for (int64_t id = 0; files != nullptr && id < files->tokenizer->vocab_size(); ++id)
      if (const auto token = static_cast<int32_t>(id); files->tokenizer->is_special(token))
        special.emplace_back(files->tokenizer->token(token));
    PLIMSOLL_ASSIGN(tokenizer_config_, io::parse_json(tokenizer_training::tokenizer_config_json(special),
                                                      tokenizers::kConfigLimits));
    return Ok{};
  }

  static std::string class_of_older_files(const tokenizers::ConfigFiles& files) {
    switch (tokenizers::tokenizer_class(files)) {
      case tokenizers::TokenizerClass::kGpt2:
        return "GPT2Tokenizer";
      case tokenizers::TokenizerClass::kQwen2:
        return "Qwen2Tokenizer";
      case tokenizers::TokenizerClass::kBert:
        return "BertTokenizer";
      case tokenizers::TokenizerClass::kXlmRoberta:
        return "XLMRobertaTokenizer";
      case tokenizers::TokenizerClass::kCamembert:
        return "CamembertTokenizer";
      case tokenizers::TokenizerClass::kT5:
        return "T5Tokenizer";
      case tokenizers::TokenizerClass::kAlbert:
        return "AlbertTokenizer";
      default:
        return "LlamaTokenizer";
    }
  }

  /// As both kinds of readers find it: in a file of its own, and as a member, which old ones know alone and
  /// which alone has room for a second one. Whether tokenizer_config.json is another now.
  bool set_template(const templates::TemplateFiles& used) {
    io::Tree member = io::Tree::of(used.chat.text);
    if (!used.tool_use.source.empty()) {
      const auto named = [](const char* name, const std::string& text) {
        return io::Tree::map({{"name", io::Tree::of(std::string(name))}, {"template", io::Tree::of(text)}});
      };
      member = io::Tree::list({named("default", used.chat.text), named("tool_use", used.tool_use.text)});
    } else if (!config_.data.chat_template.empty() || io::is_file(at("chat_template.jinja"))) {
      files_.push_back({"chat_template.jinja", used.chat.text});
    }
    const io::Tree* before = tokenizer_config_.find("chat_template");
    const bool is_list = before != nullptr && before->kind == io::Tree::Kind::kList;
    if (before != nullptr && config_.data.chat_template.empty() &&
        (is_list || io::to_json(*before) == io::to_json(member)))
      return false;
    tokenizer_config_.set("chat_template", std::move(member));
    return true;
  }

  Status add_special_tokens() {
    special_tokens_ = io::Tree::map();
    if (io::is_file(at("special_tokens_map.json"))) {
      auto there = tokenizers::read_config_object(at("special_tokens_map.json"), ErrorCode::kIo);
      PLIMSOLL_TRY(was_read(there));
      if (there) special_tokens_ = std::move(*there);
      copy_where_there("special_tokens_map.json");
      return Ok{};
    }
    for (const char* name : tokenizers::kSpecialTokenFields)
      if (const io::Tree* field = tokenizer_config_.find(name);
          !token_text(tokenizer_config_, name).empty()) {
        io::Tree token = *field;  // with its rules, where it has some
        std::erase_if(token.members,
                      [](const auto& m) { return m.first == "__type" || m.first == "special"; });
        special_tokens_.set(name, std::move(token));
      }
    files_.push_back({"special_tokens_map.json", io::to_json(special_tokens_) + "\n"});
    return Ok{};
  }

  Status add_generation() {
    const std::string source = model_folder_.empty() ? "" : model_folder_ + "/generation_config.json";
    const bool is_there = !source.empty() && io::is_file(source);
    const bool as_it_is = !is_read_ || io::is_sequence_classifier(model_) || io::is_masked_lm(model_) ||
                          io::is_question_answering(model_) ||
                          (is_there && !is_replaced_ && config_.data.chat_template.empty()) ||
                          encoder() == nullptr;
    if (as_it_is) {
      if (is_there) files_.push_back({"generation_config.json", {}, source});
      return Ok{};
    }
    io::Tree fields = io::Tree::map();
    if (is_there) {
      PLIMSOLL_ASSIGN(fields, tokenizers::read_config_object(source));
    }
    PLIMSOLL_TRY(set_ends(*encoder(), fields));
    files_.push_back({"generation_config.json", io::to_python_json(fields) + "\n"});
    return Ok{};
  }

  Status set_ends(const corpora::EncoderFiles& files, io::Tree& fields) {
    std::vector<int64_t> ends;
    const auto add = [&](int64_t id) {
      if (id >= 0 && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
    };
    if (const auto end = files.end_token()) add(*end);
    if (!is_replaced_) {
      const io::ConfigJson& before = fields.find("eos_token_id") ? io::ConfigJson(fields, "") : model_;
      PLIMSOLL_ASSIGN(const auto ids, before.integers("eos_token_id", {-1, INT32_MAX}));
      for (const int64_t id : ids)
        if (id < files.tokenizer->vocab_size()) add(id);
    }
    if (const auto end = end_of_turn(files)) add(*end);
    set_id(fields, "bos_token_id", "bos_token", files, {});
    set_id(fields, "pad_token_id", "pad_token", files,
           ends.empty() ? std::nullopt : std::optional(ends.front()));
    io::Tree list = io::Tree::list();
    for (const int64_t id : ends) list.items.push_back(io::Tree::of(id));
    if (!ends.empty()) fields.set("eos_token_id", ends.size() == 1 ? list.items.front() : std::move(list));
    return Ok{};
  }

  /// The tokenizer's, else what stands there already and means the same, else `otherwise`.
  void set_id(io::Tree& fields, const char* field, const char* name, const corpora::EncoderFiles& files,
              std::optional<int64_t> otherwise) const {
    std::string text = token_text(tokenizer_config_, name);
    if (text.empty()) text = token_text(special_tokens_, name);
    if (const auto id = text.empty() ? std::nullopt : files.tokenizer->id_of(text))
      otherwise = *id;
    else if (!is_replaced_ && fields.find(field) != nullptr)
      return;
    if (otherwise)
      fields.set(field, io::Tree::of(*otherwise));
    else
      std::erase_if(fields.members, [&](const auto& member) { return member.first == field; });
  }

  /// The special token that the template ends an assistant's turn with.
  static std::optional<int64_t> end_of_turn(const corpora::EncoderFiles& files) {
    constexpr std::string_view kTalk =
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
    templates::ChatText text;
    if (!files.chat_template || !files.chat_template->render(kTalk, false, text) || text.assistant.empty())
      return {};
    const templates::TextSpan turn = text.assistant.back();
    std::vector<int32_t> ids;
    if (!files.tokenizer->encode(std::string_view(text.text).substr(turn.begin, turn.end - turn.begin), false,
                                 ids))
      return {};
    const auto last =
        std::find_if(ids.rbegin(), ids.rend(), [&](int32_t id) { return files.tokenizer->is_special(id); });
    return last == ids.rend() ? std::nullopt : std::optional<int64_t>(*last);
  }

  const settings::RunConfig& config_;
  const io::ConfigJson& model_;
  std::span<const int32_t> row_ends_;
  std::string model_folder_, tokenizer_;
  std::string folder_, json_;  ///< where the tokenizer's files lie; its tokenizer.json, where there is one
  bool is_read_ = false;       ///< by this program, from the one or from older files
  bool is_replaced_ = false;   ///< the tokenizer is not the model folder's
  std::optional<Result<corpora::EncoderFiles>> encoder_;
  io::Tree tokenizer_config_, special_tokens_;
  std::vector<checkpoints::ModelFile> files_;
  std::vector<std::string> notes_;
  std::optional<int64_t> pad_token_;  ///< of a classifier whose config names none
};

}  // namespace

Result<checkpoints::ModelFileSet> model_files(const settings::RunConfig& config, const io::ConfigJson& model,
                                              std::span<const int32_t> row_ends) {
  return Gathering(config, model, row_ends)();
}

Result<checkpoints::ModelFileSet> model_files_apart(const settings::RunConfig& config,
                                                    const io::ConfigJson& model,
                                                    std::span<const int32_t> row_ends) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, preprocessing::tokenizer_path(config));
  if (tokenizer == "bytes") return model_files(config, model, row_ends);  // copies alone
  PLIMSOLL_ASSIGN(
      const std::string text, run_apart([&]() -> Result<std::string> {
        PLIMSOLL_ASSIGN(const checkpoints::ModelFileSet made, model_files(config, model, row_ends));
        io::Tree list =
            io::Tree::list({made.pad_token ? io::Tree::of(*made.pad_token) : io::Tree(), io::Tree::list()});
        for (const std::string& note : made.notes) list.items[1].items.push_back(io::Tree::of(note));
        for (const checkpoints::ModelFile& f : made.files)
          list.items.push_back(
              io::Tree::list({io::Tree::of(f.name), io::Tree::of(f.text), io::Tree::of(f.source)}));
        return io::to_json(list);
      }));
  PLIMSOLL_ASSIGN(const io::Tree list, io::parse_json(text, tokenizers::kConfigLimits));
  checkpoints::ModelFileSet made;
  if (const io::Tree& pad = list.items.front(); !pad.is_null()) made.pad_token = pad.integer;
  for (const io::Tree& note : list.items[1].items) made.notes.push_back(note.text);
  for (const io::Tree& f : std::span(list.items).subspan(2))
    made.files.push_back({f.items[0].text, f.items[1].text, f.items[2].text});
  return made;
}

}  // namespace plimsoll::training
