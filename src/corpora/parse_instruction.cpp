#include "corpora/parse_instruction.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "corpora/json_scan.h"
#include "corpora/reasons.h"

namespace plimsoll::corpora {
namespace {

constexpr std::string_view kWithInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.";
constexpr std::string_view kWithoutInput =
    "Below is an instruction that describes a task. Write a response that appropriately completes the "
    "request.";
constexpr std::string_view kInstruction = "\n\n### Instruction:\n", kInput = "\n\n### Input:\n",
                           kResponse = "\n\n### Response:\n";

/// Turns before an alpaca row's instruction: pairs of two texts.
std::optional<BadExample> append_history(const ExampleLine& line, std::string& out) {
  if (!line.has("history")) return std::nullopt;
  const auto wrong = [&line](std::string what) {
    return line.bad(reason::kBadConversation, std::move(what) + ", expected pairs of two texts");
  };
  if (!is_list(line.get("history")))
    return wrong(fmt::format("\"history\" is {}", type_name(line.get("history"))));
  ListItems turns(line.get("history"));
  size_t i = 0;
  for (std::string_view turn; turns.next(turn); ++i) {
    std::vector<std::string_view> texts;
    if (is_list(turn)) {
      ListItems items(turn);
      for (std::string_view item; items.next(item);) texts.push_back(item);
    }
    if (texts.size() != 2 || !is_string(texts[0]) || !is_string(texts[1]))
      return wrong(fmt::format("history[{}] is {}", i,
                               is_list(turn) ? fmt::format("a list of {}", texts.size()) : type_name(turn)));
    append_unescaped(texts[0], out.append(kInstruction));
    append_unescaped(texts[1], out.append(kResponse));
  }
  return std::nullopt;
}

}  // namespace

std::optional<BadExample> parse_instruction(const ExampleLine& line, Example& example) {
  std::string instruction, input, system;
  if (auto wrong = line.string_into("instruction", instruction)) return wrong;
  if (line.has("input"))
    if (auto wrong = line.string_into("input", input)) return wrong;
  if (line.has("system"))
    if (auto wrong = line.string_into("system", system)) return wrong;
  if (auto wrong = line.string_into("output", example.completion)) return wrong;
  example.kind = ExampleKind::kCompletion;
  example.text.append(system.empty() ? (input.empty() ? kWithoutInput : kWithInput) : system);
  if (auto wrong = append_history(line, example.text)) return wrong;
  example.text.append(kInstruction).append(instruction);
  if (!input.empty()) example.text.append(kInput).append(input);
  example.text.append(kResponse);
  return std::nullopt;
}

}  // namespace plimsoll::corpora
