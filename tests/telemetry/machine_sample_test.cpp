#include "telemetry/machine_sample.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/temporary_folder.h"

namespace plimsoll::telemetry {
namespace {

class MachineSampleTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.path(path)).parent_path());
    std::ofstream(root_.path(path)) << text;
  }
  [[nodiscard]] MachineSample sample() const { return read_machine_sample(root_.path("")); }
  const io::TemporaryFolder root_;
};

TEST_F(MachineSampleTest, ReadsTheKernelsFiles) {
  write("proc/stat", "cpu  100 5 20 900 30 1 2 40 0 0\ncpu0 50 2 10 450 15 0 1 20 0 0\n");
  write("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2400.000\nprocessor\t: 1\ncpu MHz\t\t: 1800.000\n");
  write("proc/self/io", "rchar: 9\nwchar: 8\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n");
  write("proc/diskstats",
        " 8 0 sda 10 0 16 5 20 0 32 7 0 0 0\n 8 1 sda1 10 0 16 5 20 0 32 7 0 0 0\n"
        " 7 0 loop0 10 0 99 5 20 0 99 7 0 0 0\n");
  for (const char* name : {"sda", "loop0"}) write(std::string("sys/block/") + name + "/size", "1");
  const MachineSample s = sample();
  EXPECT_EQ(s.busy_ticks, 128);
  EXPECT_EQ(s.idle_ticks, 900);
  EXPECT_EQ(s.disk_wait_ticks, 30);
  EXPECT_EQ(s.stolen_ticks, 40);
  EXPECT_EQ(s.mhz, 2100);
  EXPECT_EQ(s.read_bytes, 4096);
  EXPECT_EQ(s.written_bytes, 8192);
  EXPECT_EQ(s.disk_read_bytes, 16 * 512);
  EXPECT_EQ(s.disk_written_bytes, 32 * 512);
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3100000\n");
  EXPECT_EQ(sample().mhz, 3100);
}

TEST_F(MachineSampleTest, WhatTheKernelDoesNotSayIsUnknown) {
  const MachineSample s = sample();
  EXPECT_EQ(s.mhz, -1);
  EXPECT_EQ(s.read_bytes, -1);
  EXPECT_EQ(s.disk_read_bytes, -1);
  EXPECT_EQ(interval(s, s).disk_read_bytes, -1);
}

TEST_F(MachineSampleTest, OfThisMachine) {
  const MachineSample a = read_machine_sample(), b = read_machine_sample();
  EXPECT_GT(b.busy_ticks, 0);
  EXPECT_GE(b.process_seconds, a.process_seconds);
  EXPECT_GE(interval(a, b).seconds, 0);
}

TEST(MachineInterval, IsWhatHappenedBetween) {
  MachineSample from, to;
  from.cpus = to.cpus = 4;
  from.seconds = 10, to.seconds = 15, from.process_seconds = 100, to.process_seconds = 110;
  to.busy_ticks = 600, to.idle_ticks = 300, to.disk_wait_ticks = 60, to.stolen_ticks = 40;
  from.read_bytes = 5, to.read_bytes = 12;
  to.major_faults = 3;
  const MachineInterval i = interval(from, to);
  EXPECT_EQ(i.seconds, 5);
  EXPECT_EQ(i.process_cpus, 2);
  EXPECT_EQ(i.own_share, 0.5);
  EXPECT_EQ(i.busy_share, 0.6);
  EXPECT_EQ(i.disk_wait_share, 0.06);
  EXPECT_EQ(i.stolen_share, 0.04);
  EXPECT_EQ(i.read_bytes, 7);
  EXPECT_EQ(i.major_faults, 3);
  MachineInterval later = i;
  later.seconds = 15, later.stolen_share = 0.08, later.read_bytes = -1;
  const MachineInterval both = joined(i, later);
  EXPECT_EQ(both.seconds, 20);
  EXPECT_DOUBLE_EQ(both.stolen_share, 0.07);
  EXPECT_EQ(both.major_faults, 6);
  EXPECT_EQ(both.read_bytes, -1);
}

}  // namespace
}  // namespace plimsoll::telemetry
