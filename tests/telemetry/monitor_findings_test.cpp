#include "telemetry/monitor_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace plimsoll::telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What is said of `count` intervals of 5 s of a machine at peace, changed by `change`.
std::vector<std::string> said(int count, const std::function<void(int, MachineInterval&)>& change) {
  std::vector<MachineInterval> all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    MachineInterval& interval = all[static_cast<size_t>(i)];
    interval.seconds = 5, interval.own_share = 0.97, interval.busy_share = 0.98, interval.mhz = 2400;
    change(i, interval);
  }
  std::vector<std::string> sentences;
  for (const MachineFinding& finding : machine_findings(all)) {
    EXPECT_FALSE(finding.hint.empty());
    EXPECT_GE(finding.share, 0);
    EXPECT_LE(finding.share, 1);
    sentences.push_back(finding.what);
  }
  return sentences;
}

TEST(MachineFindings, NothingOfAMachineAtPeace) {
  EXPECT_THAT(said(0, [](int, auto&) {}), IsEmpty());
  EXPECT_THAT(said(8, [](int, auto&) {}), IsEmpty());
  EXPECT_THAT(said(8, [](int i, auto& m) { m.mhz = 2400 - 20 * i; }), IsEmpty());
  // Others on CPUs that this run leaves alone.
  EXPECT_THAT(said(8, [](int, auto& m) { m.own_share = 0.1, m.busy_share = 0.7; }), IsEmpty());
}

TEST(MachineFindings, NamesWhatTookTheTime) {
  EXPECT_THAT(said(4, [](int i, auto& m) { m.stolen_share = i < 2 ? 0.04 : 0; }),
              ElementsAre("2 % of the time was stolen by the hypervisor"));
  EXPECT_THAT(said(8, [](int i, auto& m) { m.mhz = i < 4 ? 2400 : 1800; }),
              ElementsAre("the CPUs' clock fell from 2.4 to 1.8 GHz"));
  EXPECT_THAT(said(4, [](int, auto& m) { m.own_share = 0.6; }),
              ElementsAre("other processes took 38 % of the CPUs' time"));
  EXPECT_THAT(said(4, [](int, auto& m) { m.major_faults = 60; }),
              ElementsAre("12 pages a second were read back from the disk"));
  EXPECT_THAT(said(4, [](int, auto& m) { m.disk_wait_share = 0.05, m.busy_share = m.own_share = 0.9; }),
              ElementsAre("the CPUs waited for the disk 5 % of the time"));
}

TEST(MachineFindings, TheLargestFirst) {
  EXPECT_THAT(said(4,
                   [](int, auto& m) {
                     m.stolen_share = 0.02;
                     m.own_share = 0.5;
                   }),
              ElementsAre("other processes took 48 % of the CPUs' time",
                          "2 % of the time was stolen by the hypervisor"));
}

TEST(MachineFindings, OfACard) {
  EXPECT_THAT(said(4,
                   [](int i, auto& m) {
                     m.card = devices::CardSample{.busy_percent = 65, .clock_mhz = i < 2 ? 1755 : 1200};
                     if (i == 3) m.card->slowed_by = {"heat"};
                   }),
              ElementsAre("the card was idle 35 % of the time", "the card's clock fell from 1.8 to 1.2 GHz",
                          "the card was slowed 25 % of the time: heat"));
}

}  // namespace
}  // namespace plimsoll::telemetry
