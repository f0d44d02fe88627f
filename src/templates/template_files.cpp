// Reads chat template files with transformers' precedence: chat_template.jinja (and
// additional_chat_templates/tool_use.jinja) win over the member of tokenizer_config.json.
#include "templates/template_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io/file.h"
#include "io/json_cursor.h"
#include "tokenizers/config_files.h"

namespace plimsoll::templates {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTemplateBytes = int64_t{1} << 20;

Result<TemplateText> read_text(const std::string& path) {
  PLIMSOLL_ASSIGN(std::string text, io::read_small_file(path, kMaxTemplateBytes));
  if (const int64_t at = io::utf8_error_at(text); at >= 0)
    return Error{ErrorCode::kBadData, fmt::format("no UTF-8 at byte {}", at), path,
                 "a chat template is a text in UTF-8"};
  return TemplateText{.text = std::move(text), .source = path};
}

/// An empty object where there is no such file.
Result<io::Tree> read_object(const std::string& path) {
  PLIMSOLL_ASSIGN(io::Tree object, tokenizers::read_config_object_if_there(path));
  if (object.is_null()) return io::Tree::map();
  return object;
}

void add_token(const std::string& name, const io::Tree& value, TemplateFiles& out) {
  const std::string* text = tokenizers::token_text(&value);
  if (text == nullptr) return;
  const auto same = [&name](const auto& token) { return token.first == name; };
  if (std::none_of(out.special_tokens.begin(), out.special_tokens.end(), same))
    out.special_tokens.emplace_back(name, *text);
}

void add_tokens(const io::Tree& config, TemplateFiles& out) {
  for (const char* name : tokenizers::kSpecialTokenFields)
    if (const io::Tree* value = config.find(name)) add_token(name, *value, out);
  for (const char* section : {"extra_special_tokens", "model_specific_special_tokens"})
    if (const io::Tree* named = config.find(section); named != nullptr && named->kind == io::Tree::Kind::kMap)
      for (const auto& [name, value] : named->members) add_token(name, value, out);
}

Status read_named(const io::Tree& list, const std::string& source, TemplateFiles& out) {
  const auto broken = [&source](std::string what) {
    return Error{ErrorCode::kBadData, std::move(what), source,
                 "a list of templates holds {\"name\": …, \"template\": …}"};
  };
  for (const io::Tree& entry : list.items) {
    const io::Tree* name = entry.find("name");
    const io::Tree* text = entry.find("template");
    if (name == nullptr || text == nullptr || name->kind != io::Tree::Kind::kString ||
        text->kind != io::Tree::Kind::kString)
      return broken("a template without name or text");
    const TemplateText found{.text = text->text, .source = fmt::format("{} '{}'", source, name->text)};
    if (name->text == "default") out.chat = found;
    if (name->text == "tool_use") out.tool_use = found;
  }
  if (out.chat.source.empty()) return broken("no template is named 'default'");
  return Ok{};
}

Status read_member(const io::Tree& config, const std::string& file, TemplateFiles& out) {
  const io::Tree* member = config.find("chat_template");
  const std::string source = file + ": chat_template";
  if (member == nullptr || member->is_null()) return Ok{};
  if (member->kind == io::Tree::Kind::kList) return read_named(*member, source, out);
  if (member->kind != io::Tree::Kind::kString)
    return Error{ErrorCode::kBadData, fmt::format("is {}, not a text", member->describe()), source,
                 "the template is a text, or a list of named ones"};
  out.chat = {.text = member->text, .source = source};
  return Ok{};
}

}  // namespace

Result<std::optional<TemplateFiles>> find_template_files(const std::string& path,
                                                         const std::string& template_file) {
  TemplateFiles out;
  PLIMSOLL_ASSIGN(const bool is_directory, io::is_folder(path));
  const fs::path folder = is_directory ? fs::path(path) : fs::path(path).parent_path();
  const std::string config_file = (folder / "tokenizer_config.json").string();
  PLIMSOLL_ASSIGN(const io::Tree config, read_object(config_file));
  PLIMSOLL_ASSIGN(const io::Tree tokens, read_object((folder / "special_tokens_map.json").string()));
  add_tokens(config, out);
  add_tokens(tokens, out);
  const fs::path jinja = folder / "chat_template.jinja";
  const fs::path tool_jinja = folder / "additional_chat_templates" / "tool_use.jinja";
  if (!template_file.empty() || !is_directory) {
    PLIMSOLL_ASSIGN(out.chat, read_text(template_file.empty() ? path : template_file));
    return std::optional(std::move(out));
  }
  if (io::is_file(jinja)) {
    PLIMSOLL_ASSIGN(out.chat, read_text(jinja.string()));
    if (io::is_file(tool_jinja)) {
      PLIMSOLL_ASSIGN(out.tool_use, read_text(tool_jinja.string()));
    }
    return std::optional(std::move(out));
  }
  PLIMSOLL_TRY(read_member(config, config_file, out));
  if (out.chat.source.empty()) return std::optional<TemplateFiles>();
  return std::optional(std::move(out));
}

Result<TemplateFiles> read_template_files(const std::string& path, const std::string& template_file) {
  PLIMSOLL_ASSIGN(std::optional<TemplateFiles> found, find_template_files(path, template_file));
  if (found) return *std::move(found);
  return Error{
      ErrorCode::kBadData, "no chat template", path,
      "chat_template.jinja or tokenizer_config.json's chat_template holds it in an instruction-tuned "
      "model's directory; for a base model, name a template's file"};
}

}  // namespace plimsoll::templates
