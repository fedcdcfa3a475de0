// SPDX-License-Identifier: Apache-2.0
// The check of memory.offload = "disk": planned memory, refusals, and training under a limit in which the state does
// not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "train/offload_file.hpp"
#include "train/offloaded_run.hpp"
#include "train/preflight_run.hpp"

namespace triax {
namespace {

using test::kBf16;
using test::offload;
using test::TinyRun;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OffloadPlan : public test::PreflightTest {
 protected:
  OffloadPlan() { run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]"; }
  /// Reasons that name a key of offloaded state.
  std::vector<std::string> of_offload() {
    std::vector<std::string> out;
    for (const Refusal& refusal : plan().refusals)
      if (refusal.message.find("memory.offload") != std::string::npos) out.push_back(refusal.message);
    return out;
  }
  train::Preflight plan() {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log());
  }
  static std::size_t bytes_of(const train::Preflight& of, const std::string& what) {
    for (const train::MemoryRow& row : of.plans.front().memory)
      if (row.what == what) return row.bytes;
    return 0;
  }
};

TEST_F(OffloadPlan, HasTheStateInTheFileAndThreeBuffersInMemory) {
  run_.keys["model.hidden"] = "64";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  for (const char* precision : {"bf16", "fp32"}) {
    SCOPED_TRACE(precision);
    run_.keys["train.precision"] = text("\"{}\"", precision);
    run_.keys["memory.offload"] = "\"none\"";
    const train::Preflight whole = plan();
    run_.keys["memory.offload"] = "\"disk\"";
    run_.keys["memory.offload_buffer_bytes"] = "65536";
    const train::Preflight from_disk = plan();
    ASSERT_TRUE(from_disk.refusals.empty());
    const bool mixed = std::string(precision) == "bf16";
    EXPECT_EQ(bytes_of(from_disk, "optimizer state"), 0u);
    EXPECT_EQ(bytes_of(from_disk, "weights"), mixed ? 0 : bytes_of(whole, "weights"));
    EXPECT_EQ(bytes_of(from_disk, "working weights"), bytes_of(whole, "working weights"));
    EXPECT_LE(bytes_of(from_disk, "offload staging"), 3 * 65536u);
    EXPECT_GT(bytes_of(from_disk, "offload staging"), 2 * 65536u);
    EXPECT_EQ(bytes_of(whole, "offload staging"), 0u);
    const std::size_t state = bytes_of(whole, "optimizer state") + (mixed ? bytes_of(whole, "weights") : 0);
    EXPECT_GT(from_disk.plans.front().offload_bytes, state * 9 / 10); // rows that pad a table are not in it
    EXPECT_LT(from_disk.plans.front().offload_bytes, state * 11 / 10);
    EXPECT_EQ(bytes_of(from_disk, "checkpoint staging"), 0u);
  }
}

TEST_F(OffloadPlan, IsRefusedOnOtherDevicesThanTheHost) {
  struct Refused {
    const char *kernels, *offload, *reason;
  };
  for (const Refused& of :
       {Refused{"kernels-elsewhere", "disk", "in the memory of the host only"},
        Refused{"kernels-sim", "disk", "does not compute"}, Refused{"kernels-sim", "optimizer", "does not compute"}}) {
    run_.keys["kernels.plugin"] = text("\"{}\"", of.kernels);
    run_.keys["memory.offload"] = text("\"{}\"", of.offload);
    const std::vector<std::string> reasons = of_offload();
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_THAT(reasons.front(), AllOf(HasSubstr(of.kernels), HasSubstr(of.reason)));
  }
}

TEST_F(OffloadPlan, IsRefusedWhereItsFolderCannotHaveTheFiles) {
  offload(run_);
  run_.keys["memory.offload_path"] = "\"text.bin/below\"";
  config::RunConfig config = run_.config();
  const train::Placement placement = train::choose_placement(config);
  train::Preflight planned = plan();
  Refusals refused = train::check_offload_folder(config, planned, placement);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.front().code, ErrorCode::kNotWritable);
  EXPECT_THAT(refused.front().message, AllOf(HasSubstr("memory.offload_path"), HasSubstr("is a file")));
  config.memory.offload_path.clear();
  EXPECT_TRUE(train::check_offload_folder(config, planned, placement).empty());
  planned.plans.front().offload_bytes = std::uint64_t{1} << 60;
  refused = train::check_offload_folder(config, planned, placement);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused.front().message, AllOf(HasSubstr("1 rank in run.dir = "), HasSubstr(" free")));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadow memory exceeds any limit

/// Trains in a copy of this process that may have `bytes` more of memory; 0: no limit. Returns the losses of two steps;
/// empty if it failed. Without further heaps of threads, whose reserved addresses would count.
std::vector<double> trained_under_limit(const TinyRun& run, std::uint64_t bytes) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    double losses[2] = {};
    try {
      ::mallopt(M_ARENA_MAX, 1);
      if (bytes > 0) {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t most = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
        const rlimit limit{most, most};
        ::setrlimit(RLIMIT_AS, &limit);
      }
      test::TinyRank rank(run, {.threads = 1});
      for (double& loss : losses) loss = rank->step().loss;
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(::write(ends[1], losses, sizeof losses) == sizeof losses ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  std::vector<double> out(2);
  if (status != 0 || ::read(ends[0], out.data(), sizeof(double) * 2) != sizeof(double) * 2) out.clear();
  ::close(ends[0]);
  ::close(ends[1]);
  return out;
}

/// The limit is half of the saved memory above what the plan with files needs. The rest is for stacks of threads, and
/// for a parameter while it is drawn.
TEST_F(OffloadPlan, TrainsUnderALimitOfMemoryInWhichTheStateDoesNotFit) {
  run_.keys.insert(kBf16.begin(), kBf16.end());
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run_.keys["model.hidden"] = "1280";
  run_.keys["model.layers"] = run_.keys["batch.global"] = "1";
  const std::uint64_t whole_bytes = plan().plans.front().bytes();
  run_.keys["memory.offload"] = "\"disk\"";
  const std::uint64_t disk_bytes = plan().plans.front().bytes();
  ASSERT_GT(whole_bytes, disk_bytes);
  const std::uint64_t limit = disk_bytes + (whole_bytes - disk_bytes) / 2;
  const std::vector<double> from_disk = trained_under_limit(run_, limit);
  run_.keys["memory.offload"] = "\"none\"";
  EXPECT_THAT(trained_under_limit(run_, limit), IsEmpty());
  EXPECT_EQ(from_disk.size(), 2u);
  EXPECT_EQ(from_disk, trained_under_limit(run_, 0));
}

#endif

} // namespace
} // namespace triax
