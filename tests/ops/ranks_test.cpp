// What collectives move, of the rank that sends or receives most.
#include "ops/ranks.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "ops/shard.h"

namespace plimsoll::ops {
namespace {

struct Collectives {
  ir::Graph graph;
  ir::Builder b{graph, find_op};
  ir::ValueId state(int64_t elements) {
    return b.state(
        {"s" + std::to_string(elements), {ir::DType::kF32, {elements}}, ir::StateClass::kGradient});
  }
  ir::Traffic last() {
    EXPECT_TRUE(b.status());
    const ir::Op& op = graph.op(graph.order().back());
    return op.def->traffic == nullptr ? ir::Traffic{-1, -1} : op.def->traffic(ir::op_types(graph, op));
  }
};

TEST(Traffic, IsThatOfTheBusiestRank) {
  Collectives c;
  const ir::ValueId x = c.state(8 * kPieceGrain), piece = c.state(2 * kPieceGrain), small = c.state(10);
  const ir::ValueId received = exchange(c.b, x, 4);
  EXPECT_EQ(c.last().messages, 3);
  EXPECT_EQ(c.last().message_bytes, 2 * kPieceGrain * 4);
  sum_ranks(c.b, received);
  EXPECT_EQ(c.last().messages, -1) << "no collective";
  all_gather(c.b, piece, x, 4);
  EXPECT_EQ(c.last().bytes(), 3.0 * 2 * kPieceGrain * 4);
  gather_ranks(c.b, small, 4);
  EXPECT_EQ(c.last().bytes(), 3 * 40.0);
  from_owner(c.b, small, small, 4, 1);
  EXPECT_EQ(c.last().bytes(), 3 * 40.0) << "the owner sends to all others";
}

TEST(Traffic, ASmallTensorHasFewerPiecesThanRanks) {
  Collectives c;
  all_gather(c.b, c.state(kPieceGrain), c.state(2 * kPieceGrain), 1024);
  EXPECT_EQ(c.last().messages, 2);
  exchange(c.b, c.state(2 * kPieceGrain), 1024);
  EXPECT_EQ(c.last().messages, 1023) << "to the rank that has a piece";
}

}  // namespace
}  // namespace plimsoll::ops
