// The model's chat template at work: renders conversations to the text that the model continues.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "generate/request.h"
#include "io/tree.h"
#include "templates/chat_template.h"

namespace plimsoll::generate {

/// {"role", "content"}.
io::Tree message(std::string_view role, std::string_view content);

/// Whether and how prompts become conversations. The template applies where the model's folder has one
/// (transformers, vLLM and llama.cpp's server take that for a model that converses), unless --raw.
class ChatFormat {
 public:
  /// Errors: as ChatTemplate::open; kInvalidArgument where there is none and --chat or --system need one.
  static Result<ChatFormat> open(const std::string& folder, const Request& request);

  /// Whether plain prompts are a user's message.
  [[nodiscard]] bool applies() const { return template_ != nullptr; }
  /// A record with "messages", and what else ChatTemplate::render reads, as apply_chat_template does with
  /// add_generation_prompt, or, where the last message is a text of the assistant's, with
  /// continue_final_message: the model goes on with it. --system becomes the first message where the record
  /// has no such one.
  /// Errors: as ChatTemplate::render; kInvalidArgument where there is no template; kBadData where the
  /// template does not write the message that is to be gone on with.
  [[nodiscard]] Result<std::string> render(io::Tree record) const;
  /// The same of one user's message.
  [[nodiscard]] Result<std::string> render_prompt(std::string_view text) const;
  /// What the template writes behind an answer; empty where that cannot be told.
  [[nodiscard]] std::string behind_answer() const;

 private:
  std::string folder_, system_;
  bool raw_ = false;
  std::unique_ptr<templates::ChatTemplate> template_;
};

}  // namespace plimsoll::generate
