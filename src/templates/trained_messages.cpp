#include "templates/trained_messages.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "templates/conversation.h"
#include "templates/object.h"
#include "templates/print.h"

namespace plimsoll::templates {
namespace {

Error wrong(size_t i, std::string what, std::string hint) {
  return {ErrorCode::kBadData, fmt::format("messages[{}]: {}", i, what), {}, std::move(hint)};
}

Result<std::optional<bool>> by_train(const Value& message, size_t i) {
  const Entry* train = find_entry(message.dict_entries(), "train");
  if (train == nullptr) return std::optional<bool>();
  if (!train->value.is(Kind::kBool))
    return wrong(i, fmt::format("\"train\" is a {}, expected true or false", type_name(train->value)),
                 "correct it, or leave it out");
  return std::optional(train->value.boolean);
}

Result<std::optional<bool>> by_weight(const Value& message, size_t i) {
  const Entry* weight = find_entry(message.dict_entries(), "weight");
  if (weight == nullptr) return std::optional<bool>();
  const Value& value = weight->value;
  if (!value.is_number() || value.is(Kind::kBool))
    return wrong(i, fmt::format("\"weight\" is a {}, expected 0 or 1", type_name(value)),
                 "correct it, or leave it out");
  if (value.as_number() != 0 && value.as_number() != 1)
    return wrong(i, fmt::format("\"weight\" is {}, expected 0 or 1", value.as_number()),
                 "messages are trained on or not: round the weights");
  return std::optional(value.as_number() == 1);
}

}  // namespace

Result<TrainedMessages> trained_messages(std::span<const Value> messages) {
  TrainedMessages out;
  out.trained.assign(messages.size(), 1);
  for (size_t i = 0; i < messages.size(); ++i) {
    PLIMSOLL_ASSIGN(const std::optional<bool> train, by_train(messages[i], i));
    PLIMSOLL_ASSIGN(const std::optional<bool> weight, by_weight(messages[i], i));
    if (train && weight && *train != *weight)
      return wrong(i, "\"train\" and \"weight\" contradict each other", "leave one of them out");
    const std::optional<bool> said = train ? train : weight;
    if (!is_assistant(messages[i])) {
      out.other_roles += said.value_or(false) ? 1 : 0;
    } else if (said && !*said) {
      out.trained[i] = 0;
      ++out.untrained;
    }
  }
  return out;
}

}  // namespace plimsoll::templates
