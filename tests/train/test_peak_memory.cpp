// SPDX-License-Identifier: Apache-2.0
// The resident memory of a rank that trains, against its plan.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadow memory counts, too

/// A size of this process from /proc/self/status, such as "VmHWM", in bytes.
std::uint64_t memory_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// By how much the resident memory of a copy of this process grows, at its peak, while it trains two steps; 0: it
/// failed. The peak of a copy begins with its size.
std::uint64_t peak_of_training(const TinyRun& run) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::uint64_t grown = 0;
    try {
      const std::uint64_t before = memory_of_process("VmRSS");
      test::TinyRank rank(run, {.threads = 1});
      for (int step = 0; step < 2; ++step) rank->step();
      grown = memory_of_process("VmHWM") - before;
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(::write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  std::uint64_t out = 0;
  if (status != 0 || ::read(ends[0], &out, sizeof out) != sizeof out) out = 0;
  ::close(ends[0]);
  ::close(ends[1]);
  return out;
}

/// Without the copy from which checkpoints are written, because no checkpoint is.
std::uint64_t planned_bytes(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  const train::Preflight planned = train::preflight(config, train::choose_placement(config), null_log());
  EXPECT_TRUE(planned.refusals.empty());
  std::uint64_t out = 0;
  for (const train::MemoryRow& row : planned.plans.front().memory)
    if (row.what != "checkpoint staging") out += row.bytes;
  return out;
}

/// The memory of libraries is in both runs. With a step of few tokens, most memory is weights, gradients and state;
/// with many, it is activations.
TEST(PeakMemory, GrowsAsPlanned) {
  TinyRun small;
  small.keys["kernels.plugin"] = "\"kernels-cpu\"";
  small.keys["model.heads"] = "8";
  small.keys["model.hidden"] = "64";
  small.keys["model.layers"] = small.keys["batch.global"] = "1";
  TinyRun of_weights, of_activations;
  of_weights.keys = of_activations.keys = small.keys;
  of_weights.keys["model.hidden"] = "1280";
  of_activations.keys["model.sequence"] = "256";
  of_activations.keys["model.layers"] = "8";
  of_activations.keys["batch.global"] = "32";
  const std::uint64_t least = peak_of_training(small), least_planned = planned_bytes(small);
  ASSERT_GT(least, 0u);
  for (const TinyRun* run : {&of_weights, &of_activations}) {
    const std::uint64_t grown = peak_of_training(*run), planned = planned_bytes(*run) - least_planned;
    ASSERT_GT(grown, least);
    ASSERT_GT(planned, 200'000'000u);
    EXPECT_NEAR(static_cast<double>(grown - least), static_cast<double>(planned), 0.05 * static_cast<double>(planned));
  }
}

#endif

} // namespace
} // namespace triax
