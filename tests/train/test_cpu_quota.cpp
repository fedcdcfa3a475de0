// SPDX-License-Identifier: Apache-2.0
// Number of cores: the affinity mask, limited by control groups, from files with the kernel's layout.
#include <gtest/gtest.h>

#include "os/cpu_quota.hpp"
#include "support/temp_folder.hpp"

namespace {
using triax::os::available_cores;
using triax::test::TempFolder;
using triax::test::write_file;

class Cores : public ::testing::Test {
 protected:
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    write_file(root_ / name, text);
  }
  int cores() const { return available_cores(8, root_.path()); }
  TempFolder root_;
};

TEST_F(Cores, WithoutGroupsTheMaskCounts) {
  EXPECT_EQ(cores(), 8);
  EXPECT_GE(available_cores(), 1);
}

TEST_F(Cores, Version2) {
  file("proc/self/cgroup", "0::/pod/run\n");
  file("sys/fs/cgroup/pod/run/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 8);
  file("sys/fs/cgroup/pod/cpu.max", "350000 100000\n"); // parent group
  EXPECT_EQ(cores(), 3);
  file("sys/fs/cgroup/pod/run/cpu.max", "50000 100000\n"); // half a core still gives one thread
  EXPECT_EQ(cores(), 1);
}

TEST_F(Cores, Version2InAContainerSeesItsOwnGroupAtTheMount) {
  file("proc/self/cgroup", "0::/elsewhere\n");
  file("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cores(), 2);
}

TEST_F(Cores, Version1) {
  file("proc/self/cgroup", "5:memory:/run\n4:cpu,cpuacct:/run\n0::/\n");
  file("sys/fs/cgroup/memory/run/cpu.cfs_quota_us", "100000\n"); // not the relevant group
  file("sys/fs/cgroup/cpu,cpuacct/run/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu,cpuacct/run/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 8);
  file("sys/fs/cgroup/cpu,cpuacct/run/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(cores(), 4);
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cores(), 2);
}

TEST_F(Cores, IgnoresMalformedControlGroupFiles) {
  file("proc/self/cgroup", "nonsense\n0::/a\n");
  file("sys/fs/cgroup/a/cpu.max", "\n");
  EXPECT_EQ(cores(), 8);
}

TEST_F(Cores, TheMaskCanBeTheSmaller) {
  file("proc/self/cgroup", "0::/\n");
  file("sys/fs/cgroup/cpu.max", "1600000 100000\n");
  EXPECT_EQ(available_cores(2, root_.path()), 2);
}

} // namespace
