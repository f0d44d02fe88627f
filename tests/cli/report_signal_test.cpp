#include "cli/report_signal.h"

#include <gtest/gtest.h>

#include <csignal>

namespace plimsoll::cli {
namespace {

TEST(ReportSignal, IsAQuestionAskedOnce) {
  const ReportSignal signal;
  EXPECT_FALSE(ReportSignal::take());
  std::raise(SIGUSR2);
  std::raise(SIGUSR2);
  EXPECT_TRUE(ReportSignal::take());
  EXPECT_FALSE(ReportSignal::take());
}

TEST(ReportSignal, GivesBackWhatStoodBefore) {
  std::signal(SIGUSR2, SIG_IGN);
  { const ReportSignal signal; }
  EXPECT_EQ(std::signal(SIGUSR2, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace plimsoll::cli
