#include "library/trace_scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace plimsoll::library {
namespace {

std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

/// The last part of a module's name; of an element of a list its number.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// torch's names and the settings' mean the same.
std::string precision_of(std::string_view name) {
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"bfloat16", "bf16"},
                                 {"float16", "fp16"},
                                 {"float32", "fp32"}})
    if (name == from || name == to) return std::string(to);
  return {};
}

}  // namespace

std::string autocast_part(std::string_view precision) { return fmt::format("autocast:{}", precision); }

Status TraceScopes::push(std::string_view kind, std::string_view argument) {
  Scope scope = open_.empty() ? Scope{} : open_.back();
  if (kind == "module") {
    PLIMSOLL_TRY(enter_module(scope, argument));
  } else if (kind == "checkpoint") {
    enter_checkpoint(scope);
  } else if (kind == "autocast") {
    scope.precision = precision_of(argument);
    if (scope.precision.empty())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("autocast to '{}'", argument),
                   {},
                   "choose bf16, fp16 or fp32"};
  } else {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no scope of kind '{}'", kind),
                 {},
                 "choose module, autocast or checkpoint"};
  }
  open_.push_back(std::move(scope));
  return Ok{};
}

Status TraceScopes::pop() {
  if (open_.empty()) return Error{ErrorCode::kInvalidArgument, "no scope is open"};
  open_.pop_back();
  return Ok{};
}

/// A name that goes on from the enclosing module's is the whole one, any other stands within it.
Status TraceScopes::enter_module(Scope& scope, std::string_view name) {
  if (name.empty() || name.find_first_of("#:\n") != std::string_view::npos)
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no name of a module", name)};
  const std::string before = scope.path + ".";
  if (!scope.path.empty() && name.starts_with(before)) name.remove_prefix(before.size());
  scope.path = joined(scope.path, name);
  scope.layer = joined(scope.layer, name);
  if (scope.block != ir::kNoBlock || !is_number(last_part(name))) return Ok{};
  scope.block = num_blocks_++;
  if (last_part(name) != std::to_string(scope.block)) scope.layer += fmt::format("#{}", scope.block);
  return Ok{};
}

void TraceScopes::enter_checkpoint(Scope& scope) {
  if (scope.checkpoints) return;  // the outer one has it all
  scope.checkpoints = true;
  scope.block = num_blocks_++;
  checkpointed_.push_back(scope.block);
  scope.layer = joined(scope.layer, fmt::format("checkpoint#{}", scope.block));
}

std::string TraceScopes::layer() const {
  if (open_.empty()) return {};
  const Scope& scope = open_.back();
  return scope.precision.empty() ? scope.layer : joined(scope.layer, autocast_part(scope.precision));
}

}  // namespace plimsoll::library
