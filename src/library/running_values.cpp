#include "library/running_values.h"

#include <algorithm>
#include <array>
#include <span>

#include "library/traced_model.h"

namespace plimsoll::library {
namespace {

Status copy_state(runtime::Session& session, const std::string& from, const std::string& to) {
  std::array<std::byte, 4096> piece;
  const int64_t bytes = session.type(from).bytes().count;
  for (int64_t at = 0; at < bytes; at += std::ssize(piece)) {
    const auto part = std::span(piece).first(static_cast<size_t>(std::min(bytes - at, std::ssize(piece))));
    PLIMSOLL_TRY(session.read(from, part, at));
    PLIMSOLL_TRY(session.write(to, part, at));
  }
  return Ok{};
}

}  // namespace

Status RunningValues::keep(runtime::Session& session) const {
  for (const std::string& state : states_) PLIMSOLL_TRY(copy_state(session, state, kept_state(state)));
  return Ok{};
}

Status RunningValues::put_back(runtime::Session& session) const {
  for (const std::string& state : states_) PLIMSOLL_TRY(copy_state(session, kept_state(state), state));
  return Ok{};
}

}  // namespace plimsoll::library
