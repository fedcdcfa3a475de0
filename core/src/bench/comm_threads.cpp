// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_threads.hpp"

#include <thread>

#include "bench/comm_rank.hpp"
#include "control/job_local_store.hpp"
#include "triax/error.hpp"

namespace triax::bench {

void measure_threads(const CommPlan& plan, const config::PluginChoice* kernels,
                     const std::function<void(const SizeResult&)>& report, Log& log) {
  control::JobAbort abort;
  control::LocalStore store;
  const control::JobAbort::Listening store_listens(abort, store);
  const auto run = [&](int rank) {
    measure_rank({plan, {rank, rank, plan.ranks, kernels, &log}, store, abort, report});
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(plan.ranks));
    for (int rank = 0; rank < plan.ranks; ++rank) threads.emplace_back(run, rank);
  }
  if (abort.raised()) throw Error(abort.reason());
}

} // namespace triax::bench
