#include "generate/chat_format.h"

#include <utility>
#include <vector>

namespace plimsoll::generate {
namespace {

bool has_system(const io::Tree& messages) {
  if (messages.items.empty()) return false;
  const io::Tree* role = messages.items.front().find("role");
  return role != nullptr && (role->text == "system" || role->text == "developer");
}

/// As in transformers; a template that strips the content takes the blank away.
constexpr std::string_view kGoOn = "CONTINUE_FINAL_MESSAGE_TAG ",
                           kGoOnWord = kGoOn.substr(0, kGoOn.size() - 1);

/// The text that the last message, the assistant's, ends with; null where it is another's or has none.
io::Tree* unfinished_text(io::Tree& record) {
  const auto member = [](io::Tree& map, std::string_view wanted) -> io::Tree* {
    for (auto& [name, value] : map.members)
      if (name == wanted) return &value;
    return nullptr;
  };
  io::Tree* const messages = member(record, "messages");
  if (messages == nullptr || messages->items.empty()) return nullptr;
  io::Tree& last = messages->items.back();
  const io::Tree* role = last.find("role");
  io::Tree* const content = member(last, "content");
  if (role == nullptr || role->text != "assistant" || content == nullptr) return nullptr;
  if (content->kind == io::Tree::Kind::kString) return content;
  for (size_t i = content->items.size(); i-- > 0;)
    if (io::Tree* text = member(content->items[i], "text");
        text != nullptr && text->kind == io::Tree::Kind::kString)
      return text;
  return nullptr;
}

/// Where the answer begins that goes on with a text that kGoOn stands behind; npos where it is not there.
size_t end_of_unfinished(std::string_view rendered) {
  size_t at = rendered.rfind(kGoOnWord);
  if (at == rendered.npos || rendered.substr(at).starts_with(kGoOn)) return at;
  while (at > 0 && std::string_view(" \t\n\r").find(rendered[at - 1]) != std::string_view::npos) --at;
  return at;
}

}  // namespace

io::Tree message(std::string_view role, std::string_view content) {
  return io::Tree::map(
      {{"role", io::Tree::of(std::string(role))}, {"content", io::Tree::of(std::string(content))}});
}

Result<ChatFormat> ChatFormat::open(const std::string& folder, const Request& request) {
  ChatFormat format;
  format.folder_ = folder;
  format.system_ = request.system;
  format.raw_ = request.raw;
  if (request.raw) return format;
  auto found = templates::ChatTemplate::open_if_any(folder, {.template_file = request.chat_template});
  if (!found) {
    Error error = std::move(found).error();
    if (request.chat_template.empty()) error.hint += "; --raw turns the template off";
    return error;
  }
  format.template_ = std::move(*found);
  if (format.template_ == nullptr && (request.chat || !request.system.empty()))
    return Error{ErrorCode::kInvalidArgument, "the model has no chat template", folder,
                 "name one with --chat-template FILE, or leave out --chat and --system"};
  return format;
}

Result<std::string> ChatFormat::render(io::Tree record) const {
  if (template_ == nullptr)
    return Error{ErrorCode::kInvalidArgument, "messages need a chat template", folder_,
                 raw_ ? "leave out --raw, or give prompts" : "name one with --chat-template FILE"};
  if (!system_.empty())
    for (auto& [name, value] : record.members)
      if (name == "messages" && !has_system(value))
        value.items.insert(value.items.begin(), message("system", system_));
  templates::ChatText chat;
  io::Tree* const unfinished = unfinished_text(record);
  if (unfinished != nullptr) unfinished->text += kGoOn;
  PLIMSOLL_TRY(template_->render(io::to_json(record), /*add_generation_prompt=*/unfinished == nullptr, chat,
                                 templates::AssistantSpans::kSkip));
  if (unfinished == nullptr) return std::move(chat.text);
  const size_t end = end_of_unfinished(chat.text);
  if (end == std::string::npos)
    return Error{ErrorCode::kBadData,
                 "the last message is the assistant's, and the chat template does not write it, so it cannot "
                 "be continued",
                 folder_, "end with a message of the user's"};
  return chat.text.substr(0, end);
}

Result<std::string> ChatFormat::render_prompt(std::string_view text) const {
  return render(io::Tree::map({{"messages", io::Tree::list({message("user", text)})}}));
}

std::string ChatFormat::behind_answer() const {
  constexpr std::string_view kAnswer = "plimsoll-answer";  // in no template
  templates::ChatText chat;
  const io::Tree record =
      io::Tree::map({{"messages", io::Tree::list({message("user", "a"), message("assistant", kAnswer)})}});
  if (template_ == nullptr ||
      !template_->render(io::to_json(record), false, chat, templates::AssistantSpans::kSkip))
    return {};
  const size_t at = chat.text.rfind(kAnswer);
  return at == std::string::npos ? std::string() : chat.text.substr(at + kAnswer.size());
}

}  // namespace plimsoll::generate
