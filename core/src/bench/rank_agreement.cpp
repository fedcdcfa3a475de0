// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_agreement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "triax/error.hpp"
#include "triax/poll_pause.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::bench {

std::string RankAgreement::next_key() {
  return text("bench/{}", uses_++);
}

std::int64_t RankAgreement::wait_for(const std::string& key, std::int64_t least) {
  WaitDeadline deadline(deadline_in(timeout_s_));
  PollPause pause;
  for (std::int64_t value = store_.add(key, 0);; value = store_.add(key, 0)) {
    if (value >= least) return value;
    if (abort_.raised()) throw Error(abort_.reason());
    if (deadline.passed())
      throw Error(text("timed out after {} s waiting for the other ranks", timeout_s_), {},
                  "--timeout-s sets the timeout");
    pause.after_poll(progress_());
  }
}

void RankAgreement::barrier() {
  const char* const key = "bench/barrier"; // one key for all: there is a barrier before each turn
  store_.add(key, 1);
  wait_for(key, ++barriers_ * ranks_);
}

double RankAgreement::largest(double seconds) {
  const auto nanoseconds = std::max<std::int64_t>(std::llround(1e9 * seconds), 1);
  std::int64_t out = nanoseconds;
  for (const std::string& other : gather(triax::to_text(nanoseconds)))
    out = std::max<std::int64_t>(out, std::strtoll(other.c_str(), nullptr, 10));
  return 1e-9 * static_cast<double>(of_rank_0(out));
}

/// Returns rank 0's number on all ranks; it must be above 0.
std::int64_t RankAgreement::of_rank_0(std::int64_t number) {
  const std::string key = next_key();
  if (rank_ == 0) store_.add(key, number);
  return wait_for(key, 1);
}

std::vector<std::string> RankAgreement::gather(const std::string& own) {
  const std::string key = next_key();
  store_.set(text("{}/{}", key, rank_), own);
  barrier();
  std::vector<std::string> out;
  for (int rank = 0; rank_ == 0 && rank < ranks_; ++rank)
    out.push_back(store_.get(text("{}/{}", key, rank), deadline_in(timeout_s_)));
  return out;
}

} // namespace triax::bench
