// SPDX-License-Identifier: Apache-2.0
// memory.offload = "disk": the optimizer's state in files. The bits of a run do not change, and a file that fails ends
// it with the place and the next step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "os/scratch_file.hpp"
#include "support/error_of.hpp"
#include "support/file_size_limit.hpp"
#include "train/offload_file.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using test::TinyRun;
using test::Where;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void offload(TinyRun& run) {
  run.keys["memory.offload"] = "\"disk\"";
  run.keys["memory.offload_buffer_bytes"] = "4096"; // so that small parameters have several blocks
}

/// Everything that the ranks save, by name: weights and state.
using Kept = std::map<std::string, std::vector<std::byte>>;

struct Trained {
  std::vector<double> losses;
  std::vector<bool> skipped;
  std::vector<Kept> ranks;
  bool operator==(const Trained&) const = default;
};

Kept kept_by(train::Rank& rank) {
  Kept out;
  for (const executor::KeptTensor& tensor : rank.kept()) {
    std::vector<std::byte>& bytes = out[tensor.parameter + " " + tensor.name];
    if (tensor.offloaded) {
      bytes.resize(tensor.view.bytes());
      tensor.offloaded.read(0, bytes);
    } else {
      test::append(bytes, tensor.view);
    }
  }
  return out;
}

Trained trained(const TinyRun& run, int steps = 3) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  Trained out;
  out.ranks.resize(static_cast<std::size_t>(layout.world_size()));
  test::run_ranks(config, layout, [&](train::Rank& rank, int index) {
    for (int step = 0; step < steps; ++step) {
      const train::StepResult result = rank.step();
      if (index > 0) continue;
      out.losses.push_back(result.loss);
      out.skipped.push_back(result.skipped);
    }
    out.ranks[static_cast<std::size_t>(index)] = kept_by(rank);
  });
  return out;
}

struct Offloaded {
  const char* name;
  std::map<std::string, std::string> keys;
};

const std::map<std::string, std::string> kBf16 = {{"train.precision", "\"bf16\""},
                                                  {"kernels.plugin", "\"kernels-cpu\""}};

std::map<std::string, std::string> with_bf16(std::map<std::string, std::string> keys) {
  keys.insert(kBf16.begin(), kBf16.end());
  return keys;
}

/// tests/equality has more layouts with optim-adamw.
const std::vector<Offloaded>& offloaded_runs() {
  static const std::vector<Offloaded> runs = {
      {"fp64", {{"train.precision", "\"fp64\""}}},
      {"sgd", with_bf16({{"optimizer.plugin", "\"optim-sgd\""}, {"optimizer.momentum", "0.9"}})},
      {"sgd_without_momentum_d2",
       with_bf16({{"optimizer.plugin", "\"optim-sgd\""}, {"optimizer.momentum", "0"}, {"parallel.data", "2"}})},
      {"lamb_d2", {{"optimizer.plugin", "\"optim-lamb\""}, {"parallel.data", "2"}}},
      {"lamb_t2_d2_states", with_bf16({{"optimizer.plugin", "\"optim-lamb\""},
                                       {"parallel.tensor", "2"},
                                       {"parallel.data", "2"},
                                       {"optimizer.shard", "\"states\""}})},
      {"muon_d2", {{"optimizer.plugin", "\"optim-muon\""}, {"parallel.data", "2"}}},
      {"muon_t2_d2_states", with_bf16({{"optimizer.plugin", "\"optim-muon\""},
                                       {"parallel.tensor", "2"},
                                       {"parallel.data", "2"},
                                       {"optimizer.shard", "\"states\""}})},
      {"lamb_v2_d2_parameters",
       {{"optimizer.plugin", "\"optim-lamb\""},
        {"parallel.data", "2"},
        {"parallel.chunks", "2"},
        {"schedule.plugin", "\"sched-breadth-first\""},
        {"optimizer.shard", "\"parameters\""}}},
  };
  return runs;
}

class SameBitsOffloaded : public testing::TestWithParam<Offloaded> {};

/// With dropout and clipping.
TEST_P(SameBitsOffloaded, AsInMemory) {
  TinyRun run;
  run.keys["train.clip_grad"] = "0.1";
  for (const auto& [key, value] : GetParam().keys) run.keys[key] = value;
  const Trained whole = trained(run);
  offload(run);
  EXPECT_TRUE(trained(run) == whole);
}

INSTANTIATE_TEST_SUITE_P(Of, SameBitsOffloaded, testing::ValuesIn(offloaded_runs()),
                         [](const auto& of) { return of.param.name; });

/// One buffer has all, and three have a part of a parameter each.
TEST(Offload, HasTheSameBitsWithBuffersOfAnySize) {
  TinyRun run;
  run.keys.insert(kBf16.begin(), kBf16.end());
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  const Trained whole = trained(run);
  run.keys["memory.offload"] = "\"disk\"";
  for (const char* bytes : {"4096", "16384", "8388608"}) {
    run.keys["memory.offload_buffer_bytes"] = bytes;
    EXPECT_TRUE(trained(run) == whole) << bytes;
  }
}

/// optim-noise draws a number for each element, also of a part of a parameter.
TEST(Offload, RandomNumbersOfAnOptimizerAreThoseOfTheElements) {
  TinyRun run;
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["optimizer.plugin"] = "\"optim-noise\"";
  run.keys["optimizer.weight_decay"] = "0";
  const Trained whole = trained(run);
  offload(run);
  EXPECT_TRUE(trained(run) == whole);
}

TEST(Offload, SkipsTheStepsThatARunInMemorySkips) {
  TinyRun run;
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"fp16\"";
  run.keys["loss_scale.initial"] = "8388608";
  run.keys["loss_scale.hysteresis"] = "1";
  const Trained whole = trained(run, 5);
  EXPECT_TRUE(whole.skipped.front());
  EXPECT_FALSE(whole.skipped.back());
  offload(run);
  const Trained from_disk = trained(run, 5);
  EXPECT_EQ(from_disk.skipped, whole.skipped);
  EXPECT_TRUE(from_disk.ranks == whole.ranks);
}

class OffloadedCheckpoints : public test::ResumedRun {
 protected:
  OffloadedCheckpoints() { run_.keys["kernels.plugin"] = "\"kernels-cpu\""; }
  static Where on_disk(Where where) {
    where.keys["memory.offload"] = "\"disk\"";
    where.keys["memory.offload_buffer_bytes"] = "4096";
    return where;
  }
  static Where sharded(Where where, const char* shard) {
    where.keys["optimizer.shard"] = text("\"{}\"", shard);
    return where;
  }
};

/// To and from runs in memory, and other sharding and pipeline sizes.
TEST_F(OffloadedCheckpoints, AreThoseOfARunInMemoryAndContinueEitherWay) {
  for (const char* precision : {"bf16", "fp32"}) {
    run_.keys["train.precision"] = text("\"{}\"", precision);
    const std::string whole = text("whole-{}", precision), mixed = text("mixed-{}", precision);
    ASSERT_THAT(train({1, 1, 2}, 8, whole), IsEmpty());
    ASSERT_THAT(train(on_disk({1, 1, 2}), 2, mixed), IsEmpty());
    ASSERT_THAT(train({2, 1, 2}, 4, mixed), IsEmpty());
    ASSERT_THAT(train(sharded(on_disk({2, 1, 2}), "states"), 5, mixed), IsEmpty());
    ASSERT_THAT(train(sharded({1, 1, 2}, "gradients"), 6, mixed), IsEmpty());
    ASSERT_THAT(train(sharded(on_disk({1, 1, 2}), "parameters"), 8, mixed), IsEmpty());
    EXPECT_TRUE(content(mixed, 8) == content(whole, 8)) << precision;
  }
}

/// The state that was read ahead is not that of the checkpoint.
TEST_F(OffloadedCheckpoints, ARewindReadsTheStateAgain) {
  run_.keys["train.precision"] = "\"bf16\"";
  Kept before, after;
  run_.keys["run.dir"] = "\"rewound\"";
  const config::RunConfig config = this->config(on_disk({}), 0);
  const train::RunFolder reserved(config, "# resolved\n");
  const auto errors = start(config, test::TinySource(),
                            [&](train::Rank& rank, train::Checkpoints& checkpoints, int, test::TinySource&) {
                              for (int step = 0; step < 2; ++step) rank.step();
                              checkpoints.save();
                              checkpoints.wait();
                              before = kept_by(rank);
                              for (int step = 0; step < 2; ++step) rank.step();
                              EXPECT_FALSE(kept_by(rank) == before);
                              EXPECT_TRUE(checkpoints.rewind());
                              after = kept_by(rank);
                              rank.step();
                              return train::LoopResult();
                            });
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_TRUE(after == before);
}

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

/// Of this process, without a name.
std::vector<fs::path> scratch_files() {
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const fs::path file = fs::read_symlink(entry.path(), closed);
    if (file.string().find(".offload-rank-") != std::string::npos) out.push_back(entry.path());
  }
  return out;
}

TEST(Offload, LeavesNoNameInTheFolder) {
  TinyRun run;
  offload(run);
  run.keys["memory.offload_path"] = "\"state\"";
  {
    test::TinyRank rank(run);
    rank->step();
    EXPECT_EQ(scratch_files().size(), 1u);
    EXPECT_TRUE(fs::is_empty(run.folder() / "state"));
  }
  EXPECT_THAT(scratch_files(), IsEmpty());
}

TEST(Offload, AFileThatFailsEndsTheRunWithThePlace) {
  TinyRun run;
  offload(run);
  test::TinyRank rank(run);
  rank->step();
  rank->finish(); // a block that is written later would end the file behind those that are missing
  ASSERT_EQ(scratch_files().size(), 1u);
  fs::resize_file(scratch_files().front(), 0);
  const std::string error = test::error_of([&] {
    for (int step = 0; step < 3; ++step) rank->step(); // the first blocks are read ahead
  });
  EXPECT_THAT(error, AllOf(HasSubstr("cannot be read: the file has ended"), HasSubstr("step 2, 0OPT"),
                           HasSubstr(".offload-rank-0."), HasSubstr(", byte "), HasSubstr("dmesg")));
}

TEST(Offload, AFullDiskEndsTheRunBeforeItsFirstStep) {
  TinyRun run;
  offload(run);
  const test::FileSizeLimit limit(8192);
  const std::string error = test::error_of([&] { const test::TinyRank rank(run); });
  EXPECT_THAT(error, AllOf(HasSubstr(".offload-rank-0."), HasSubstr("File too large"), HasSubstr("ulimit -f")));
}

} // namespace
} // namespace triax
