// An error of a piece of work names its op and layer.
#include "backends/cpu/work.h"

#include <gtest/gtest.h>

#include "ir/op_def.h"

namespace plimsoll::cpu {
namespace {

TEST(Work, ErrorsNameTheOpAndItsLayer) {
  ir::OpDef def;
  def.name = "copy_start";
  ir::Op op;
  op.def = &def;
  const Error error{ErrorCode::kIo, "cannot read", "ext4 on /"};
  EXPECT_EQ(named(error, Work::copy({}, {}, Bytes(1), &op)).where, "copy_start: ext4 on /");
  op.layer = "layers.3.mlp";
  EXPECT_EQ(named(error, Work::copy({}, {}, Bytes(1), &op)).where, "copy_start (layers.3.mlp): ext4 on /");
  EXPECT_EQ(named(error, Work::copy({}, {}, Bytes(1), nullptr)).where, "copy: ext4 on /");
  EXPECT_EQ(named(error, Work::fill({}, Bytes(1), 0)).where, "fill: ext4 on /");
}

}  // namespace
}  // namespace plimsoll::cpu
