#include "generate/chat_format.h"

#include <utility>
#include <vector>

namespace plimsoll::generate {
namespace {

bool has_system(const Tree& messages) {
  if (messages.items.empty()) return false;
  const Tree* role = messages.items.front().find("role");
  return role != nullptr && (role->text == "system" || role->text == "developer");
}

}  // namespace

Tree message(std::string_view role, std::string_view content) {
  return Tree::map({{"role", Tree::of(std::string(role))}, {"content", Tree::of(std::string(content))}});
}

Result<ChatFormat> ChatFormat::open(const std::string& folder, const Request& request) {
  ChatFormat format;
  format.folder_ = folder;
  format.system_ = request.system;
  format.raw_ = request.raw;
  if (request.raw) return format;
  auto found = ChatTemplate::open_if_any(folder, {.template_file = request.chat_template});
  if (!found) {
    Error error = std::move(found).error();
    if (request.chat_template.empty()) error.hint += "; --raw does without the template";
    return error;
  }
  format.template_ = std::move(*found);
  if (format.template_ == nullptr && (request.chat || !request.system.empty()))
    return Error{ErrorCode::kInvalidArgument, "the model has no chat template", folder,
                 "name one with --chat-template FILE, or leave --chat and --system away"};
  return format;
}

Result<std::string> ChatFormat::render(Tree record) const {
  if (template_ == nullptr)
    return Error{ErrorCode::kInvalidArgument, "messages need a chat template", folder_,
                 raw_ ? "leave --raw away, or give prompts" : "name one with --chat-template FILE"};
  if (!system_.empty())
    for (auto& [name, value] : record.members)
      if (name == "messages" && !has_system(value))
        value.items.insert(value.items.begin(), message("system", system_));
  ChatText chat;
  PLIMSOLL_TRY(
      template_->render(to_json(record), /*add_generation_prompt=*/true, chat, AssistantSpans::kSkip));
  return std::move(chat.text);
}

Result<std::string> ChatFormat::render_prompt(std::string_view text) const {
  return render(Tree::map({{"messages", Tree::list({message("user", text)})}}));
}

std::string ChatFormat::behind_answer() const {
  constexpr std::string_view kAnswer = "plimsoll-answer";  // in no template
  ChatText chat;
  const Tree record =
      Tree::map({{"messages", Tree::list({message("user", "a"), message("assistant", kAnswer)})}});
  if (template_ == nullptr || !template_->render(to_json(record), false, chat, AssistantSpans::kSkip))
    return {};
  const size_t at = chat.text.rfind(kAnswer);
  return at == std::string::npos ? std::string() : chat.text.substr(at + kAnswer.size());
}

}  // namespace plimsoll::generate
