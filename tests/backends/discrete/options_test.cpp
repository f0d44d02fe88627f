#include "backends/discrete/options.h"

#include <gtest/gtest.h>

namespace plimsoll::discrete {
namespace {

TEST(ParseFault, ReadsAQueueAndANumber) {
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    const auto fault = parse_fault(none);
    EXPECT_TRUE(fault.ok() && !fault->has_value());
  }
  const auto fault = parse_fault("copy_in:17");
  ASSERT_TRUE(fault.ok() && fault->has_value());
  EXPECT_EQ((*fault)->queue, ir::Queue::kCopyIn);
  EXPECT_EQ((*fault)->number, 17U);
  EXPECT_EQ((*parse_fault("compute:1"))->queue, ir::Queue::kCompute);
  EXPECT_EQ((*parse_fault("copy_out:2"))->queue, ir::Queue::kCopyOut);
  EXPECT_FALSE((*parse_fault("compute:1"))->flips);
  EXPECT_TRUE((*parse_fault("compute:31:flip"))->flips);
  EXPECT_EQ((*parse_fault("compute:31:flip"))->number, 31U);
}

TEST(ParseFault, RefusesTheRest) {
  for (const char* text : {"copy_in", "copy_in:", "copy_in:0", "copy_in:-1", "copy_in:1x", ":1", "disk:1",
                           "1", "copy_in:1:2", "copy_in:1:flip", "compute::flip"}) {
    const auto fault = parse_fault(text);
    ASSERT_FALSE(fault.ok()) << text;
    EXPECT_EQ(fault.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(fault.error().where, "PLIMSOLL_FAULT");
  }
}

}  // namespace
}  // namespace plimsoll::discrete
