// JSON's values become Python's; texts are not copied.
#include "templates/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/json.h"
#include "templates/object.h"

namespace plimsoll::templates {
namespace {

constexpr io::TreeLimits kLimits{.max_bytes = int64_t{256} << 20, .max_depth = 100, .max_nodes = 10'000'000};

Error broken(std::string what) {
  return {ErrorCode::kBadData,
          std::move(what),
          {},
          "a record is {\"messages\": [{\"role\": …, \"content\": …}, …]}"};
}

/// An integer beyond 64 bits, which would lose digits; up to 2^64 the tree does not tell it from a float.
bool is_large_integer(const io::Tree& tree) {
  if (tree.kind != io::Tree::Kind::kNumber) return false;
  if (tree.number >= 0x1p63 && tree.number <= 0x1p64) return true;
  return (tree.number >= 0x1p63 || tree.number < -0x1p63) &&
         tree.text.find_first_of(".eE") == std::string::npos;
}

bool value_of(Heap& heap, const io::Tree& tree, Value& out) {
  switch (tree.kind) {
    case io::Tree::Kind::kNull:
      out = Value::none();
      return true;
    case io::Tree::Kind::kBool:
      out = Value::of(tree.boolean);
      return true;
    case io::Tree::Kind::kInteger:
      out = Value::of(tree.integer);
      return true;
    case io::Tree::Kind::kNumber:
      if (is_large_integer(tree)) return heap.fail("an integer beyond 64 bits");
      out = Value::of(tree.number);
      return true;
    case io::Tree::Kind::kString:
      out = Value::of(std::string_view(tree.text));
      return true;
    case io::Tree::Kind::kList: {
      Value* items = heap.array<Value>(tree.items.size());
      if (items == nullptr) return false;
      for (size_t i = 0; i < tree.items.size(); ++i)
        if (!value_of(heap, tree.items[i], items[i])) return false;
      out = Value::list(items, tree.items.size());
      return true;
    }
    case io::Tree::Kind::kMap: {
      auto* entries = heap.array<Entry>(tree.members.size());
      if (entries == nullptr) return false;
      for (size_t i = 0; i < tree.members.size(); ++i) {
        entries[i].key = Value::of(std::string_view(tree.members[i].first));
        if (!value_of(heap, tree.members[i].second, entries[i].value)) return false;
      }
      out = Value::dict(entries, tree.members.size());
      return true;
    }
  }
  return false;
}

/// transformers' names for it, the one that stands for all first.
constexpr std::string_view kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

bool read_message(Heap& heap, const io::Tree& tree, Value& out) {
  Value all;
  if (!value_of(heap, tree, all)) return false;
  auto* entries = heap.array<Entry>(all.size + 2);
  if (entries == nullptr) return false;
  const Entry* reasoning = nullptr;
  for (const std::string_view name : kReasoning) {
    const Entry* entry = find_entry(all.dict_entries(), name);
    if (reasoning == nullptr && entry != nullptr && !entry->value.is(Kind::kNone)) reasoning = entry;
  }
  size_t count = 0;
  if (reasoning != nullptr) entries[count++] = {Value::of(kReasoning[1]), reasoning->value};
  for (const Entry& entry : all.dict_entries())
    if (!entry.value.is(Kind::kNone) && !set_entry(heap, entries, count, entry.key, entry.value))
      return false;
  if (reasoning != nullptr && !set_entry(heap, entries, count, Value::of(kReasoning[0]), reasoning->value))
    return false;
  out = Value::dict(entries, count);
  return true;
}

Status read_member(Conversation& out, std::string_view name, io::Tree::Kind kind, Value& value) {
  const io::Tree* member = out.tree.find(name);
  if (member == nullptr || member->is_null()) return Ok{};
  if (member->kind != kind)
    return broken(fmt::format("'{}' is {}, not {}", name, member->describe(),
                              kind == io::Tree::Kind::kList ? "a list" : "an object"));
  if (!value_of(out.heap, *member, value)) return broken(fmt::format("'{}': {}", name, out.heap.why()));
  return Ok{};
}

}  // namespace

Status read_conversation(std::string_view json, Conversation& out) {
  PLIMSOLL_ASSIGN(out.tree, io::parse_json(json, kLimits));
  if (out.tree.kind != io::Tree::Kind::kMap) return broken("the record is no JSON object");
  const io::Tree* messages = out.tree.find("messages");
  if (messages == nullptr) return broken("the record has no 'messages'");
  if (messages->kind != io::Tree::Kind::kList || messages->items.empty())
    return broken(fmt::format("'messages' is {}, not a list with a message in it", messages->describe()));
  for (const io::Tree& message : messages->items) {
    if (message.kind != io::Tree::Kind::kMap)
      return broken(
          fmt::format("messages[{}] is {}, not an object", out.messages.size(), message.describe()));
    if (!read_message(out.heap, message, out.messages.emplace_back()))
      return broken(fmt::format("messages[{}]: {}", out.messages.size() - 1, out.heap.why()));
  }
  PLIMSOLL_TRY(read_member(out, "tools", io::Tree::Kind::kList, out.tools));
  PLIMSOLL_TRY(read_member(out, "documents", io::Tree::Kind::kList, out.documents));
  Value variables = Value::dict(nullptr, 0);
  PLIMSOLL_TRY(read_member(out, "chat_template_kwargs", io::Tree::Kind::kMap, variables));
  for (const Entry& entry : variables.dict_entries()) {
    for (const std::string_view taken : {"messages", "tools", "documents", "add_generation_prompt"})
      if (entry.key.string() == taken) return broken(fmt::format("'chat_template_kwargs' sets '{}'", taken));
    out.variables.push_back(entry);
  }
  return Ok{};
}

bool is_assistant(const Value& message) {
  const Entry* role = find_entry(message.dict_entries(), "role");
  return role != nullptr && role->value.is_string() && role->value.string() == "assistant";
}

bool with_member(Heap& heap, const Value& message, std::string_view name, const Value& value, Value& out) {
  auto* entries = heap.array<Entry>(size_t{message.size} + 1);
  if (entries == nullptr) return false;
  std::copy_n(message.entries, message.size, entries);
  size_t count = message.size;
  if (!set_entry(heap, entries, count, Value::of(name), value)) return false;
  out = Value::dict(entries, count);
  return true;
}

}  // namespace plimsoll::templates
