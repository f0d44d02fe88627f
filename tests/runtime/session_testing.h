// What tests of many rooms do with sessions on the CPU.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "base/check.h"
#include "ops/op_list.h"
#include "passes/session_plan.h"
#include "runtime/kernel_traits.h"
#include "runtime/session.h"

namespace plimsoll::session_testing {

/// A state where it lies, which the host reaches on the CPU alone.
template <typename T>
std::span<T> on_cpu(const runtime::Session& session, std::string_view state) {
  std::span<T> all;
  const Status read = session.read_pieces(
      state, 0, session.type(state).bytes().count, [&](std::span<const std::byte> piece, int64_t) -> Status {
        all = {reinterpret_cast<T*>(const_cast<std::byte*>(piece.data())), piece.size() / sizeof(T)};
        return Ok{};
      });
  PLIMSOLL_CHECK(read.ok(), std::string(state));
  return all;
}

/// A state's elements, read as from any device.
template <typename T>
std::vector<T> read_state(const runtime::Session& session, std::string_view state) {
  std::vector<T> values(static_cast<size_t>(session.type(state).bytes().count) / sizeof(T));
  const Status read = session.read(state, std::as_writable_bytes(std::span(values)));
  PLIMSOLL_CHECK(read.ok(), read ? "" : read.error().message());
  return values;
}

template <typename T>
void write_state(runtime::Session& session, std::string_view state, const std::vector<T>& values) {
  const Status written = session.write(state, std::as_bytes(std::span(values)));
  PLIMSOLL_CHECK(written.ok(), written ? "" : written.error().message());
}

/// Bound, planned and ordered as one program of a session.
inline Result<passes::Program> plan_program(ir::Graph graph, const runtime::Target& target,
                                            std::vector<std::pair<ir::OpId, ir::Alias>> in_place = {},
                                            bool separate = false) {
  passes::BindOptions bind;
  bind.in_place = std::move(in_place);
  runtime::set_kernels(target, bind);
  PLIMSOLL_ASSIGN(passes::Binding binding, passes::bind_storage(graph, bind, ops::find_op));
  passes::MemoryPlan plan = passes::plan_memory(graph, binding, {.separate = separate});
  passes::IssueOrder issue = passes::issue_order(graph, binding, plan);
  return passes::Program{std::move(graph), std::move(binding), std::move(plan), std::move(issue)};
}

}  // namespace plimsoll::session_testing
