// Limits of control groups in folders that look like /proc and /sys/fs/cgroup.
#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string mib(int64_t n) { return std::to_string(n * kMiB) + "\n"; }

/// A machine of 16 GiB, 12 of them available, without limits.
class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll-memory-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("/proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:   12582912 kB\n"
          "SwapTotal:      33554432 kB\nSwapFree:       33554432 kB\n");
  }
  ~MachineMemoryTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void version2(const std::string& group) const {
    write("/proc/self/cgroup", "0::" + group + "\n");
    write("/proc/self/mountinfo",
          "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
          "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
          "rw,nsdelegate,memory_recursiveprot\n");
  }
  /// A group of version 2 in which so much is used, by its path.
  void group2(const std::string& group, const std::string& max, const std::string& high, int64_t used) const {
    const std::string folder = "/sys/fs/cgroup" + group + "/";
    write(folder + "memory.max", max);
    write(folder + "memory.high", high);
    write(folder + "memory.current", mib(used));
    write(folder + "memory.stat", "anon " + mib(used) + "inactive_file 0\nactive_file 0\n");
  }
  void version1(const std::string& group, const std::string& mounted = "/") const {
    write("/proc/self/cgroup",
          "9:cpu,cpuacct:/elsewhere\n4:memory:" + group + "\n1:name=systemd:/x\n0::/none\n");
    write("/proc/self/mountinfo",
          "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
          "33 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
          "35 31 0:32 " +
              mounted + " /sys/fs/cgroup/memory rw shared:4 master:2 - cgroup cgroup rw,memory\n" +
              "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }
  [[nodiscard]] MachineMemory read() const { return read_machine_memory(root_); }

  std::string root_;
};

TEST_F(MachineMemoryTest, TheMachineRulesWhereNoGroupDoes) {
  const MachineMemory bare = read();
  EXPECT_EQ(bare.physical_bytes, 16384 * kMiB) << "and no swap";
  EXPECT_EQ(bare.limit_bytes, 16384 * kMiB);
  EXPECT_EQ(bare.available_bytes, 12288 * kMiB);
  EXPECT_EQ(bare.limited_by, "");

  version2("/");
  EXPECT_EQ(read().limited_by, "") << "the root group has no limit";
  version2("/user.slice/a");
  write("/sys/fs/cgroup/user.slice/a/memory.max", "max\n");
  write("/sys/fs/cgroup/user.slice/a/memory.high", "max\n");
  write("/sys/fs/cgroup/user.slice/a/memory.current", mib(700));
  EXPECT_EQ(read().limited_by, "");
  EXPECT_EQ(read().available_bytes, 12288 * kMiB);

  version1("/a");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", mib(700));
  EXPECT_EQ(read().limited_by, "");
  EXPECT_EQ(read().available_bytes, 12288 * kMiB);
}

TEST_F(MachineMemoryTest, TheGroupThatTheProcessIsInRulesNotTheMountsRoot) {
  version2("/system.slice/job.scope");
  write("/sys/fs/cgroup/system.slice/job.scope/memory.max", mib(160));
  write("/sys/fs/cgroup/system.slice/job.scope/memory.current", mib(20));
  const MachineMemory memory = read();
  EXPECT_EQ(memory.limit_bytes, 160 * kMiB);
  EXPECT_EQ(memory.available_bytes, 140 * kMiB);
  EXPECT_EQ(memory.physical_bytes, 16384 * kMiB);
  EXPECT_EQ(memory.limited_by, "/sys/fs/cgroup/system.slice/job.scope/memory.max");
}

TEST_F(MachineMemoryTest, TheLeastOfAllAboveRulesAndTheTightestSaysWhatIsFree) {
  version2("/slurm/job_7/step_0/task_1");
  write("/sys/fs/cgroup/slurm/memory.max", mib(4096));
  write("/sys/fs/cgroup/slurm/memory.current", mib(4046));
  write("/sys/fs/cgroup/slurm/job_7/memory.max", mib(512));
  write("/sys/fs/cgroup/slurm/job_7/memory.current", mib(100));
  write("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", mib(1024));
  write("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", mib(90));
  write("/sys/fs/cgroup/slurm/job_7/step_0/task_1/memory.max", "max\n");
  const MachineMemory memory = read();
  EXPECT_EQ(memory.limit_bytes, 512 * kMiB);
  EXPECT_EQ(memory.limited_by, "/sys/fs/cgroup/slurm/job_7/memory.max");
  EXPECT_EQ(memory.available_bytes, 50 * kMiB) << "others in slurm took the rest";
}

TEST_F(MachineMemoryTest, HighIsALimitToo) {
  version2("/a");
  write("/sys/fs/cgroup/a/memory.max", mib(300));
  write("/sys/fs/cgroup/a/memory.high", mib(200));
  write("/sys/fs/cgroup/a/memory.current", mib(50));
  EXPECT_EQ(read().limit_bytes, 200 * kMiB);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/a/memory.high");
  EXPECT_EQ(read().available_bytes, 150 * kMiB);
}

TEST_F(MachineMemoryTest, PageCacheThatGivesWayIsNotUsage) {
  version2("/a");
  write("/sys/fs/cgroup/a/memory.max", mib(160));
  write("/sys/fs/cgroup/a/memory.current", mib(155));
  write("/sys/fs/cgroup/a/memory.stat", "anon " + mib(15) + "file " + mib(135) + "file_mapped " + mib(10) +
                                            "inactive_anon " + mib(15) + "inactive_file " + mib(90) +
                                            "active_file " + mib(40) + "slab_reclaimable " + mib(5));
  EXPECT_EQ(read().available_bytes, (160 - 155 + 90 + 40 + 5 - 10) * kMiB);
  write("/sys/fs/cgroup/a/memory.current", mib(170));
  write("/sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
  EXPECT_EQ(read().available_bytes, 0);
}

TEST_F(MachineMemoryTest, VersionOneWithItsGroupNested) {
  version1("/slurm/uid_0/job_9");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/slurm/uid_0/memory.limit_in_bytes", mib(160));
  write("/sys/fs/cgroup/memory/slurm/uid_0/memory.usage_in_bytes", mib(100));
  write("/sys/fs/cgroup/memory/slurm/uid_0/memory.stat",
        "active_file 1\ninactive_file 2\ntotal_active_file " + mib(20) + "total_inactive_file " + mib(30));
  write("/sys/fs/cgroup/memory/slurm/uid_0/job_9/memory.limit_in_bytes", mib(200));
  write("/sys/fs/cgroup/memory/slurm/uid_0/job_9/memory.memsw.limit_in_bytes", mib(100));
  write("/sys/fs/cgroup/memory/slurm/uid_0/job_9/memory.stat", "hierarchical_memory_limit " + mib(160));
  const MachineMemory memory = read();
  EXPECT_EQ(memory.limit_bytes, 160 * kMiB);
  EXPECT_EQ(memory.limited_by, "/sys/fs/cgroup/memory/slurm/uid_0/memory.limit_in_bytes");
  EXPECT_EQ(memory.available_bytes, 110 * kMiB);
}

TEST_F(MachineMemoryTest, AContainersGroupMountedAsItsRoot) {
  version1("/docker/0123/inner", "/docker/0123");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", mib(512));
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", mib(10));
  write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", mib(256));
  write("/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", mib(1));
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory/inner/memory.limit_in_bytes");
  version1("/docker/0123456", "/docker/0123");
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory/memory.limit_in_bytes") << "all that is seen";
  version1("/../outside");
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

TEST_F(MachineMemoryTest, ALimitAboveWhatAContainerSees) {
  version1("/a", "/a");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", mib(60));
  write("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit " + mib(320));
  EXPECT_EQ(read().limit_bytes, 320 * kMiB);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory/memory.stat");
  EXPECT_EQ(read().available_bytes, 260 * kMiB);
}

TEST_F(MachineMemoryTest, MountedWhereNobodyWouldLook) {
  write("/proc/self/cgroup", "0::/with:colon\n");
  write("/proc/self/mountinfo", "30 22 0:26 / /run/my\\040groups rw - cgroup2 none rw\nnonsense\n\n");
  write("/run/my groups/with:colon/memory.max", mib(64));
  EXPECT_EQ(read().limited_by, "/run/my groups/with:colon/memory.max");
  EXPECT_EQ(read().available_bytes, 64 * kMiB) << "no usage is known";
}

TEST_F(MachineMemoryTest, AScopeOfSystemdRun) {
  const std::string app = "/user.slice/user-1000.slice/user@1000.service/app.slice";
  version2(app + "/run-u17.scope");
  group2("/user.slice", "max\n", "max\n", 3000);
  group2("/user.slice/user-1000.slice", "max\n", mib(400), 300);
  group2("/user.slice/user-1000.slice/user@1000.service", "max\n", "max\n", 290);
  group2(app, "max\n", "max\n", 120);
  group2(app + "/run-u17.scope", mib(500), "max\n", 20);
  const MachineMemory memory = read();
  EXPECT_EQ(memory.limit_bytes, 400 * kMiB);
  EXPECT_EQ(memory.limited_by, "/sys/fs/cgroup/user.slice/user-1000.slice/memory.high");
  EXPECT_EQ(memory.available_bytes, 100 * kMiB) << "others of that user took 280";
}

TEST_F(MachineMemoryTest, AStepOfSlurm) {
  const std::string job = "/system.slice/slurmstepd.scope/job_12";
  version2(job + "/step_0/user/task_0");
  group2("/system.slice", "max\n", "max\n", 900);
  group2("/system.slice/slurmstepd.scope", "max\n", "max\n", 800);
  group2(job, mib(1024), "max\n", 100);
  group2(job + "/step_0", mib(1024), "max\n", 90);
  group2(job + "/step_0/user", "max\n", "max\n", 80);
  group2(job + "/step_0/user/task_0", "max\n", "max\n", 80);
  const MachineMemory memory = read();
  EXPECT_EQ(memory.limit_bytes, 1024 * kMiB);
  EXPECT_EQ(memory.limited_by, "/sys/fs/cgroup" + job + "/memory.max") << "the highest of two that are equal";
  EXPECT_EQ(memory.available_bytes, 924 * kMiB);
}

TEST_F(MachineMemoryTest, ANamespaceOfVersion2) {
  // The process's own group is the root that it sees; the files there are the group's.
  version2("/");
  group2("", mib(256), "max\n", 56);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory.max");
  EXPECT_EQ(read().available_bytes, 200 * kMiB);
  version2("/inner");
  group2("/inner", mib(128), "max\n", 8);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/inner/memory.max");
  for (const char* outside : {"/../..", "/../beside/it"}) {
    version2(outside);
    EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/memory.max")
        << outside << ": what is mounted is all that is seen";
  }
  // A mount that was made outside of the namespace: its root lies above the namespace's.
  version2("/");
  write("/proc/self/mountinfo", "30 22 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(read().limit_bytes, 256 * kMiB);
}

TEST_F(MachineMemoryTest, BothVersionsAtOnceEachWithItsLimit) {
  version1("/slurm/job_1");
  write("/proc/self/cgroup", "4:memory:/slurm/job_1\n1:name=systemd:/x\n0::/x.scope\n");
  write("/sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", mib(300));
  write("/sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", mib(10));
  EXPECT_EQ(read().limit_bytes, 300 * kMiB) << "version 2 has no controller here, and so no files";
  write("/sys/fs/cgroup/unified/x.scope/memory.max", mib(200));
  write("/sys/fs/cgroup/unified/x.scope/memory.current", mib(150));
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/unified/x.scope/memory.max");
  EXPECT_EQ(read().available_bytes, 50 * kMiB);
  // The same with the memory controller in version 2 and others in version 1.
  write("/proc/self/cgroup", "9:cpu,cpuacct:/elsewhere\n0::/x.scope\n");
  EXPECT_EQ(read().limit_bytes, 200 * kMiB);
}

TEST_F(MachineMemoryTest, WhatCannotBeReadBoundsNothingAndHidesNothing) {
  version2("/a/b");
  for (const char* file : {"memory.max", "memory.high", "memory.current", "memory.stat"})
    std::filesystem::create_directories(root_ + "/sys/fs/cgroup/a/b/" + file);  // opened, never read
  EXPECT_EQ(read().limited_by, "");
  group2("/a", mib(64), "max\n", 4);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/a/memory.max");
  EXPECT_EQ(read().available_bytes, 60 * kMiB);
  for (const char* text : {"", "garbage\n", "-1\n", "99999999999999999999999\n"}) {
    write("/sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(read().limited_by, "") << text;
  }
  std::filesystem::remove(root_ + "/proc/self/mountinfo");
  EXPECT_EQ(read().limit_bytes, 16384 * kMiB);
  std::filesystem::remove(root_ + "/proc/self/cgroup");
  EXPECT_EQ(read().limit_bytes, 16384 * kMiB);
}

TEST_F(MachineMemoryTest, AGroupThatIsGoneStillHasThoseAbove) {
  version2("/a/b (deleted)");
  group2("/a", mib(64), "max\n", 4);
  EXPECT_EQ(read().limited_by, "/sys/fs/cgroup/a/memory.max");
}

TEST(MachineMemory, OfThisMachine) {
  const MachineMemory memory = read_machine_memory();
  EXPECT_GT(memory.available_bytes, 0);
  EXPECT_GE(memory.limit_bytes, memory.available_bytes);
  EXPECT_GE(memory.physical_bytes, memory.limit_bytes);
  EXPECT_EQ(memory.limited_by.empty(), memory.physical_bytes == memory.limit_bytes);
}

}  // namespace
}  // namespace plimsoll
