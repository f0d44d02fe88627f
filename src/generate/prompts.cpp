#include "generate/prompts.h"

#include <fmt/format.h>

#include <charconv>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::generate {
namespace {

constexpr int64_t kMostFileBytes = int64_t{64} << 20;

class Reader {
 public:
  Reader(const TextCodec& codec, const Resolved& resolved, int64_t vocab_size)
      : codec_(codec), resolved_(resolved), vocab_size_(vocab_size) {}

  Status add_text(std::string text, const std::string& where) {
    Prompt prompt{.text = std::move(text)};
    if (Status encoded = codec_.encode(prompt.text, prompt.ids); !encoded) return encoded;
    if (prompt.ids.empty() && resolved_.bos_id) prompt.ids.push_back(*resolved_.bos_id);
    if (prompt.ids.empty())
      return Error{ErrorCode::kInvalidArgument, "the prompt is empty", where,
                   "give it a text; the model has no bos_token_id to begin from"};
    prompts_.push_back(std::move(prompt));
    return Ok{};
  }

  Status add_ids(std::vector<int64_t> ids, const std::string& where, ErrorCode code) {
    Prompt prompt;
    for (const int64_t id : ids) {
      if (id < 0 || id >= vocab_size_)
        return Error{code, fmt::format("the id {} is not in the model's vocabulary", id), where,
                     fmt::format("ids go from 0 to {}", vocab_size_ - 1)};
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

  Status add_file(const std::string& path) {
    const bool json = path.ends_with(".jsonl");
    if (!json && !path.ends_with(".txt"))
      return Error{ErrorCode::kInvalidArgument, "a file of prompts ends in .txt or .jsonl", path,
                   "a .txt has a prompt a line, a .jsonl an object with \"prompt\" or \"ids\" a line"};
    PLIMSOLL_ASSIGN(const std::string content, read_small_file(path, kMostFileBytes));
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
  Status add_json(const std::string& line, const std::string& where) {
    auto tree = parse_json(line, {.max_bytes = kMostFileBytes, .max_nodes = 1 << 21});
    if (!tree) return std::move(tree).error().at(where);
    const Tree *text = tree->find("prompt"), *ids = tree->find("ids");
    if (text != nullptr && text->kind == Tree::Kind::kString) return add_text(text->text, where);
    if (ids != nullptr && ids->kind == Tree::Kind::kList) {
      std::vector<int64_t> values;
      for (const Tree& id : ids->items) {
        if (id.kind != Tree::Kind::kInteger)
          return Error{ErrorCode::kBadData, "ids holds " + id.describe(), where, "ids are whole numbers"};
        values.push_back(id.integer);
      }
      return add_ids(std::move(values), where, ErrorCode::kBadData);
    }
    return Error{ErrorCode::kBadData, "the line has neither a \"prompt\" nor \"ids\"", where,
                 R"(write {"prompt": "text"} or {"ids": [1, 2, 3]})"};
  }

  const TextCodec& codec_;
  const Resolved& resolved_;
  int64_t vocab_size_;
  std::vector<Prompt> prompts_;
};

}  // namespace

Result<std::vector<Prompt>> read_prompts(const Request& request, const TextCodec& codec,
                                         const Resolved& resolved, int64_t vocab_size) {
  Reader reader(codec, resolved, vocab_size);
  for (const std::string& text : request.prompts) PLIMSOLL_TRY(reader.add_text(text, "--prompt"));
  for (const std::string& ids : request.prompt_ids) PLIMSOLL_TRY(reader.add_id_list(ids));
  for (const std::string& path : request.prompt_files) PLIMSOLL_TRY(reader.add_file(path));
  std::vector<Prompt> prompts = reader.take();
  if (prompts.empty())
    return Error{ErrorCode::kInvalidArgument, "there is no prompt", "plimsoll generate",
                 "give --prompt TEXT, --prompts FILE or --prompt-ids 1,2,3"};
  return prompts;
}

}  // namespace plimsoll::generate
