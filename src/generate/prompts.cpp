#include "generate/prompts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::generate {
namespace {

constexpr int64_t kMostFileBytes = int64_t{64} << 20;

class Reader {
 public:
  explicit Reader(const PromptReading& reading) : reading_(reading) {}

  Status add_text(std::string text, const std::string& where) {
    Prompt prompt{.text = std::move(text)};
    if (reading_.format.applies()) {
      PLIMSOLL_ASSIGN(const std::string rendered, reading_.format.render_prompt(prompt.text));
      PLIMSOLL_TRY(reading_.codec.encode_rendered(rendered, prompt.ids));
      return add(std::move(prompt), where);
    }
    PLIMSOLL_TRY(reading_.codec.encode(prompt.text, prompt.ids));
    if (prompt.ids.empty() && reading_.bos_id) prompt.ids.push_back(*reading_.bos_id);
    return add(std::move(prompt), where);
  }

  /// A record with "messages".
  Status add_conversation(io::Tree record, const std::string& where) {
    Prompt prompt;
    const io::Tree* last = &record.find("messages")->items.back();
    if (const io::Tree* content = last->find("content"); content != nullptr) prompt.title = content->text;
    auto rendered = reading_.format.render(std::move(record));
    if (!rendered) return std::move(rendered).error().at(where);
    prompt.text = std::move(*rendered);
    PLIMSOLL_TRY(reading_.codec.encode_rendered(prompt.text, prompt.ids));
    return add(std::move(prompt), where);
  }

  Status add(Prompt prompt, const std::string& where) {
    if (prompt.ids.empty())
      return Error{ErrorCode::kInvalidArgument, "the prompt is empty", where,
                   "give it a text; the model has no bos_token_id to begin from"};
    prompts_.push_back(std::move(prompt));
    return Ok{};
  }

  Status add_ids(std::vector<int64_t> ids, const std::string& where, ErrorCode code) {
    Prompt prompt;
    for (const int64_t id : ids) {
      if (id < 0 || id >= reading_.vocab_size)
        return Error{code, fmt::format("the id {} is not in the model's vocabulary", id), where,
                     fmt::format("ids range from 0 to {}", reading_.vocab_size - 1)};
      prompt.ids.push_back(static_cast<int32_t>(id));
    }
    if (prompt.ids.empty())
      return Error{code, "the prompt has no ids", where, "give at least one id, as in 1,2,3"};
    prompts_.push_back(std::move(prompt));
    return Ok{};
  }

  Status add_id_list(const std::string& text) {
    std::vector<int64_t> ids;
    const char *at = text.data(), *const end = at + text.size();
    while (at != end) {
      int64_t id = 0;
      const auto [next, failure] = std::from_chars(at, end, id);
      if (failure != std::errc() || (next != end && *next != ',') || next + 1 == end)
        return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no list of ids", text.substr(0, 60)),
                     "--prompt-ids", "give numbers with commas and no blanks, as in 1,2,3"};
      ids.push_back(id);
      at = next == end ? end : next + 1;
    }
    return add_ids(std::move(ids), "--prompt-ids", ErrorCode::kInvalidArgument);
  }

  Status add_prompt_file(const std::string& path) {
    const bool json = path.ends_with(".jsonl");
    if (!json && !path.ends_with(".txt"))
      return Error{ErrorCode::kInvalidArgument, "a file of prompts ends in .txt or .jsonl", path,
                   "a .txt has a prompt a line, a .jsonl an object with \"messages\", \"prompt\" or "
                   "\"ids\" a line"};
    PLIMSOLL_ASSIGN(const std::string content, io::read_small_file(path, kMostFileBytes));
    return add_lines(content, path, json);
  }

  /// A file, or standard input for "-", as one prompt. A text file's last newline is no part of it.
  Status add_whole(const std::string& path) {
    PLIMSOLL_ASSIGN(std::string text, content_of(path));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return add_text(std::move(text), path == "-" ? "standard input" : path);
  }

  Status add_messages_file(const std::string& path) {
    PLIMSOLL_ASSIGN(const std::string content, content_of(path));
    return add_lines(content, path == "-" ? "standard input" : path, /*json=*/true);
  }

  Status add_lines(const std::string& content, const std::string& path, bool json) {
    const size_t before = prompts_.size();
    size_t line_number = 0;
    for (size_t begin = 0; begin < content.size();) {
      const size_t end = std::min(content.find('\n', begin), content.size());
      std::string line = content.substr(begin, end - begin);
      if (line.ends_with('\r')) line.pop_back();
      begin = end + 1;
      const std::string where = fmt::format("{}:{}", path, ++line_number);
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      PLIMSOLL_TRY(json ? add_json(line, where) : add_text(std::move(line), where));
    }
    if (prompts_.size() == before)
      return Error{ErrorCode::kBadData, "the file has no prompts", path, "write a prompt a line"};
    return Ok{};
  }

  std::vector<Prompt> take() { return std::move(prompts_); }

 private:
  static Result<std::string> content_of(const std::string& path) {
    return path == "-" ? read_standard_input() : io::read_small_file(path, kMostFileBytes);
  }

  Status add_json(const std::string& line, const std::string& where) {
    auto tree = io::parse_json(line, {.max_bytes = kMostFileBytes, .max_nodes = 1 << 21});
    if (!tree) return std::move(tree).error().at(where);
    const io::Tree *messages = tree->find("messages"), *text = tree->find("prompt"), *ids = tree->find("ids");
    // As TRL writes it, the prompt of a conversation is a list of messages as well.
    const io::Tree* list = messages != nullptr ? messages : text;
    if (list != nullptr && list->kind == io::Tree::Kind::kList && !list->items.empty()) {
      tree->set("messages", io::Tree(*list));
      return add_conversation(*std::move(tree), where);
    }
    if (text != nullptr && text->kind == io::Tree::Kind::kString) return add_text(text->text, where);
    if (ids != nullptr && ids->kind == io::Tree::Kind::kList) {
      std::vector<int64_t> values;
      for (const io::Tree& id : ids->items) {
        if (id.kind != io::Tree::Kind::kInteger)
          return Error{ErrorCode::kBadData, "ids holds " + id.describe(), where, "ids are whole numbers"};
        values.push_back(id.integer);
      }
      return add_ids(std::move(values), where, ErrorCode::kBadData);
    }
    return Error{
        ErrorCode::kBadData, "the line has neither \"messages\" nor a \"prompt\" nor \"ids\"", where,
        R"(write {"messages": [{"role": "user", "content": "text"}]}, {"prompt": "text"} or {"ids": [1, 2]})"};
  }

  const PromptReading& reading_;
  std::vector<Prompt> prompts_;
};

}  // namespace

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{ErrorCode::kIo, fmt::format("cannot be read: {}", std::strerror(errno)), "standard input"};
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > kMostFileBytes)
      return Error{ErrorCode::kBadData, "is larger than 64 MiB", "standard input",
                   "give the prompts in parts"};
  }
}

Result<std::vector<Prompt>> read_prompts(const Request& request, const PromptReading& reading) {
  Reader reader(reading);
  for (const std::string& text : request.prompts)
    PLIMSOLL_TRY(text == "-" ? reader.add_whole(text) : reader.add_text(text, "--prompt"));
  for (const std::string& ids : request.prompt_ids) PLIMSOLL_TRY(reader.add_id_list(ids));
  for (const std::string& path : request.text_files) PLIMSOLL_TRY(reader.add_whole(path));
  for (const std::string& path : request.prompt_files) PLIMSOLL_TRY(reader.add_prompt_file(path));
  for (const std::string& path : request.messages_files) PLIMSOLL_TRY(reader.add_messages_file(path));
  std::vector<Prompt> prompts = reader.take();
  if (prompts.empty())
    return Error{ErrorCode::kInvalidArgument, "there is no prompt", "plimsoll generate",
                 "give --prompt TEXT, --prompt-file, --prompts or --messages FILE, or --chat"};
  return prompts;
}

}  // namespace plimsoll::generate
