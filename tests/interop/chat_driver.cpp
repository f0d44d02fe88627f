// Renders chat templates for chat_compare.py, which compiles it against a build's libraries.
//
//   driver < cases             per case four texts, each as u32 length and bytes: the template, the special
//   tokens
//                              as lines "name<TAB>text", the record, and "1" or "0" for the generation
//                              prompt; answers per case: u8 ok, u32 length and bytes of the text (or of the
//                              error), u32 count and u32 begin, u32 end of the assistant's spans
//   driver open PATH < records each as u32 length and bytes, the model's directory being PATH; answers as
//   above driver seconds ROUNDS < cases   the seconds of one render of each case, with and without spans
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "templates/chat_template.h"

namespace {

using plimsoll::templates::AssistantSpans;
using plimsoll::templates::ChatTemplate;
using plimsoll::templates::ChatText;

void write_u32(size_t value) {
  const auto narrow = static_cast<uint32_t>(value);
  std::cout.write(reinterpret_cast<const char*>(&narrow), sizeof narrow);
}
void write_text(const std::string& text) {
  write_u32(text.size());
  std::cout << text;
}
bool read_text(std::string& text) {
  uint32_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(size);
  return size == 0 || std::cin.read(text.data(), size).good();
}

struct Case {
  std::string text, tokens, record, prompt;
  bool read() { return read_text(text) && read_text(tokens) && read_text(record) && read_text(prompt); }
  [[nodiscard]] auto parse() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (size_t at = 0; at < tokens.size();) {
      const size_t tab = tokens.find('\t', at), end = std::min(tokens.find('\n', at), tokens.size());
      pairs.emplace_back(tokens.substr(at, tab - at), tokens.substr(tab + 1, end - tab - 1));
      at = end + 1;
    }
    return ChatTemplate::parse(text, "template", pairs, {.now = 1735689600});
  }
};

void answer(const plimsoll::Status& status, const ChatText& out) {
  std::cout.put(status ? '\1' : '\0');
  write_text(status ? out.text : status.error().message());
  write_u32(status ? out.assistant.size() : 0);
  if (!status) return;
  for (const plimsoll::templates::TextSpan& span : out.assistant) {
    write_u32(span.begin);
    write_u32(span.end);
  }
}

/// Spans where they can be found, else the text alone.
void render(const ChatTemplate& chat, const std::string& record, bool prompt) {
  ChatText out;
  plimsoll::Status status = chat.render(record, prompt, out);
  if (!status) status = chat.render(record, prompt, out, AssistantSpans::kSkip);
  answer(status, out);
}

double seconds_of(const ChatTemplate& chat, const Case& one, int rounds, AssistantSpans spans) {
  ChatText out;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i)
    if (!chat.render(one.record, one.prompt == "1", out, spans)) return -1;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / rounds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  Case one;
  if (mode == "open") {
    const auto chat = ChatTemplate::open(argc > 2 ? argv[2] : "", {.now = 1735689600});
    if (!chat) {
      std::cerr << chat.error().message() << "\n";
      return 65;
    }
    while (read_text(one.record)) render(**chat, one.record, false);
    return 0;
  }
  while (one.read()) {
    const auto chat = one.parse();
    if (mode == "seconds") {
      const int rounds = argc > 2 ? std::stoi(argv[2]) : 1000;
      if (chat)
        std::cout << seconds_of(**chat, one, rounds, AssistantSpans::kSkip) << " "
                  << seconds_of(**chat, one, rounds, AssistantSpans::kFind) << "\n";
    } else if (chat) {
      render(**chat, one.record, one.prompt == "1");
    } else {
      answer(chat.error(), {});
    }
  }
}
