// SPDX-License-Identifier: Apache-2.0
#include "train/verified_load.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <vector>

#include "base/caught_error.hpp"
#include "base/start_thread.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr std::chrono::milliseconds kAbortPoll{50};

} // namespace

void note_load_progress() {
  if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
}

void load_verified(const checkpoint::TensorReader& reader, const VerifiedShare& share, const AbortFlag& abort,
                   const std::function<void()>& load) {
  checkpoint::TensorReader verifier = reader.for_another_thread();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> compared{0}; // blocks
  const auto gives_up = [&] {
    ++compared;
    return stop.load();
  };
  std::future<std::vector<Error>> damage = start_thread("the thread that verifies the checkpoint", [&] {
    return std::async(std::launch::async,
                      [&] { return verifier.verify(share.rank, share.ranks, gives_up, share.state); });
  });
  std::optional<Error> failure;
  try {
    load();
  } catch (...) {
    failure = caught_error();
  }
  for (std::uint64_t seen = 0; damage.wait_for(kAbortPoll) != std::future_status::ready; seen = compared) {
    stop = abort.raised();
    if (compared != seen) note_load_progress();
  }
  const std::vector<Error> problems = damage.get(); // damage may be why loading failed
  if (!problems.empty()) throw Error(problems.front());
  if (failure) throw Error(*failure);
  abort.check(); // not all bytes were compared
}

} // namespace triax::train
