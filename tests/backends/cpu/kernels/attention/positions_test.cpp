// Positions within documents.
#include <cmath>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Structure, Positions) {
  expect_op({"positions", {}, {{"batch", int64_t{2}}, {"tokens", int64_t{300}}}}, 0.0);
  expect_op({"document_positions", {indices({2, 300}, 200, 1)}}, 0.0);
  expect_op({"positions", {}, {{"batch", int64_t{2}}, {"tokens", int64_t{300}}, {"first", int64_t{2}}}}, 0.0);
  expect_op({"document_positions", {indices({2, 300}, 200, 1)}, {{"first", int64_t{2}}}}, 0.0);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
