// While a plan is made the loss function runs once, and each op that it calls is appended to the trace of
// that plan. A trace belongs to the thread that makes the plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/array.h"
#include "plimsoll/call.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

class Parameter;

/// What a session has of a parameter or a buffer.
struct ParameterInfo {
  std::string name;
  Shape shape;
  bool is_trained = true;
  bool is_buffer = false;  ///< no parameter: a running value of BatchNorm
};

namespace detail {

struct FreeBuilder {
  void operator()(pls_builder* builder) const { pls_builder_free(builder); }
};

struct Trace {
  std::unique_ptr<pls_builder, FreeBuilder> builder = nullptr;
  std::map<const Parameter*, pls_value> parameters = {};
  std::map<std::string, const Parameter*, std::less<>> by_name = {};
  std::vector<ParameterInfo> declared = {};  ///< in order
  std::string path = {};                     ///< of the module whose scope is open
  std::optional<Error> error = {};           ///< the first; only without exceptions
};

/// The plan that this thread is making, or null.
inline thread_local Trace* current_trace = nullptr;

/// Throws, or keeps the first error for the end of the plan.
inline void fail([[maybe_unused]] Trace* trace, Error error) {
#ifdef PLIMSOLL_NO_EXCEPTIONS
  if (trace != nullptr && !trace->error) trace->error = std::move(error);
#else
  raise(std::move(error));
#endif
}

inline void check(Trace* trace, Status status) {
  if (!status) fail(trace, std::move(status.error()));
}

/// The current trace; null, with an error, outside of a plan.
inline Trace* needed_trace(const char* what) {
  if (current_trace == nullptr)
    fail(nullptr,
         Error(ErrorKind::invalid_argument, std::string(what) + " is used outside of a plan",
               "layers and functions of values are called in the loss function that plan() is given"));
  return current_trace;
}

}  // namespace detail

/// A part of the trace: it ends with this object. Scopes end in the reverse order.
class [[nodiscard]] Scope {
 public:
  Scope() = default;
  Scope(detail::Trace* trace, const char* kind, const char* argument) {
    if (trace == nullptr || trace->error) return;
    const Status status = detail::call(
        [&](pls_error** error) { return pls_scope_push(trace->builder.get(), kind, argument, error); });
    if (status) trace_ = trace;
    detail::check(trace, status);
  }
  Scope(Scope&& other) noexcept
      : trace_(std::exchange(other.trace_, nullptr)), outer_path_(std::move(other.outer_path_)) {}
  Scope& operator=(Scope&&) = delete;
  ~Scope() {
    if (trace_ == nullptr) return;
    pls_scope_pop(trace_->builder.get(), nullptr);
    if (outer_path_) trace_->path = std::move(*outer_path_);
  }

  /// The scope of a module, within those that are open: reports and errors name it, and layers are recomputed
  /// by it.
  static Scope of_module(detail::Trace* trace, const std::string& path) {
    if (trace == nullptr || path.empty() || path == trace->path) return {};
    const std::string& open = trace->path;
    const bool is_below =
        !open.empty() && path.size() > open.size() && path[open.size()] == '.' && path.starts_with(open);
    Scope scope(trace, "module", is_below ? path.c_str() + open.size() + 1 : path.c_str());
    if (scope.trace_ != nullptr) scope.outer_path_ = std::exchange(trace->path, path);
    return scope;
  }

 private:
  detail::Trace* trace_ = nullptr;
  std::optional<std::string> outer_path_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
