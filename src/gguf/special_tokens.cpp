#include "gguf/special_tokens.h"

#include <array>
#include <vector>

#include "io/file.h"
#include "tokenizers/config_files.h"

namespace plimsoll::gguf {
namespace {

struct Kind {
  const char* name;
  const char* key;
};
constexpr std::array<Kind, 6> kKinds = {{{"bos", "tokenizer.ggml.bos_token_id"},
                                         {"eos", "tokenizer.ggml.eos_token_id"},
                                         {"unk", "tokenizer.ggml.unknown_token_id"},
                                         {"sep", "tokenizer.ggml.seperator_token_id"},  // spelled so there
                                         {"pad", "tokenizer.ggml.padding_token_id"},
                                         {"mask", "tokenizer.ggml.mask_token_id"}}};
constexpr int64_t kMostTemplateBytes = 4 << 20;

class Adding {
 public:
  Adding(int64_t vocab_size, Metadata& metadata) : vocab_size_(vocab_size), metadata_(metadata) {}

  Status read(const std::string& folder) {
    for (auto [name, to] :
         {std::pair{"/config.json", &config_}, {"/tokenizer_config.json", &tokenizer_config_}}) {
      PLIMSOLL_ASSIGN(*to, tokenizers::read_config_object_if_there(folder + name));
    }
    if (io::is_file(folder + "/chat_template.jinja")) {
      PLIMSOLL_ASSIGN(template_, io::read_small_file(folder + "/chat_template.jinja", kMostTemplateBytes));
    }
    return Ok{};
  }

  void add_ids(const std::function<std::optional<int64_t>(const std::string&)>& id_of) {
    for (const Kind& kind : kKinds) {
      std::optional<int64_t> id;
      const std::string* text =
          tokenizers::token_text(tokenizer_config_.find(std::string(kind.name) + "_token"));
      if (text != nullptr) id = id_of(*text);
      if (!id) id = id_in_config(std::string(kind.name) + "_token_id");
      if (id && *id >= 0 && *id < vocab_size_) metadata_.add_u32(kind.key, *id);
    }
  }

  void add_ends(const io::Tree* tokenizer) {
    std::optional<bool> bos, eos;
    if (tokenizer != nullptr) look_at(tokenizer->find("post_processor"), bos, eos);
    for (auto [name, to] : {std::pair{"add_bos_token", &bos}, {"add_eos_token", &eos}})
      if (const io::Tree* said = tokenizer_config_.find(name);
          said != nullptr && said->kind == io::Tree::Kind::kBool)
        *to = said->boolean;
    metadata_.add_bool("tokenizer.ggml.add_bos_token", bos.value_or(false));
    if (eos) metadata_.add_bool("tokenizer.ggml.add_eos_token", *eos);
  }

  void add_templates() {
    const io::Tree* said = tokenizer_config_.find("chat_template");
    if (said == nullptr || said->is_null()) {
      if (!template_.empty()) metadata_.add_text("tokenizer.chat_template", template_);
    } else if (said->kind == io::Tree::Kind::kString) {
      metadata_.add_text("tokenizer.chat_template", said->text);
    } else {
      add_named(*said);
    }
  }

 private:
  /// A list names several ends: the first is the text's.
  [[nodiscard]] std::optional<int64_t> id_in_config(const std::string& field) const {
    const io::Tree* id = config_.find(field);
    if (id != nullptr && id->kind == io::Tree::Kind::kList && !id->items.empty()) id = &id->items.front();
    if (id == nullptr || id->kind != io::Tree::Kind::kInteger) return std::nullopt;
    return id->integer;
  }

  [[nodiscard]] std::string special(const char* field) const {
    const std::string* text = tokenizers::token_text(tokenizer_config_.find(field));
    return text == nullptr ? "" : *text;
  }

  /// What a template of the post-processor puts around a text.
  void look_at(const io::Tree* processor, std::optional<bool>& bos, std::optional<bool>& eos) const {
    if (processor == nullptr || processor->is_null()) return;
    if (const io::Tree* list = processor->find("processors"))
      for (const io::Tree& item : list->items) look_at(&item, bos, eos);
    const io::Tree* type = processor->find("type");
    const io::Tree* single = processor->find("single");
    if (type == nullptr || type->text != "TemplateProcessing" || single == nullptr ||
        single->items.size() < 2)
      return;
    const auto token_of = [](const io::Tree& item) -> const io::Tree* {
      const io::Tree* token = item.find("SpecialToken");
      return token == nullptr ? nullptr : token->find("id");
    };
    // Without a tokenizer_config.json they are taken for what stands there.
    const bool unnamed = tokenizer_config_.is_null();
    if (const io::Tree* first = token_of(single->items.front()))
      bos = unnamed || first->text == special("bos_token") || first->text == special("cls_token");
    if (const io::Tree* last = token_of(single->items.back()))
      eos = unnamed || last->text == special("eos_token");
  }

  void add_named(const io::Tree& list) {
    std::vector<std::string> names;
    const std::string* first = nullptr;
    for (const io::Tree& choice : list.items) {
      const io::Tree *name = choice.find("name"), *text = choice.find("template");
      if (name == nullptr || text == nullptr || name->text.empty()) continue;
      if (name->text == "default") {
        first = &text->text;
        continue;
      }
      std::string plain = name->text;
      for (char& c : plain)
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) c = '_';
      metadata_.add_text("tokenizer.chat_template." + plain, text->text);
      names.push_back(std::move(plain));
    }
    if (!names.empty()) metadata_.add_texts("tokenizer.chat_templates", names);
    if (first != nullptr) metadata_.add_text("tokenizer.chat_template", *first);
  }

  int64_t vocab_size_;
  Metadata& metadata_;
  io::Tree config_, tokenizer_config_;
  std::string template_;
};

}  // namespace

Status add_special_tokens(const std::string& folder, const io::Tree* tokenizer,
                          const std::function<std::optional<int64_t>(const std::string&)>& id_of,
                          int64_t vocab_size, Metadata& metadata) {
  Adding adding(vocab_size, metadata);
  PLIMSOLL_TRY(adding.read(folder));
  adding.add_ids(id_of);
  adding.add_ends(tokenizer);
  adding.add_templates();
  return Ok{};
}

}  // namespace plimsoll::gguf
