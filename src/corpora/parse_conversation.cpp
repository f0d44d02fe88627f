#include "corpora/parse_conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "corpora/json_scan.h"
#include "corpora/parse_example.h"
#include "corpora/reasons.h"

namespace plimsoll::corpora {
namespace {

/// Beside the messages. What else a line has may be anything that Python writes, NaN too.
constexpr Keys kSeen = Keys(kExampleMembers).last(3);
constexpr std::string_view kOfMessages[] = {"role", "from", "value"};

void append_member(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out += ", ";
  append_quoted(key, out);
  out.append(": ").append(value);
}

/// The role that a speaker's name in ShareGPT files stands for; empty where it is not known.
std::string_view role_of_speaker(std::string_view from) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kRoles = {{
      {"human", "user"},
      {"user", "user"},
      {"gpt", "assistant"},
      {"assistant", "assistant"},
      {"chatgpt", "assistant"},
      {"model", "assistant"},
      {"bing", "assistant"},
      {"bard", "assistant"},
      {"function_call", "assistant"},
      {"system", "system"},
      {"tool", "tool"},
      {"observation", "tool"},
      {"function", "tool"},
      {"function_response", "tool"},
      {"developer", "developer"},
  }};
  for (const auto& [name, role] : kRoles)
    if (name == from) return role;
  return {};
}

/// Whether a list is one of messages: objects, each with a role.
std::optional<BadExample> check_messages(const ExampleLine& line, std::string_view key,
                                         std::string_view list) {
  if (list.empty()) return line.bad(reason::kMissingField, fmt::format("the line has no \"{}\"", key));
  if (!is_list(list))
    return line.bad(reason::kWrongType, fmt::format("\"{}\" is {}, expected a list", key, type_name(list)));
  ListItems items(list);
  size_t i = 0;
  for (std::string_view item; items.next(item); ++i) {
    if (!is_object(item))
      return line.bad(reason::kBadConversation,
                      fmt::format("{}[{}] is {}, expected an object", key, i, type_name(item)));
    const Members members = members_of(item, kOfMessages);
    if (key == "conversations" && find(members, "role").empty()) continue;
    if (!is_string(find(members, "role")))
      return line.bad(reason::kBadConversation,
                      fmt::format("{}[{}] has no \"role\" that is a string", key, i));
  }
  if (i == 0) return line.bad(reason::kBadConversation, fmt::format("\"{}\" is empty", key));
  return std::nullopt;
}

/// The messages of `list` behind the one that "system" holds, where the line has it.
std::optional<BadExample> with_system(const ExampleLine& line, std::string_view list, std::string& out) {
  const std::string_view system = line.get("system");
  out = list;
  if (system.empty() || system == R"("")") return std::nullopt;
  if (!is_string(system))
    return line.bad(reason::kWrongType,
                    fmt::format("\"system\" is {}, expected a string", type_name(system)));
  constexpr std::string_view kOfSystem[] = {"role", "content"};
  ListItems items(list);
  std::string_view first;
  items.next(first);
  const Members members = members_of(first, kOfSystem);
  if (const std::string_view role = find(members, "role"); role == R"("system")") {
    const std::string_view content = find(members, "content");
    if (is_string(content) && unescaped(content) == unescaped(system)) return std::nullopt;
    return line.bad(reason::kBadConversation,
                    "\"system\" is not what the conversation's own system message says");
  }
  out = "[";
  out.append(R"({"role": "system", "content": )").append(system).append("}, ").append(list.substr(1));
  return std::nullopt;
}

/// `list` as the messages of an object that keeps what else of the line a chat template sees.
void write_record(const ExampleLine& line, std::string_view list, std::string& out) {
  out = "{";
  append_member(out, "messages", list);
  for (const Member& member : line.members)
    if (std::find(kSeen.begin(), kSeen.end(), member.key) != kSeen.end())
      append_member(out, member.key, member.value);
  out += '}';
}

std::optional<BadExample> append_turn(const ExampleLine& line, std::string_view turn, size_t index,
                                      std::string& list) {
  const Members members = members_of(turn, kOfMessages);
  if (list.size() > 1) list += ", ";
  if (!find(members, "role").empty()) return list.append(turn), std::nullopt;
  const std::string_view from = find(members, "from");
  const std::string_view value = find(members, "value");
  if (!is_string(from) || !is_string(value))
    return line.bad(reason::kBadConversation,
                    fmt::format("conversations[{}] has no \"from\" and \"value\" that are strings", index));
  const std::string speaker = unescaped(from);
  const std::string_view role = role_of_speaker(speaker);
  if (role.empty())
    return line.bad(reason::kBadConversation,
                    fmt::format("conversations[{}] is from '{}', which is no known speaker", index,
                                speaker.substr(0, 60)));
  list.append(R"({"role": ")").append(role).append(R"(", "content": )").append(value).append("}");
  return std::nullopt;
}

}  // namespace

std::optional<BadExample> parse_messages(const ExampleLine& line, Example& example) {
  example.kind = ExampleKind::kMessages;
  if (auto wrong = check_messages(line, "messages", line.get("messages"))) return wrong;
  std::string list;
  if (auto wrong = with_system(line, line.get("messages"), list)) return wrong;
  write_record(line, list, example.record);
  return std::nullopt;
}

std::optional<BadExample> parse_prompt_messages(const ExampleLine& line, Example& example) {
  example.kind = ExampleKind::kMessages;
  const std::string_view prompt = line.get("prompt"), completion = line.get("completion");
  if (auto wrong = check_messages(line, "prompt", prompt)) return wrong;
  if (auto wrong = check_messages(line, "completion", completion)) return wrong;
  std::string before;
  if (auto wrong = with_system(line, prompt, before)) return wrong;
  std::string all(before, 0, before.size() - 1);
  all.append(", ").append(completion.substr(1));
  write_record(line, all, example.record);
  write_record(line, before, example.prompt_record);
  return std::nullopt;
}

std::optional<BadExample> parse_share_gpt(const ExampleLine& line, Example& example) {
  example.kind = ExampleKind::kMessages;
  const std::string_view turns = line.get("conversations");
  if (auto wrong = check_messages(line, "conversations", turns)) return wrong;
  std::string list = "[", whole;
  ListItems items(turns);
  size_t i = 0;
  for (std::string_view item; items.next(item); ++i)
    if (auto wrong = append_turn(line, item, i, list)) return wrong;
  if (auto wrong = with_system(line, list + "]", whole)) return wrong;
  write_record(line, whole, example.record);
  return std::nullopt;
}

}  // namespace plimsoll::corpora
