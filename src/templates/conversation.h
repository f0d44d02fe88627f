// A record of a conversation as values: what apply_chat_template hands to a template.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "templates/heap.h"
#include "templates/value.h"

namespace plimsoll::templates {

/// The values point into the tree and the heap, which live as long as they do.
struct Conversation {
  explicit Conversation(Heap& memory) : heap(memory) {}
  Heap& heap;
  io::Tree tree = {};
  std::vector<Value> messages = {};
  Value tools = Value::none();
  Value documents = Value::none();
  std::vector<Entry> variables = {};  ///< of chat_template_kwargs
};

/// Reads {"messages": […], "tools"?, "documents"?, "chat_template_kwargs"?}. Members of messages that are
/// null are left out; a message's reasoning is there under every name that templates read. Errors: kBadData
/// for broken JSON and for another shape.
Status read_conversation(std::string_view json, Conversation& out);

/// Whether the message's role is "assistant".
bool is_assistant(const Value& message);
/// The message with one member set.
bool with_member(Heap& heap, const Value& message, std::string_view name, const Value& value, Value& out);

}  // namespace plimsoll::templates
