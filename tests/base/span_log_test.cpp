#include "base/span_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/process.h"

namespace plimsoll {
namespace {

TEST(SpanLog, KeepsNothingWhileItIsOff) {
  { const ScopedSpan span(SpanLane::kStep, "before"); }
  SpanLog::start();
  EXPECT_TRUE(SpanLog::take().empty());
  SpanLog::stop();
  { const ScopedSpan span(SpanLane::kStep, "behind"); }
  EXPECT_TRUE(SpanLog::take().empty());
}

TEST(SpanLog, SpansOfThreadsInTheOrderOfTheirEnds) {
  SpanLog::start();
  const double before = now_seconds();
  {
    const ScopedSpan outer(SpanLane::kStep, "outer");
    std::thread([] { const ScopedSpan inner(SpanLane::kLoader, "inner", 3); }).join();
  }
  const double behind = now_seconds();
  const std::vector<Span> spans = SpanLog::take();
  SpanLog::stop();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_STREQ(spans[0].name, "inner");
  EXPECT_EQ(spans[0].lane, SpanLane::kLoader);
  EXPECT_EQ(spans[0].thread, 3);
  EXPECT_STREQ(spans[1].name, "outer");
  EXPECT_LE(before, spans[1].start);
  EXPECT_LE(spans[1].start, spans[0].start);
  EXPECT_LE(spans[0].start, spans[0].end);
  EXPECT_LE(spans[0].end, spans[1].end);
  EXPECT_LE(spans[1].end, behind);
  EXPECT_TRUE(SpanLog::take().empty());
}

}  // namespace
}  // namespace plimsoll
