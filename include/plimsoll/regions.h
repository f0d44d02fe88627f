// What is said of a part of the loss function: that it is recomputed in backward, that its products are of
// low precision.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "plimsoll/module_list.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// Until the scope ends products read their operands in `precision` (bf16, fp16, or f32), as within
/// torch.autocast.
inline Scope autocast(DType precision) {
  detail::Trace* trace = detail::needed_trace("autocast");
  const char* name = precision == DType::bf16 ? "bf16" : precision == DType::f16 ? "fp16" : "fp32";
  if (precision == DType::i32 || precision == DType::i64)
    detail::fail(trace, Error(ErrorKind::invalid_argument, "autocast takes bf16, fp16 or f32, not integers"));
  return Scope(trace, "autocast", name);
}

namespace detail {

/// A function, or a module: its forward().
template <class Function, class... Arguments>
Value apply(Function&& function, Arguments&&... arguments) {
  if constexpr (requires { function.forward(std::forward<Arguments>(arguments)...); }) {
    const Scope scope = Scope::of_module(current_trace, function.path());
    return function.forward(std::forward<Arguments>(arguments)...);
  } else {
    return function(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace detail

/// `function(arguments...)`, or the module's forward(arguments...): what is computed within is not kept for
/// backward but computed a second time there. It changes no result.
template <class Function, class... Arguments>
Value checkpoint(Function&& function, Arguments&&... arguments) {
  const Scope region(detail::needed_trace("checkpoint"), "checkpoint", nullptr);
  return detail::apply(function, std::forward<Arguments>(arguments)...);
}

/// x through all modules in order, in `segments` groups of nearly the same size (1 to as many as there are
/// modules), each of which is checkpointed: between groups values are kept.
template <class Modules>
Value checkpoint_sequential(Modules& modules, int64_t segments, Value x) {
  const auto count = static_cast<int64_t>(modules.size());
  if (segments < 1 || segments > count) {
    detail::fail(
        detail::needed_trace("checkpoint_sequential"),
        Error(ErrorKind::invalid_argument, "checkpoint_sequential: segments is " + std::to_string(segments),
              "it is from 1 to the number of modules, " + std::to_string(count)));
    return {};
  }
  for (int64_t segment = 0; segment < segments; ++segment) {
    const int64_t first = segment * count / segments;
    const int64_t last = (segment + 1) * count / segments;
    x = checkpoint(
        [&](Value inside) {
          for (int64_t i = first; i < last; ++i)
            inside = detail::apply(modules[static_cast<size_t>(i)], inside);
          return inside;
        },
        x);
  }
  return x;
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
